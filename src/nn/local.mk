libcore_la_SOURCES += \
	%D%/images.c %D%/nn.c %D%/nn_internal.h %D%/sequences.c
