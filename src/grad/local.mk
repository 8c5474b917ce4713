libcore_la_SOURCES += \
	%D%/bodies.c %D%/bodies.h %D%/callback.c %D%/callback.h %D%/decompose.c %D%/fixed_shape.c %D%/fixed_shape.h %D%/functions.c %D%/functions.h %D%/fused.c %D%/fused.h \
	%D%/grad_builder.c %D%/grad_builder.h %D%/grad_dsl.h %D%/gradients.h %D%/old_program.c %D%/old_program.h %D%/registry.c %D%/reverse.c %D%/rules/attention.c %D%/rules/binary.c %D%/rules/collectives.c %D%/rules/contrib_fused.c \
	%D%/rules/conv_geometry.c %D%/rules/conv_geometry.h %D%/rules/convolution.c %D%/rules/data_movement.c \
	%D%/rules/einsum.c %D%/rules/gather_scatter.c %D%/rules/gradient_op.c %D%/rules/grid_sample.c %D%/rules/if.c \
	%D%/rules/loop_back.c %D%/rules/loop_grad.h %D%/rules/loop_scan.c %D%/rules/losses.c %D%/rules/matmul.c %D%/rules/normalization.c %D%/rules/pooling.c \
	%D%/rules/ragged_tape.c %D%/rules/recurrent.c %D%/rules/reduce_softmax.c %D%/rules/resize_roi.c %D%/rules/scan_as_loop.c %D%/rules/stateful_layers.c \
	%D%/rules/transforms.c %D%/rules/unary.c %D%/sums.c %D%/sums.h %D%/tape.h %D%/train/fused_update.c %D%/train/optimizers.c %D%/train/step_names.c \
	%D%/train/training_step.c %D%/train/training_step.h
