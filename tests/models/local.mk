# Real models, where they are.
TESTS += tests/models/flow.test tests/models/limits.test tests/models/models.test tests/models/real.test
EXTRA_DIST += %D%/check.py %D%/command.py %D%/flow.py %D%/flow.test %D%/limits.py %D%/limits.test %D%/models.test \
	%D%/real.py %D%/real.test
