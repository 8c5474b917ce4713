libcore_la_SOURCES += \
	%D%/call.c %D%/compile.c %D%/context.c %D%/dlpack.c %D%/eager_internal.h %D%/external.c %D%/gradient.c %D%/kind.c %D%/memory_pool.c %D%/results.c %D%/sequence.c %D%/tape.c %D%/variable.c
