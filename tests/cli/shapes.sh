# SPDX-License-Identifier: Apache-2.0
# Inputs' shapes on the command line.
om report "$models/dynamic.onnx"
om report "$models/dynamic.onnx" --default-dim 2
om report "$models/dynamic.onnx" --dim N=2 --json - | grep -A3 '"dims"'
om report "$models/dynamic.onnx" --dim=N=2 --dim NN=3
om report "$models/dynamic.onnx" --dim N
om report "$models/dynamic.onnx" --dim-range N=1..3 --default-dim 1 --json - | grep -A3 '"dims"'
om report "$models/dynamic.onnx" --dim-range N=3..1
om report "$models/digits.onnx" --input-shape picture:1,1,8,8 --json - | grep arena_bytes
om report "$models/digits.onnx" --overwrite-input-shape 1x1x8x8 --json - | grep arena_bytes
om report "$models/digits.onnx" --input-shape 'picture:[1,1,8,8]' --json - | grep arena_bytes
om report "$models/digits.onnx" --input-shape 1,1,9,9
om report "$models/digits.onnx" --input-shape picture:1,1
om report "$models/digits.onnx" --input-shape photo:1,1,8,8
om report "$models/digits.onnx" --input-shape picture:1,x
om report "$models/digits.onnx" --input-shape picture:
om report "$models/branches.onnx" --input-shape 1,2

# One input has one shape; a planned model has the shapes of its plan, and a run with that plan requires them.
om report "$models/dynamic.onnx" --input-shape 4,1,6,6 --input-shape 8,1,6,6
om report "$models/dynamic.onnx" --dim N=4 --input-shape 8,1,6,6
om plan "$models/dynamic.onnx" planned.onnx --dim N=4
om report planned.onnx --json - | grep -A3 '"dims"'
om report planned.onnx --dim N=2 --json - | grep -A3 '"dims"'
for shape in "--dim N=8" "--dim M=4" "--input-shape 8,1,6,6" "--default-dim 3" "--dim N=4" "--input-shape 4,1,6,6"; do
	om run planned.onnx --fill deterministic $shape | grep -v '^arena\|^y'
done
om run planned.onnx --fill deterministic --dim N=8 --target cpu | grep '^y'

# Dims of the data may be given, too, if they are the same.
cat >eight.ir <<'IR'
program "eight" ir 8 opset 17
^eight() {
	%dims = const int64[4] {8, 1, 6, 6}
	%one = const float32[] {1.0}
	%x = Expand(%one, %dims)
	ret %x
}
IR
"$ONNXMEM" run eight.ir --save eight.npz >/dev/null
for dim in N=8 N=4; do om run "$models/dynamic.onnx" --dim $dim --data eight.npz | grep -v '^arena\|^y'; done
om run "$models/dynamic.onnx" --dim-range N=1..32 --data eight.npz | grep -o '^y .*\[.*\]\|^->.*'

# What is open is named at once; a batch is 1.
cat >open.ir <<'IR'
program "open" ir 8 opset 17
^main(%x: float32[batch,3,height,width], %y: float32[batch,length], %z: float32[2,?]) {
	%a = Relu(%x)
	%b = Relu(%y)
	%c = Relu(%z)
	ret %a, %b, %c
}
IR
om report open.ir
om report open.ir --dim height=4 --dim width=4 --dim length=8 --align 16 -q
om report open.ir --dim height=4 --dim width=4 --dim length=8 --input-shape z:2,7 --json - | grep -A5 '"dims"'
om report open.ir --dim batch=2 --dim height=4 --dim width=4 --dim length=8 --input-shape z:2,7 --all-strategies | head -2
om report open.ir --default-dim 4 --json - | grep -A5 '"dims"'
# Without numbers there are formulas.
cat >sum.ir <<'IR'
program "sum" ir 8 opset 17
^main(%x: float32[batch,16,length], %w: float32[16,16]) {
	%t = Transpose(%x) {perm = [0, 2, 1]}
	%a = MatMul(%t, %w)
	%b = Relu(%t)
	%c = Add(%a, %b)
	ret %c
}
IR
om report sum.ir
om report sum.ir --json -
om report sum.ir --dim length=3
sed 's/MatMul(%t, %w)/AveragePool(%x) {kernel_shape = [2]}/' sum.ir >window.ir
om report window.ir --default-dim 1
om report sum.ir --csv -
om plan sum.ir --export csv:-
# Two inputs call dims alike that are not equal: each has its own, unless a number is given by name.
cat >twice.ir <<'IR'
program "twice" ir 9 opset 18
^main(%m: float32[1,n], %x: float32[1,n,2], %z: float32[n,2]) {
	%a = ReduceSum(%m) {keepdims = 0}
	%y: float32[1,n,2] = Mul(%x, %a)
	%w: float32[n,2] = Relu(%z)
	ret %y, %w
}
IR
om report twice.ir --input-shape m:1,9 --input-shape x:1,4,2 --input-shape z:4,2 | grep -E 'inputs:|arena'
om run twice.ir --input-shape m:1,9 --input-shape x:1,4,2 --input-shape z:4,2 --fill deterministic | grep -v arena
om report twice.ir --input-shape m:1,9 --input-shape x:1,4,2
om report twice.ir --input-shape m:1,9 --input-shape x:1,4,2 --dim n=9
om report twice.ir --input-shape m:1,9 --input-shape x:1,9,2 --csv -
