# SPDX-License-Identifier: Apache-2.0
# What the steps of an unrolled loop compute does not change if their products are merged: beside the reference kernels, and in each
# way of planning.
"$ONNXMEM" run "$here/ir/merge-products/steps.ir" --fill deterministic --precise --save plain.npz -q >/dev/null
for how in "" --poison "--no-reuse --poison" "--parallel-safe --poison" "--threads 1"; do
	# shellcheck disable=SC2086
	om run "$here/ir/merge-products/steps.ir" --fill deterministic $how --expect plain.npz -q | tail -2
done
