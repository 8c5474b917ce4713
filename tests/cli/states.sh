# SPDX-License-Identifier: Apache-2.0
# States by the names of inputs and outputs, and why an output is not in the memory of its input.
cat >step.ir <<'IR'
program "step" ir 10 opset 18
^main(%ids: int64[1,1], %past_key_values.0.key: float32[1,2,P,4], %past_h: float32[8], %past_c: float32[8], %past_conv.0: float32[8], %x: float32[8], %new: float32[1,2,1,4]) {
	%present.0.key: float32[1,2,T,4] = Concat(%past_key_values.0.key, %new) {axis = 2}
	%present_h: float32[8] = Add(%past_h, %x)
	%present_c: float32[8] = Mul(%past_c, %x)
	%late = Sub(%past_c, %present_c)
	%present_conv.0: float32[8] = CumSum(%past_conv.0, %axis)
	%axis = const int32[] {0}
	ret %late, %present.0.key, %present_h, %present_c, %present_conv.0
}
IR
sed -i '/%axis = const/d; s/^\t%present.0.key/\t%axis = const int32[] {0}\n&/' step.ir
om report step.ir --dim P=5 --tie auto | grep -E 'in place|states|copied|replace|past_.* to '
om report step.ir --dim P=5 --tie past_h=present_h --json - | sed -n '/"states"/,/]/p'
om report step.ir --dim P=5 --json - | grep -c state_bytes
om run step.ir --dim P=5 --fill deterministic --target generic --save own.npz | tail -1
om run step.ir --dim P=5 --tie past_=present_ --fill deterministic --expect own.npz --poison | tail -4
om run step.ir --dim P=5 --tie auto --io past_h=keep --fill deterministic --expect own.npz --no-reuse | tail -2
om report step.ir --dim P=5 --tie auto --parallel-safe | grep ' to '
om report step.ir --dim P=5 --tie past_h
om report step.ir --dim P=5 --tie past_h=late
om report "$models/digits.onnx" --tie auto | grep -E 'states|warning'
# An op that reads the old state, and whose definition does not allow that its output is there.
cat >product.ir <<'IR'
program "product" ir 10 opset 18
^main(%past_m: float32[2,2], %x: float32[2,2]) {
	%present_m: float32[2,2] = MatMul(%past_m, %x)
	ret %present_m
}
IR
om report product.ir --tie auto | grep ' to '
# A plan may have an output in the memory of a state that another output replaces: nothing is lost when both go to the next run.
cat >crossed.ir <<'IR'
program "crossed" ir 10 opset 18
^main(%x: float32[2,2], %past_a: float32[2,2], %past_b: float32[2,2]) {
	%w: float32[2,2] = const float32[2,2] {1, -1, 2, 0.5}
	%present_a: float32[2,2] = MatMul(%x, %w)
	%present_b: float32[2,2] = Sub(%past_a, %present_a)
	%seen: float32[2,2] = Identity(%past_b)
	ret %present_a, %seen, %present_b
}
IR
crossed="om run crossed.ir --tie past_=present_ --fill deterministic --repeat 4"
$crossed --no-reuse --save crossed.npz -q | tail -1
$crossed --target generic --passes shapes,alias-io,inplace,pack --expect crossed.npz -q | tail -2
