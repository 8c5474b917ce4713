# Models of old opsets, converted.
check_PROGRAMS += tests/opset/bitwise tests/opset/finite_difference
TESTS += tests/opset/convert.test
EXTRA_DIST += %D%/convert.py %D%/convert.test
tests_opset_bitwise_SOURCES = %D%/bitwise.c %D%/inputs.c %D%/inputs.h
tests_opset_finite_difference_SOURCES = %D%/finite_difference.c %D%/inputs.c %D%/inputs.h
