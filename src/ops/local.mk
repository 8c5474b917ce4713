# Operators are loops over elements: they are built with the vectorizer on.
noinst_LTLIBRARIES += libops.la
libops_la_LIBADD = libkernels.la
libops_la_CFLAGS = $(AM_CFLAGS) $(OM_KERNEL_CFLAGS)
libops_la_SOURCES += \
	%D%/contrib/block_gather.c %D%/contrib/contrib.c %D%/contrib/contrib_attention.c %D%/contrib/contrib_gates.c %D%/contrib/contrib_mrotary.c %D%/contrib/contrib_quant.c %D%/contrib/contrib_slices.c %D%/contrib/group_query.c %D%/contrib/group_query.h %D%/contrib/moe.c \
	%D%/control/container.c %D%/control/container.h %D%/control/control.c %D%/control/sequence.c %D%/family.h %D%/slices.h \
	%D%/cpu/activation.c %D%/cpu/activation.h %D%/cpu/cpu_attention.c %D%/cpu/cpu_chain.c %D%/cpu/cpu_conv.c %D%/cpu/cpu_conv.h %D%/cpu/cpu_conv_reference.c \
	%D%/cpu/channels_last.c %D%/cpu/channels_last.h \
	%D%/cpu/cpu_rnn.c %D%/cpu/cpu_conv_transpose.c %D%/cpu/cpu_depthwise.c %D%/cpu/cpu_expanded.c %D%/cpu/cpu_grouped.c %D%/cpu/cpu_layer.c %D%/cpu/cpu_layer.h %D%/cpu/cpu_pool.c %D%/cpu/cpu_qlayer.c %D%/cpu/cpu_qlayer.h %D%/cpu/fast_elementwise.c %D%/cpu/fast_group_query.c %D%/cpu/fast_halves.c %D%/cpu/fast_nbits.c %D%/cpu/fast_norm.c %D%/cpu/fast_quant.c %D%/cpu/fast_reduce.c %D%/cpu/fast_softmax.c %D%/cpu/fast_transpose.c %D%/cpu/fast_update.c \
	%D%/cpu/ranges.c %D%/cpu/ranges.h %D%/cpu/tiled_map.c %D%/cpu/tiled_map.h \
	%D%/device/device_attention.c %D%/device/device_elementwise.c %D%/device/device_index.c %D%/device/device_loss.c %D%/device/device_move.c %D%/device/device_nbits.c %D%/device/device_product.c %D%/device/device_quant.c %D%/device/device_recurrent.c %D%/device/device_reduce.c %D%/device/device_resize.c %D%/device/device_scan.c %D%/device/device_update.c %D%/device/device_window.c \
	%D%/device/launches.c %D%/device/launches.h %D%/device/product_batches.h \
	%D%/device/copies.c %D%/dist/dist.c \
	%D%/image/grid.c %D%/image/image.c %D%/image/image.h %D%/image/image_slices.c %D%/image/resize.c %D%/image/resize.h %D%/image/resize_separable.c \
	%D%/math/axis_scan.c %D%/math/axis_view.h %D%/math/broadcast_loops.c %D%/math/broadcast_loops.h \
	%D%/math/determinant.c %D%/math/einsum.c %D%/math/einsum_product.c %D%/math/einsum_product.h %D%/math/gemm_int8.c %D%/math/gemm_int8.h \
	%D%/math/matmul.c %D%/math/matmul_product.c %D%/math/product_slices.c %D%/math/pointwise.c %D%/math/pointwise.def %D%/math/reduce.c %D%/math/reduce_axes.h %D%/math/signal.c %D%/math/where_pow_clip.c \
	%D%/ml/ml.c %D%/ml/ml_feature.c %D%/ml/ml_linear.c %D%/ml/ml_map.c %D%/ml/ml_post_transform.c \
	%D%/ml/ml_post_transform.h %D%/ml/ml_tree.c \
	%D%/nn/attention.c %D%/nn/attention.h %D%/nn/attention_slices.c %D%/nn/col2im_unpool.c %D%/nn/conv.c %D%/nn/conv.h %D%/nn/conv_f32.c %D%/nn/conv_grad.c \
	%D%/nn/conv_int8.c %D%/nn/conv_transpose.c %D%/nn/dropout.c %D%/nn/linear_attention.c %D%/nn/loss.c %D%/nn/loss.h \
	%D%/nn/norm.c %D%/nn/norm_grad.c %D%/nn/optimizer_ops.c %D%/nn/update.c %D%/nn/update.h %D%/nn/pool.c %D%/nn/pool_grad.c %D%/nn/pool_grad.h %D%/nn/rnn.c \
	%D%/nn/rnn.h %D%/nn/rnn_steps.h %D%/nn/softmax.c %D%/nn/softmax.h %D%/nn/norm.h %D%/nn/norm_slices.c %D%/nn/window_slices.c %D%/quant/quant.c \
	%D%/tensor/cast.c %D%/tensor/index.c %D%/tensor/index.h %D%/tensor/index_slices.c %D%/tensor/movement.c %D%/tensor/pad.c %D%/tensor/movement_slices.c \
	%D%/tensor/rearrange.c %D%/tensor/reshape.c %D%/tensor/scatter.c %D%/tensor/select.c %D%/tensor/shape_constant.c \
	%D%/tensor/slice.c %D%/tensor/topk.c %D%/tensor/transpose.h \
	%D%/text/regex.c %D%/text/strings.c

# Decoders of images, which need libraries that few runs load.
if HAVE_MODULES
pkglib_LTLIBRARIES += onnxmem-images.la
onnxmem_images_la_CFLAGS = $(AM_CFLAGS) $(OM_KERNEL_CFLAGS) $(IMAGE_CFLAGS)
onnxmem_images_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
onnxmem_images_la_LIBADD = $(IMAGE_LIBS)
onnxmem_images_la_SOURCES = %D%/image/image_module.c
if HAVE_PNG
onnxmem_images_la_SOURCES += %D%/image/image_png.c
endif
if HAVE_JPEG
onnxmem_images_la_SOURCES += %D%/image/image_jpeg.c
endif
if HAVE_TIFF
onnxmem_images_la_SOURCES += %D%/image/image_tiff.c
endif
if HAVE_WEBP
onnxmem_images_la_SOURCES += %D%/image/image_webp.c
endif
if HAVE_JP2
onnxmem_images_la_SOURCES += %D%/image/image_jp2.c
endif
endif
