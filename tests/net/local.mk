# Nets that are built by the library of layers.
TESTS += %D%/nets.test
EXTRA_DIST += %D%/nets.py %D%/nets.test
