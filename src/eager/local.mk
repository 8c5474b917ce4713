libcore_la_SOURCES += \
	%D%/call.c %D%/call_sequence.c %D%/compile.c %D%/context.c %D%/dlpack.c %D%/eager_internal.h %D%/foreign_memory.c %D%/gradient.c %D%/kind.c %D%/memory_pool.c %D%/program.c %D%/records.c %D%/results.c %D%/variable.c
