libcore_la_SOURCES += \
	%D%/choices.c %D%/choices.h %D%/conv_algorithm.c %D%/conv_algorithm.h %D%/expand_depthwise.c %D%/expand_depthwise.h %D%/layout.c \
	%D%/layout.h %D%/lower_attention.c %D%/lower_attention.h %D%/lower_axes.c %D%/lower_conv.c %D%/lower_matmul.c %D%/lower_quantized.c \
	%D%/lower_reshape.c %D%/lower_rnn.c %D%/lower_rnn.h %D%/place_devices.c %D%/place_devices.h %D%/tile/tile.h %D%/tile/tile_bound.c \
	%D%/tile/tile_build.c %D%/tile/tile_code.c %D%/tile/tile_copy.c %D%/tile/tile_explain.c %D%/tile/tile_graph.c %D%/tile/tile_internal.h \
	%D%/tile/tile_path.c %D%/tile/tile_region.c %D%/tile/tile_rows.c %D%/tile/tile_rules.c %D%/tile/tile_search.c %D%/tile/tile_sweep.c \
	%D%/tile/tile_time.c %D%/tile/tile_unpack.c %D%/view.c %D%/view.h
