libcore_la_SOURCES += \
	%D%/lower_attention.c %D%/lower_attention.h %D%/lower_rnn.c %D%/lower_rnn.h %D%/view.c %D%/view.h %D%/conv_algorithm.c %D%/conv_algorithm.h %D%/layout.c %D%/layout.h %D%/lower_axes.c %D%/lower_conv.c %D%/lower_matmul.c %D%/lower_quantized.c \
	%D%/lower_reshape.c
