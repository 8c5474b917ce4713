libcore_la_SOURCES += \
	%D%/call.c %D%/compile.c %D%/context.c %D%/eager_internal.h %D%/kind.c %D%/memory_pool.c %D%/sequence.c %D%/variable.c
