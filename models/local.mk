# Small models that the project makes itself: for tests and for ./start.
EXTRA_DIST += \
	%D%/branches.onnx %D%/control.onnx %D%/count.onnx %D%/decoder.onnx %D%/digits.onnx %D%/dynamic.onnx %D%/external.data \
	%D%/external.onnx %D%/function.onnx %D%/group_decoder.onnx %D%/inner.onnx %D%/loop.onnx %D%/loop_collect.onnx %D%/loop_rows.onnx %D%/loop_cycle.onnx \
	%D%/loop_early.onnx %D%/loop_grow.onnx %D%/loop_horner.onnx %D%/loop_swap.onnx %D%/loop_toggle.onnx %D%/loops.py \
	%D%/make.py %D%/manifest.py %D%/names.onnx %D%/nnc_branch.onnx %D%/nnc_chain.onnx %D%/nnc_conv.onnx \
	%D%/nnc_lag.onnx %D%/nnc_nested.onnx %D%/nnc_pool.onnx %D%/nnc_residual.onnx %D%/quant.onnx %D%/scans.onnx \
	%D%/sizes.onnx %D%/three.npy %D%/trained.onnx %D%/unsorted.onnx
# What models there are to fetch.
manifestdir = $(pkgdatadir)
dist_manifest_DATA = %D%/manifest.json
