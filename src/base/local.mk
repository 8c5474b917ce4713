libpacker_la_SOURCES += \
	%D%/arena.c %D%/arena_internal.h %D%/clean_text.c %D%/clean_text.h %D%/clock.h %D%/guard.c %D%/guard.h %D%/mute.h %D%/memory_limit.h %D%/options.h %D%/progress.h %D%/rng.h %D%/saturate.h %D%/scan.h %D%/sizes.h %D%/session.c %D%/system.h
libcore_la_SOURCES += \
	%D%/byte_delta.c %D%/byte_delta.h %D%/cores.c %D%/crew.c %D%/crew.h %D%/decimal.h %D%/fast_hash.c %D%/fast_hash.h %D%/half.c %D%/half.h %D%/hex.h %D%/interval_map.c %D%/interval_map.h %D%/life.c %D%/life.h %D%/load_module.c %D%/load_module.h %D%/map.c %D%/map.h %D%/mapping.c %D%/mapping.h %D%/maxflow.c %D%/maxflow.h %D%/output_file.c %D%/output_file.h %D%/sha256.c %D%/sha256.h \
	%D%/parallel.h %D%/pause.h %D%/row_blocks.c %D%/row_blocks.h %D%/shape.c %D%/shape.h %D%/split.c %D%/split.h %D%/tensor.c %D%/thread_pool.c
# Loops over elements, built as those of operators.
libops_la_SOURCES += \
	%D%/convert_elements.c %D%/convert_elements.h %D%/strided_copy.c %D%/strided_copy.h

# The folder of modules, for the one file that reads it: on the command line, it would be part of what ccache knows all others by.
nodist_libcore_la_SOURCES += src/base/moduledir.h
BUILT_SOURCES += src/base/moduledir.h
CLEANFILES += src/base/moduledir.h
src/base/moduledir.h: Makefile
	$(AM_V_GEN)$(MKDIR_P) src/base && echo '#define OM_MODULEDIR "$(pkglibdir)"' >$@
