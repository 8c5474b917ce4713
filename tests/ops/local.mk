# Walks over the table of operators.
check_PROGRAMS += tests/ops/device_rows tests/ops/grads tests/ops/hostile tests/ops/slices tests/ops/types tests/ops/walk
TESTS += tests/ops/device_rows tests/ops/grads tests/ops/hostile tests/ops/slices tests/ops/types tests/ops/walk
OPERATOR_CASES = %D%/recipes.c %D%/texts.c %D%/texts.def %D%/trial.c %D%/walk.h
tests_ops_device_rows_SOURCES = %D%/device_cases.def %D%/device_module.c %D%/device_module.h %D%/device_rows.c $(OPERATOR_CASES)
tests_ops_device_rows_LDADD = libgpu_host.la $(LDADD)
tests_ops_grads_SOURCES = %D%/grads.c $(OPERATOR_CASES)
tests_ops_hostile_SOURCES = %D%/hostile.c $(OPERATOR_CASES)
tests_ops_slices_SOURCES = %D%/slices.c %D%/slice_cases.c %D%/slice_cases.def %D%/slice_cases.h $(OPERATOR_CASES)
tests_ops_types_SOURCES = %D%/types.c $(OPERATOR_CASES)
tests_ops_walk_SOURCES = %D%/walk.c $(OPERATOR_CASES)

# `make fuzz-hostile CASES=1000 SEED=7 OPERATORS="Conv Resize"`: more hostile cases than `make check` tries.
.PHONY: fuzz-hostile
fuzz-hostile: all tests/ops/hostile$(EXEEXT)
	cases='$(CASES)'; seed='$(SEED)'; CASES=$${cases:-300} SEED=$${seed:-1} tests/ops/hostile$(EXEEXT) $(OPERATORS)

# The operator that CONTRIBUTING.md makes up, as it stands there.
check_PROGRAMS += tests/ops/example
TESTS += tests/ops/example
EXTRA_DIST += %D%/blocks.awk
CLEANFILES += tests/ops/example-code.h tests/ops/example-row.h
tests/ops/example.$(OBJEXT): tests/ops/example-code.h tests/ops/example-row.h
tests/ops/example-code.h: $(srcdir)/CONTRIBUTING.md $(srcdir)/tests/ops/blocks.awk
	$(AM_V_GEN)$(MKDIR_P) tests/ops && $(AWK) -v want=1 -f $(srcdir)/tests/ops/blocks.awk $(srcdir)/CONTRIBUTING.md >$@
tests/ops/example-row.h: $(srcdir)/CONTRIBUTING.md $(srcdir)/tests/ops/blocks.awk
	$(AM_V_GEN)$(MKDIR_P) tests/ops && $(AWK) -v want=2 -f $(srcdir)/tests/ops/blocks.awk $(srcdir)/CONTRIBUTING.md >$@

# What docs/parts.md says about them.
TESTS += tests/ops/parts.test
EXTRA_DIST += %D%/parts.awk %D%/parts.test %D%/parts.tsv

# Kernels for devices on a device of OpenCL; `make check-opencl` tries all of them, in minutes.
TESTS += tests/opencl.test
EXTRA_DIST += tests/opencl.test
.PHONY: check-opencl
check-opencl: all tests/ops/device_rows$(EXEEXT)
	ALL=1 abs_builddir='$(abs_builddir)' LD_LIBRARY_PATH='$(abs_top_builddir)/.libs' $(SHELL) $(srcdir)/tests/opencl.test

# The same kernels as CUDA C, where NVRTC is found.
check_PROGRAMS += tests/ops/device_compile
TESTS += tests/ops/device_compile
tests_ops_device_compile_SOURCES = %D%/device_compile.c
tests_ops_device_compile_LDADD = libgpu_dialects.la $(LDADD)
