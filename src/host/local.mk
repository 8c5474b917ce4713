libcore_la_SOURCES += \
	%D%/flags.c %D%/host.c %D%/host.h %D%/module.c %D%/option.h %D%/pipeline.c %D%/plan_cache.c %D%/plan_formulas.c %D%/range_binding.c %D%/range_binding.h %D%/range_proof.c %D%/range_proof.h %D%/range_scratch.c %D%/range_scratch.h %D%/range_sizes.c %D%/range_sizes.h %D%/recheck.c %D%/run_passes.c %D%/size_proof.c %D%/size_proof.h
libcore_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(builddir)/src
