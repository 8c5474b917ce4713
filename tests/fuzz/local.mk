# Random programs, random control flow (branches and loops, nested), packing problems and tables.
# tests/fuzz/programs uses the library as its users do.
check_PROGRAMS += tests/fuzz/mutate tests/fuzz/programs tests/fuzz/flows tests/fuzz/flowgrads tests/fuzz/packs tests/fuzz/tables \
	tests/fuzz/certificates
TESTS += tests/fuzz/mutate.test tests/fuzz/flows tests/fuzz/flows.test tests/fuzz/flowgrads \
	tests/fuzz/packs tests/fuzz/tables tests/fuzz/certificates
TESTS += %D%/regressions.test
TESTS += %D%/lags.test
EXTRA_DIST += %D%/mutate.test %D%/apart.py %D%/flows.py %D%/flows.test %D%/lags.py %D%/lags.test %D%/regressions.test
tests_fuzz_programs_LDADD = tests/libfixtures.la $(PUBLIC_LIBS)
tests_fuzz_mutate_SOURCES = %D%/mutate.c %D%/damage.c %D%/damage.h %D%/take.c %D%/take.h
tests_fuzz_flows_SOURCES = %D%/cfg_eval.c %D%/cfg_fault.c %D%/cfg_live.c %D%/cfg_make.c %D%/cfg_shrink.c %D%/cfg_text.c \
	%D%/flows.c %D%/flows.h
tests_fuzz_flowgrads_SOURCES = %D%/cfg_eval.c %D%/cfg_grads.c %D%/cfg_make.c %D%/cfg_shrink.c %D%/cfg_text.c %D%/flows.h
tests_fuzz_certificates_SOURCES = %D%/certificates.c %D%/cfg_eval.c %D%/cfg_make.c %D%/cfg_text.c %D%/flows.h
tests_fuzz_packs_LDADD = libonnxmem-pack.la
tests_fuzz_tables_SOURCES = %D%/tables.c src/cli/pack_csv.c src/cli/pack_csv.h src/cli/table.c src/cli/table.h
tests_fuzz_tables_LDADD = libonnxmem-pack.la

# `make campaign CAMPAIGNS="flows hostile" TIME=60`: cases beyond those of `make check`; RECORD=yes counts them in
# docs/trust.md.
.PHONY: campaign
campaign: all $(check_PROGRAMS)
	time='$(TIME)'; $(PYTHON) '$(srcdir)/tests/fuzz/campaign.py' --seconds $${time:-600} $(RECORD:yes=--record) $(CAMPAIGNS)
TESTS += tests/fuzz/campaign.test
EXTRA_DIST += %D%/campaign.py %D%/campaign.test

include tests/fuzz/readers/local.mk
