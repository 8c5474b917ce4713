libops_la_SOURCES += \
	%D%/columns.c %D%/columns.h %D%/composite.c %D%/composite.h %D%/composite_device.c %D%/composite_internal.h %D%/cpu_domain.h %D%/dist_domain.h %D%/device_kernel.c %D%/device_kernel.h %D%/fold.h %D%/fold_op.c %D%/fold_program.c %D%/fused_activation.c %D%/fused_activation.h %D%/batch_mean.c %D%/batch_mean.h \
	%D%/geometry/einsum.c %D%/geometry/einsum.h %D%/geometry/resize.c %D%/geometry/resize.h %D%/geometry/rnn.c %D%/geometry/rnn.h \
	%D%/geometry/window.c %D%/geometry/window.h %D%/gradient_op.h %D%/update_op.h \
	%D%/kernel.c %D%/max_sizes.c %D%/max_sizes.h %D%/kernel_call.h %D%/kernel_registry.c %D%/numbers.h %D%/op_context.c %D%/op_context.h %D%/op_rule.c %D%/op_rule.h %D%/op_time.c %D%/op_time.h \
	%D%/partial_shape_data.c %D%/rewrite.c %D%/rewrite_internal.h %D%/runs_alone.c %D%/runs_alone.h %D%/shape_check.c \
	%D%/slice.c %D%/slice.h %D%/slice_build.c %D%/transfers.c %D%/transfers.h %D%/types.h
