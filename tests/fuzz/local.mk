# Random programs, random control flow (branches and loops, nested), packing problems and tables.
# tests/fuzz/programs uses the library as its users do.
check_PROGRAMS += tests/fuzz/mutate tests/fuzz/programs tests/fuzz/flows tests/fuzz/flowgrads tests/fuzz/packs tests/fuzz/tables
TESTS += tests/fuzz/mutate.test tests/fuzz/programs tests/fuzz/flows tests/fuzz/flows.test tests/fuzz/flowgrads \
	tests/fuzz/packs tests/fuzz/tables
EXTRA_DIST += %D%/mutate.test %D%/flows.py %D%/flows.test
tests_fuzz_programs_LDADD = tests/libfixtures.la $(PUBLIC_LIBS)
tests_fuzz_mutate_SOURCES = %D%/mutate.c %D%/take.c %D%/take.h
tests_fuzz_flows_SOURCES = %D%/cfg_eval.c %D%/cfg_fault.c %D%/cfg_live.c %D%/cfg_make.c %D%/cfg_shrink.c %D%/cfg_text.c \
	%D%/flows.c %D%/flows.h
tests_fuzz_flowgrads_SOURCES = %D%/cfg_eval.c %D%/cfg_grads.c %D%/cfg_make.c %D%/cfg_text.c %D%/flows.h
tests_fuzz_packs_LDADD = libonnxmem-pack.la
tests_fuzz_tables_SOURCES = %D%/tables.c src/cli/pack_csv.c src/cli/pack_csv.h src/cli/table.c src/cli/table.h
tests_fuzz_tables_LDADD = libonnxmem-pack.la

# `make fuzz` builds these, where the compiler has libFuzzer; tests/fuzz/load.c says how.
EXTRA_PROGRAMS += tests/fuzz/load tests/fuzz/text
tests_fuzz_load_SOURCES = %D%/load.c %D%/take.c %D%/take.h
tests_fuzz_load_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
tests_fuzz_text_SOURCES = %D%/text.c %D%/take.c %D%/take.h
tests_fuzz_text_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
.PHONY: fuzz
if HAVE_FUZZER
fuzz: all tests/fuzz/load$(EXEEXT) tests/fuzz/text$(EXEEXT)
else
fuzz:
	@echo "$(CC) has no -fsanitize=fuzzer: configure with CC=clang" >&2; exit 1
endif
