# Readers of files: each target replays its corpus with any compiler, or searches with libFuzzer.
READERS = archive ir manifest model npy offline original plan table value
HUB_READERS = src/hub/address.c src/hub/file.c src/hub/manifest.c
READER_REPLAY = %D%/reader.h %D%/replay.c tests/fuzz/damage.c tests/fuzz/damage.h
READER_SEARCH = %D%/reader.h %D%/search.c
READER_FILE = %D%/memory_file.c %D%/memory_file.h
READER_TAKE = tests/fuzz/take.c tests/fuzz/take.h
TESTS += %D%/readers.test %D%/coverage.test
EXTRA_DIST += %D%/readers.test %D%/coverage.py %D%/coverage.test %D%/long.sh %D%/corpus
READER_TARGETS = %D%/archive %D%/ir %D%/manifest %D%/model %D%/npy %D%/offline %D%/original %D%/plan %D%/table %D%/value
check_PROGRAMS += $(READER_TARGETS)
EXTRA_PROGRAMS += %D%/archive_search %D%/ir_search %D%/manifest_search %D%/model_search %D%/npy_search %D%/offline_search %D%/original_search %D%/plan_search %D%/table_search \
	%D%/value_search
tests_fuzz_readers_archive_SOURCES = %D%/archive.c $(HUB_READERS) src/hub/unpack.c $(READER_REPLAY)
tests_fuzz_readers_archive_search_SOURCES = %D%/archive.c $(HUB_READERS) src/hub/unpack.c $(READER_SEARCH)
tests_fuzz_readers_archive_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_archive_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS) $(JANSSON_CFLAGS) $(LIBMD_CFLAGS)
tests_fuzz_readers_archive_LDADD = $(LDADD) $(ARCHIVE_LIBS) $(JANSSON_LIBS) $(LIBMD_LIBS)
tests_fuzz_readers_archive_search_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS) $(JANSSON_CFLAGS) $(LIBMD_CFLAGS)
tests_fuzz_readers_archive_search_LDADD = $(LDADD) $(ARCHIVE_LIBS) $(JANSSON_LIBS) $(LIBMD_LIBS)
tests_fuzz_readers_ir_SOURCES = %D%/ir.c $(READER_TAKE) $(READER_REPLAY)
tests_fuzz_readers_ir_search_SOURCES = %D%/ir.c $(READER_TAKE) $(READER_SEARCH)
tests_fuzz_readers_ir_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_manifest_SOURCES = %D%/manifest.c $(HUB_READERS) $(READER_REPLAY)
tests_fuzz_readers_manifest_search_SOURCES = %D%/manifest.c $(HUB_READERS) $(READER_SEARCH)
tests_fuzz_readers_manifest_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_manifest_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(LIBMD_CFLAGS)
tests_fuzz_readers_manifest_LDADD = $(LDADD) $(JANSSON_LIBS) $(LIBMD_LIBS)
tests_fuzz_readers_manifest_search_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(LIBMD_CFLAGS)
tests_fuzz_readers_manifest_search_LDADD = $(LDADD) $(JANSSON_LIBS) $(LIBMD_LIBS)
tests_fuzz_readers_model_SOURCES = %D%/model.c $(READER_TAKE) $(READER_REPLAY)
tests_fuzz_readers_model_search_SOURCES = %D%/model.c $(READER_TAKE) $(READER_SEARCH)
tests_fuzz_readers_model_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_model_CPPFLAGS = $(AM_CPPFLAGS) -DOM_SRCDIR='"$(abs_top_srcdir)"'
tests_fuzz_readers_model_search_CPPFLAGS = $(AM_CPPFLAGS) -DOM_SRCDIR='"$(abs_top_srcdir)"'
tests_fuzz_readers_npy_SOURCES = %D%/npy.c src/cli/npy.c src/cli/npz.c $(READER_REPLAY)
tests_fuzz_readers_npy_search_SOURCES = %D%/npy.c src/cli/npy.c src/cli/npz.c $(READER_SEARCH)
tests_fuzz_readers_npy_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_npy_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
tests_fuzz_readers_npy_LDADD = $(LDADD) $(ZLIB_LIBS)
tests_fuzz_readers_npy_search_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
tests_fuzz_readers_npy_search_LDADD = $(LDADD) $(ZLIB_LIBS)
READER_OFFLINE = %D%/offline.c src/cli/pack_check.c src/cli/pack_csv.c src/cli/table.c src/cli/tflite_table.c src/report/foreign.c src/report/tflite.c src/report/tflm_read.c
tests_fuzz_readers_offline_SOURCES = $(READER_OFFLINE) $(READER_REPLAY)
tests_fuzz_readers_offline_search_SOURCES = $(READER_OFFLINE) $(READER_SEARCH)
tests_fuzz_readers_offline_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_plan_SOURCES = %D%/plan.c $(READER_FILE) $(READER_REPLAY)
tests_fuzz_readers_plan_search_SOURCES = %D%/plan.c $(READER_FILE) $(READER_SEARCH)
tests_fuzz_readers_plan_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_plan_CPPFLAGS = $(AM_CPPFLAGS) -DOM_SRCDIR='"$(abs_top_srcdir)"'
tests_fuzz_readers_plan_search_CPPFLAGS = $(AM_CPPFLAGS) -DOM_SRCDIR='"$(abs_top_srcdir)"'
tests_fuzz_readers_original_SOURCES = %D%/original.c $(READER_FILE) $(READER_REPLAY)
tests_fuzz_readers_original_search_SOURCES = %D%/original.c $(READER_FILE) $(READER_SEARCH)
tests_fuzz_readers_original_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_value_SOURCES = %D%/value.c $(READER_FILE) $(READER_REPLAY)
tests_fuzz_readers_value_search_SOURCES = %D%/value.c $(READER_FILE) $(READER_SEARCH)
tests_fuzz_readers_value_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_readers_table_SOURCES = %D%/table.c src/cli/pack_csv.c src/cli/table.c $(READER_REPLAY)
tests_fuzz_readers_table_search_SOURCES = %D%/table.c src/cli/pack_csv.c src/cli/table.c $(READER_SEARCH)
tests_fuzz_readers_table_search_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

