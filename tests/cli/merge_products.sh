# SPDX-License-Identifier: Apache-2.0
# What the steps of an unrolled loop compute does not change if their products are merged: beside the reference kernels, and in each
# way of planning.
"$ONNXMEM" run "$here/ir/merge-products/steps.ir" --fill deterministic --precise --save plain.npz -q >/dev/null
for how in "" --poison "--no-reuse --poison" "--parallel-safe --poison" "--threads 1"; do
	# shellcheck disable=SC2086
	om run "$here/ir/merge-products/steps.ir" --fill deterministic $how --expect plain.npz -q | tail -2
done
# Of a range of sizes, some have few rows, and others have not: all have one program.
cat >sizes.ir <<'IR'
program "sizes" ir 8 opset 17
^main(%x: float32[N,3]) {
	%w = const float32[3,64] splat {3.0}
	%axes = const int64[1] {0}
	%h = Tanh(%x)
	%a = MatMul(%x, %w)
	%b = MatMul(%h, %w)
	%c = Unsqueeze(%a, %axes)
	%d = Unsqueeze(%b, %axes)
	%y = Concat(%c, %d) {axis = 0}
	ret %y
}
IR
for most in 8 40; do
	"$ONNXMEM" plan sizes.ir --dim-range "N=1..$most" --target cpu -v --export json:sizes.json 2>&1 | grep -c "merge-products is left out"
done
