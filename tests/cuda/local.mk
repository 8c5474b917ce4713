# The module of CUDA on a driver and a compiler that are not there: tests/cuda/mock.h.
TESTS += %D%/cuda.test %D%/declarations.test %D%/gpu.test
EXTRA_DIST += %D%/cuda.test %D%/declarations.test %D%/gpu.test
check_LTLIBRARIES += tests/cuda/mock.la
tests_cuda_mock_la_SOURCES = %D%/mock.c %D%/mock.h %D%/mock_driver.c %D%/mock_nvrtc.c src/base/half.c
tests_cuda_mock_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_cuda_mock_la_LIBADD = libsim.la -lm
check_PROGRAMS += tests/cuda/vtable
tests_cuda_vtable_SOURCES = %D%/vtable.c
tests_cuda_vtable_LDADD = $(LDADD)