# `make reader-coverage` in a folder configured with CFLAGS="-O0 --coverage" --disable-shared --without-modules; RECORD=yes writes the table
# of docs/fuzz-readers.md, LINES=npy prints the lines of npy.c that are not tested.
.PHONY: reader-coverage
reader-coverage: $(BUILT_SOURCES) tests/unit/run$(EXEEXT) $(READER_TARGETS)
	srcdir=$(abs_srcdir) abs_builddir=$(abs_builddir) $(PYTHON) $(srcdir)/%D%/coverage.py $(RECORD:yes=--record) --lines '$(LINES)'

# `make fuzz-long` searches with each target, for TIME seconds or RUNS executions, whichever is less; docs/fuzz-readers.md
# says how to configure.
RUNS = -1
TIME = 600
.PHONY: fuzz-long
if HAVE_FUZZER
fuzz-long: $(BUILT_SOURCES) %D%/archive_search$(EXEEXT) %D%/ir_search$(EXEEXT) %D%/manifest_search$(EXEEXT) %D%/model_search$(EXEEXT) %D%/npy_search$(EXEEXT) \
	%D%/offline_search$(EXEEXT) %D%/original_search$(EXEEXT) %D%/plan_search$(EXEEXT) %D%/table_search$(EXEEXT) %D%/value_search$(EXEEXT)
	@$(SHELL) $(srcdir)/%D%/long.sh $(RUNS) $(TIME) $(abs_srcdir)/%D%/corpus $(READERS)
else
fuzz-long:
	@echo "$(CC) has no -fsanitize=fuzzer: configure with CC=clang" >&2; exit 1
endif
