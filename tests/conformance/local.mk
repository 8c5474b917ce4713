# The ONNX backend tests, where they are; random cases of every operator against ONNX Runtime: a few in
# `make check`, `make fuzz-ops CASES=200` as many as asked for, counted with UPDATE=1; and inferred shapes
# beside those of onnx.shape_inference.
check_PROGRAMS += tests/conformance/run tests/conformance/cases tests/conformance/shapes
TESTS += tests/conformance/conformance.test tests/conformance/corners.test tests/conformance/elements.test \
	tests/conformance/exceptions.test tests/conformance/fuzz.test tests/conformance/fuzzed.test \
	tests/conformance/objects.test tests/conformance/shapes.test
tests_conformance_run_SOURCES = %D%/conformance.h %D%/data.c %D%/run.c src/cli/compare.c
EXTRA_DIST += %D%/conformance.test %D%/contrib.py %D%/corners.py %D%/corners.test %D%/counts.py \
	%D%/coverage_exceptions.tsv %D%/distributions.py %D%/draw.py %D%/elements.py %D%/elements.test \
	%D%/exceptions.py %D%/exceptions.test %D%/exceptions.tsv %D%/flow.py %D%/fuzz.py %D%/fuzz.test %D%/fuzz.tsv \
	%D%/fuzzed.test %D%/fuzzpage.awk %D%/generate.py %D%/learned.py %D%/maps.py %D%/objects.py %D%/objects.test %D%/recipes.py %D%/results.tsv \
	%D%/shapes.py %D%/shapes.test %D%/signals.py %D%/table.awk
.PHONY: fuzz-ops
fuzz-ops: all tests/conformance/cases$(EXEEXT)
	cases='$(CASES)'; $(AM_TESTS_ENVIRONMENT) srcdir=$(srcdir) $(PYTHON) $(srcdir)/tests/conformance/fuzz.py $${cases:-200} $(OPERATORS)
