# SPDX-License-Identifier: Apache-2.0
# Tiling: the model that is written, what is told about it, and that it computes the same.
om tile "$models/digits.onnx" out.onnx --json out.json
cat out.json
om plan out.onnx planned.onnx
om tile "$models/digits.onnx" small.onnx --join concat --tile-nodes 40
om tile "$models/digits.onnx" small.onnx --budget 1K --budget-of arena
om tile "$models/digits.onnx" small.onnx --join scatter
om tile "$models/digits.onnx" "$models/digits.onnx"
echo 'program "" ir 8 opset 17
^main(%x: float32[4]) {
	%y = Relu(%x)
	ret %y
}' >text.ir
om tile text.ir out.onnx
om report "$models/digits.onnx" --tile -q | sed -n '/^  arena/p; /^tiled/,/^$/p'
om report "$models/digits.onnx" --tile -q --json - | sed -n '/"tiling": {/,/^  }/p'
om report "$models/digits.onnx" --tile -q --html - | grep -o '"bands":\[\[.*"boxes"' | cut -d '"' -f 1-8
om tile "$models/digits.onnx" small.onnx --tile-nodes 40 --extra-flops 5 -v 2>&1 | grep -c 'pass tile'

# For the executor: packed weights, channels last, and no more time than is allowed.
om report "$models/digits.onnx" --target cpu --tile --tile-slowdown 100000 -q | sed -n '/^tiled/,/^$/p'
om report "$models/digits.onnx" --target cpu --tile --tile-slowdown 0 -q | sed -n '/^tiled/p; /too long/p'
om report "$models/digits.onnx" --target cpu --tile --tile-slowdown much
"$ONNXMEM" run "$models/digits.onnx" --fill deterministic --save whole.npz -q
om run "$models/digits.onnx" --fill deterministic --tile --tile-slowdown 100000 --poison --expect whole.npz -q
om plan "$models/digits.onnx" banded.onnx --target cpu --tile --tile-slowdown 100000 -q
om verify banded.onnx -q
om run banded.onnx --fill deterministic --expect whole.npz -q
# A budget of the total is one of the arena when the plan is read; kernels with scratch need a lower peak for it.
om plan "$models/digits.onnx" within.onnx --target cpu --tile --budget 44K -q
om run within.onnx --fill deterministic --expect whole.npz --threads 1 -q
om plan "$models/digits.onnx" within.onnx --target cpu --tile --budget 40K -q
# The smallest arena, whose peak is not the lowest, serves a budget of its size.
om plan "$models/digits.onnx" within.onnx --target cpu --threads 1 --tile --budget 5760 --budget-of arena
om verify within.onnx -q
om run "$models/digits.onnx" --tile --device sim --place all --fill deterministic -q
