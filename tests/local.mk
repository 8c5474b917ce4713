# Runs have as many threads on every machine, so that their scratch has the same size.  Modules of the package are
# those of the build.
# `make check` runs the tests; `make check UPDATE=1` accepts the golden texts as they came out.
AM_TESTS_ENVIRONMENT = \
	ONNXMEM='$(abs_top_builddir)/onnxmem$(EXEEXT)' abs_builddir='$(abs_builddir)' PYTHON='$(PYTHON)' \
	PROTOC_C='$(PROTOC_C)' CC='$(CC)' CXX='$(CXX)' SAN_CFLAGS='$(SAN_CFLAGS)' MAKE='$(MAKE)' AWK='$(AWK)' UPDATE='$(UPDATE)' ONNXMEM_THREADS=2 \
	LD_LIBRARY_PATH='$(abs_top_builddir)/.libs'"$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH}"; \
	export LD_LIBRARY_PATH ONNXMEM_THREADS ONNXMEM abs_builddir PYTHON PROTOC_C CC CXX SAN_CFLAGS MAKE AWK UPDATE;
TEST_EXTENSIONS = .test
TEST_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
# Programs print TAP, too.
LOG_DRIVER = $(TEST_LOG_DRIVER)

# What programs of the tests share; it needs no more than the public interface.
check_LTLIBRARIES = tests/libfixtures.la
tests_libfixtures_la_SOURCES = %D%/bind.h %D%/fixtures.c %D%/fixtures.h %D%/same.h src/base/half.c
tests_libfixtures_la_CPPFLAGS = $(AM_CPPFLAGS) -DOM_SRCDIR='"$(abs_top_srcdir)"'

# The longest come first, so that the others run beside them.
TESTS += tests/fuzz/programs tests/isa.test

# Scripts of this folder, and what they read.
SCRIPTS_HERE = %D%/action.test %D%/alone.test %D%/claims.test %D%/cli.test %D%/devices.test %D%/docs.test %D%/examples.test %D%/export.test %D%/golden.test %D%/grad.test \
	%D%/gallery.test %D%/graphs.test %D%/guide.test %D%/ir.test %D%/layers.test %D%/plugin.test %D%/python.test %D%/refusals.test %D%/regress.test %D%/seeds.test %D%/spdx.test %D%/suites.test %D%/terminal.test
TESTS += $(SCRIPTS_HERE)
EXTRA_DIST += %D%/tflite
EXTRA_DIST += $(SCRIPTS_HERE) %D%/isa.test %D%/golden.sh %D%/tap.sh %D%/tolerance.awk %D%/cli %D%/graphs.out %D%/guide.py %D%/ir %D%/plugin %D%/terminal.py

include tests/cuda/local.mk
include tests/unit/local.mk
include tests/ops/local.mk
include tests/fuzz/local.mk
include tests/conformance/local.mk
include tests/onnx/local.mk
include tests/models/local.mk
include tests/opset/local.mk
include tests/grad/local.mk
include tests/eager/local.mk
include tests/net/local.mk

# What the benchmarks conclude.
TESTS += tests/bench/bench.test
EXTRA_DIST += %D%/bench/bench.py %D%/bench/bench.test

# Fetching, from mirrors on the loopback device; the page of `report --html`, in a browser.
TESTS += tests/hub/fetch.test tests/html/html.test
check_LTLIBRARIES += tests/hub/starve.la
tests_hub_starve_la_SOURCES = %D%/hub/starve.c
tests_hub_starve_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_hub_starve_la_LIBADD =
EXTRA_DIST += %D%/hub/fetch.py %D%/hub/fetch.test %D%/hub/server.py \
	%D%/html/chromium.py %D%/html/html.py %D%/html/html.test %D%/html/pages.py

# What threads share, for -fsanitize=thread, too: `make tests/threads/threads`.
check_PROGRAMS += tests/threads/threads
TESTS += tests/threads/threads %D%/threads/numbers.test %D%/threads/suites.test
TESTS += %D%/ranges/ranges.test %D%/ranges/steps.test
EXTRA_DIST += %D%/ranges/ranges.test %D%/ranges/steps.test %D%/ranges/programs.py
EXTRA_DIST += %D%/threads/numbers.test %D%/threads/suites.test

# Ranks, of this machine and of MPI.
check_PROGRAMS += tests/dist/ranks
TESTS += %D%/dist/nets.test %D%/dist/pipeline.test %D%/dist/ranks.test %D%/dist/train.test
EXTRA_DIST += %D%/dist/compare.py %D%/dist/mpi.sh %D%/dist/net.py %D%/dist/nets.py %D%/dist/nets.test %D%/dist/pipeline.py %D%/dist/pipeline.test %D%/dist/ranks.test %D%/dist/train.test

# Suites in shards.
TESTS += %D%/fleet/fleet.test
EXTRA_DIST += %D%/fleet/fleet.test

# Models that are cut into parts.
TESTS += %D%/split/split.test
EXTRA_DIST += %D%/split/parts.py %D%/split/split.test
tests_threads_threads_CFLAGS = $(AM_CFLAGS) -pthread
tests_threads_threads_LDFLAGS = $(AM_LDFLAGS) -pthread

# An installation.
TESTS += %D%/package/install.test %D%/package/nix.test
EXTRA_DIST += %D%/package/install.test %D%/package/nix.test %D%/package/CMakeLists.txt

# The public headers from C++.
check_PROGRAMS += tests/cxx/cxx
TESTS += tests/cxx/cxx %D%/cxx/headers.test
EXTRA_DIST += %D%/cxx/headers.test
tests_cxx_cxx_LDADD = $(PUBLIC_LIBS)
tests_cxx_cxx_SOURCES = %D%/cxx/cxx.cc
tests_cxx_cxx_CXXFLAGS = $(AM_CXXFLAGS) $(SAN_CFLAGS)
