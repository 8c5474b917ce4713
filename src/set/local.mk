libcore_la_SOURCES += \
	%D%/equal_weights.c %D%/links.c %D%/set_manifest.c %D%/part_sizes.c %D%/set.c %D%/set.h %D%/set_document.c %D%/set_layout.c %D%/set_run.c %D%/set_verify.c
