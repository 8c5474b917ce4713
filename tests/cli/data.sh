# SPDX-License-Identifier: Apache-2.0
# Elements from files: .npy, .npz and .pb, right ones and wrong ones.

# npy FILE TYPE SHAPE BYTES [BYTE]: elements whose bytes are all the same, NUL or
# the character BYTE.
npy() {
	printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3), }" >"$1"
	head -c "$4" /dev/zero | tr '\000' "${5:-\\000}" >>"$1"
}

cat >sum.ir <<'END'
program "sum" ir 8 opset 13
^main(%a: float32[2,3], %b: float32[3]) {
	%n = Neg(%b)
	%y = Add(%a, %n) as "minus"
	%z = Relu(%y)
	ret %y, %z
}
END
npy a.npy '<f4' '2, 3' 24 '?'
npy b.npy '<f4' '3,' 12
om run sum.ir --input a:a.npy --input=b:b.npy --save out.npz
om run sum.ir --input a:a.npy --input b:b.npy --expect out.npz
om run sum.ir --input a:a.npy --input b:a.npy

# Outputs become inputs: in a .npz by name, in a folder by place.
cat >made.ir <<'END'
program "made" ir 8 opset 13
^main(%x: float32[2,3]) {
	%c = const float32[3] {1, 2, 3}
	%a = Exp(%x)
	%s = Identity(%c)
	ret %a, %s
}
END
om run made.ir --input x:a.npy --save both.npz
sed 's/%a/%p/g; s/%s/%q/g; s/Exp/Neg/' made.ir >other.ir
om run other.ir --input x:a.npy --save nameless.npz
sed 's/%s/%b/g' made.ir >named.ir
om run named.ir --input x:a.npy --save named.npz
om run sum.ir --data named.npz --save out
om run sum.ir --input named.npz --expect out
om run sum.ir --data nameless.npz
om run sum.ir --data both.npz
ls out
mkdir in
cp a.npy in/input_0.npy
cp b.npy in/input_1.npy
om run sum.ir --data in --expect out.npz
om run sum.ir --data in --expect out
om run sum.ir --data in --expect out --atol 10
om run sum.ir --data in --expect in
om run sum.ir --data in --input a:out/output_1.pb

# Inputs that lack, and such as do not fit.
om run sum.ir --input a:a.npy
om run sum.ir
om run sum.ir --data out
om run sum.ir --input c:a.npy
om run sum.ir --input a.npy
om run sum.ir --input a:no-such-file.npy
om run sum.ir --input a:sum.ir
npy d.npy '<f8' '2, 3' 48
om run sum.ir --input a:d.npy --input b:b.npy
om run sum.ir --input a:b.npy --input b:b.npy
npy short.npy '<f4' '2, 3' 20
om run sum.ir --input a:short.npy --input b:b.npy
npy object.npy '|O' '2, 3' 48
om run sum.ir --input a:object.npy --input b:b.npy

# A model that needs no elements is run on a folder that has none.
cat >none.ir <<'END'
program "none" ir 8 opset 13
^main() {
	%b = const float32[3] {1, 2, 3}
	%y = Exp(%b)
	ret %y
}
END
mkdir empty
om run none.ir --save alone
om run none.ir --data empty --expect alone
om run none.ir --data no-such-folder
om run none.ir --data out.npz

# A planned model: wrong shapes, its sizes as JSON, and a plan that is stale.
om plan "$models/digits.onnx" planned.onnx
npy picture.npy '<f4' '1, 1, 8, 8' 256 '?'
npy wide.npy '<f4' '1, 1, 8, 16' 512
npy ints.npy '<i4' '1, 1, 8, 8' 256
om run planned.onnx --input picture:picture.npy --stats stats.json
sed 's/\("..*_ms": \)[0-9.e-]*/\1T/' stats.json
om run planned.onnx --input picture:wide.npy
om run planned.onnx --input picture:ints.npy
LC_ALL=C sed 's/Softmax/Sigmoid/' planned.onnx >stale.onnx
om run stale.onnx --input picture:picture.npy
om run stale.onnx --input picture:picture.npy --expect out
om run stale.onnx --input picture:picture.npy --passes prune,shapes,liveness,inplace,pack

# A type that NumPy does not have.
cat >brain.ir <<'END'
program "brain" ir 8 opset 13
^main(%x: float32[2,3]) {
	%y = Cast(%x) {to = 16}
	ret %y
}
END
om run brain.ir --input x:a.npy --save brain.npz
om run brain.ir --input x:a.npy --save brain
