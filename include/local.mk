omincludedir = $(includedir)/onnxmem
ominclude_HEADERS = \
	%D%/onnxmem/arena.h %D%/onnxmem/assignment.h %D%/onnxmem/rewrite.h %D%/onnxmem/binding.h %D%/onnxmem/builder.h %D%/onnxmem/callback.h %D%/onnxmem/comm.h %D%/onnxmem/eager.h %D%/onnxmem/device.h %D%/onnxmem/executor.h %D%/onnxmem/fetch.h %D%/onnxmem/formula.h %D%/onnxmem/set.h %D%/onnxmem/split.h %D%/onnxmem/autodiff.h %D%/onnxmem/ir.h %D%/onnxmem/kernel.h %D%/onnxmem/nn.h \
	%D%/onnxmem/onnx.h %D%/onnxmem/opdef.h %D%/onnxmem/pack.h %D%/onnxmem/pass.h \
	%D%/onnxmem/plan.h %D%/onnxmem/report.h \
	%D%/onnxmem/slice.h %D%/onnxmem/status.h %D%/onnxmem/tensor.h %D%/onnxmem/tiling.h %D%/onnxmem/trainer.h %D%/onnxmem/tune.h
nodist_ominclude_HEADERS = include/onnxmem/version.h
