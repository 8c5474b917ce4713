# Random programs of a dynamic graph; `tests/eager/random 10000` tries more.
check_PROGRAMS += tests/eager/random
TESTS += tests/eager/random
tests_eager_random_SOURCES = %D%/machine.c %D%/machine.h %D%/random.c
