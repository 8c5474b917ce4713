# SPDX-License-Identifier: Apache-2.0
# Caches with spare rows: new rows are written in place, and a run takes and gives the rows of the model.
cat >step.ir <<'IR'
program "step" ir 10 opset 18
^main(%q: float32[1,2,S,4], %past.0.key: float32[1,2,P,4], %past.0.value: float32[1,2,P,4], %new: float32[1,2,S,4]) {
	%present.0.key: float32[1,2,T,4] = Concat(%past.0.key, %new) {axis = 2}
	%present.0.value: float32[1,2,T,4] = Concat(%past.0.value, %q) {axis = 2}
	%kt = Transpose(%present.0.key) {perm = [0, 1, 3, 2]}
	%s = MatMul(%q, %kt)
	%w = Softmax(%s)
	%y = MatMul(%w, %present.0.value)
	ret %y, %present.0.key, %present.0.value
}
IR
small="--dim S=1 --dim P=7"
om report step.ir $small --target cpu --tie auto | grep -E 'arena|states|copied|to present'
om report step.ir $small --target cpu --capacity 32 | grep -E 'inputs:|arena|states|copied|to present'
om run step.ir $small --fill deterministic --save own.npz --tie past=present | tail -2
om run step.ir $small --fill deterministic --capacity 32 --expect own.npz | tail -6
om run step.ir $small --fill deterministic --capacity 8 --poison --repeat 2 --expect own.npz --rtol 0 --atol 0 | tail -2
om run step.ir $small --fill deterministic --capacity 32 --no-reuse --expect own.npz --rtol 0 --atol 0 | tail -2
om run step.ir $small --fill deterministic --capacity 32 --precise --expect own.npz | tail -2
# The first step, without a past.
om run step.ir --dim S=5 --dim P=0 --fill deterministic --target cpu --save own.npz | tail -1
om run step.ir --dim S=5 --dim P=0 --fill deterministic --capacity 32 --poison --expect own.npz --rtol 0 --atol 0 | tail -2
# What is read in another form is copied.
sed 's/^\t%kt = .*/\t%sum = CumSum(%present.0.key, %two)\n\t%kt = Transpose(%sum) {perm = [0, 1, 3, 2]}/; s/^\t%present.0.key:/\t%two = const int32[] {2}\n&/' step.ir >sum.ir
om report sum.ir $small --target cpu --capacity 32 | grep -E 'states|copied|past.* to '
om report sum.ir $small --target cpu --capacity 32 --json - | sed -n '/"states"/,/}/p'
om report step.ir $small --capacity 32
om report step.ir $small --target cpu --capacity 7
om report step.ir $small --target cpu --capacity 0
om report step.ir --dim S=1 --dim-range P=1..7 --target cpu --capacity 32
# A dim that is called by other dims follows from them; its own number has precedence.
cat >mask.ir <<'IR'
program "mask" ir 10 opset 18
^main(%ids: float32[N,"past + new"], %past: float32[N,"past"], %new: float32[N,"new"], %twice: float32["2*(past//2) + new"]) {
	%all = Concat(%past, %new) {axis = 1}
	%y = Add(%all, %ids)
	ret %y, %twice
}
IR
om report mask.ir --dim N=1 --dim past=7 --dim new=2 | grep inputs:
om report mask.ir --dim N=1 --dim past=7 --dim new=2 --dim "2*(past//2) + new=1" | grep inputs:
om run mask.ir --input-shape past:2,3 --input-shape new:2,1 --fill deterministic | grep '^y'
om run mask.ir --input-shape past:2,3 --input-shape new:2,1 --input-shape ids:2,5 --fill deterministic
