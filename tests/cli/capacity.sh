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
# The largest size of a range fills the buffer: the rows are all of it there, but not in smaller sizes.
om report sum.ir --dim S=1 --dim-range P=0..7 --target cpu --capacity 8 | grep -E 'states|copied|past.* to '
om report step.ir $small --capacity 32
om report step.ir $small --target cpu --capacity 7
om report step.ir $small --target cpu --capacity 0
# A prefill, a step, and all between them: one plan, one arena.
om report step.ir --dim-range S=1..4 --dim-range P=0..7 --target cpu --capacity 11 | grep -E 'inputs:|arena|states|copied|ranges'
om report step.ir --dim-range S=1..5 --dim-range P=0..7 --target cpu --capacity 11
om plan "$models/decoder.onnx" ranged.onnx --dim-range sequence_length=1..8 --dim-range past_sequence_length=0..24 --target cpu --capacity 32
om verify ranged.onnx | tail -2
om report ranged.onnx --stored | grep -E 'in place|states|copied'
for sizes in "1 0" "8 0" "1 24" "8 24" "3 5"; do
	dims="--dim sequence_length=${sizes% *} --dim past_sequence_length=${sizes#* }"
	om run "$models/decoder.onnx" $dims --fill deterministic --save own.npz -q >/dev/null
	om run ranged.onnx $dims --fill deterministic --poison --expect own.npz | tail -2
done
om run ranged.onnx --dim sequence_length=1 --dim past_sequence_length=25 --fill deterministic
# Inputs from files bind the sizes.
rows() {
	printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, $1, 4), }" >rows.npy
	head -c $((32 * $1)) /dev/zero | tr '\0' '>' >>rows.npy
}
for past in 0 5 24 25; do
	rows $past
	files="--input past_key_values.0.key:rows.npy --input past_key_values.0.value:rows.npy"
	om run "$models/decoder.onnx" --dim sequence_length=2 $files --fill deterministic --save own.npz -q >/dev/null
	om run ranged.onnx --dim sequence_length=2 $files --fill deterministic --poison --expect own.npz | tail -2
done
# The document of a plan has the states that it was made with: they hold without the options.
om plan "$models/decoder.onnx" tied.onnx --dim sequence_length=1 --dim past_sequence_length=7 --target cpu --tie auto -q
om report tied.onnx --stored -q | grep -E 'states|copied|to present'
om plan "$models/decoder.onnx" alone.onnx --sidecar plan.json --dim sequence_length=1 --dim past_sequence_length=7 --target cpu --capacity 32 -q
om report "$models/decoder.onnx" --stored --sidecar plan.json -q | grep -E 'in place|states|copied'
om run "$models/decoder.onnx" --sidecar plan.json --fill deterministic --repeat 2 | tail -2 | cut -d ';' -f 1
om run "$models/decoder.onnx" --sidecar plan.json --dim past_sequence_length=8 --fill deterministic
sed 's/"present.0.key":"past_key_values.0.key"/"present.0.key":"input_id"/' plan.json >other.json
om verify "$models/decoder.onnx" --sidecar other.json
sed 's/"present.0.key":"past_key_values.0.key",//' plan.json >other.json
om verify "$models/decoder.onnx" --sidecar other.json
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

# A ring is no cache of the model, for which a plan in a file would be.
om plan "$models/group_decoder.onnx" ring.onnx --capacity 16 --rings --target cpu
# Dims that no option gives: a step of one token for all pasts that there is room for.  Each dim has a name of its own, as torch gives it; the mask is cut to
# the keys, so it has as many columns at least.
cat >open.ir <<'IR'
program "open" ir 10 opset 18
^main(%input_ids: int64[s0,s1], %mask: float32[s2,s3], %past.0.key: float32[s0,1,s4,s5], %past.0.value: float32[s0,1,s6,4]) {
	%places = const int64[2] {1, 3}
	%row = const int64[4] {1, 1, 1, 4}
	%zero = const int64[1] {0}
	%one = const int64[1] {1}
	%heads = const int64[2] {1, 2}
	%ids = Cast(%input_ids) {to = 1}
	%u = Unsqueeze(%ids, %places)
	%new = Expand(%u, %row)
	%present.0.key: float32[s0,1,s8,s5] = Concat(%past.0.key, %new) {axis = 2}
	%present.0.value: float32[s0,1,s9,4] = Concat(%past.0.value, %new) {axis = 2}
	%shape = Shape(%present.0.key) {start = 2, end = 3}
	%cut = Slice(%mask, %zero, %shape, %one)
	%kt = Transpose(%present.0.key) {perm = [0, 1, 3, 2]}
	%s = MatMul(%new, %kt)
	%mask4 = Unsqueeze(%cut, %heads)
	%m = Add(%s, %mask4)
	%w = Softmax(%m)
	%y = MatMul(%w, %present.0.value)
	ret %y, %present.0.key, %present.0.value
}
IR
om report open.ir --target cpu --capacity 16 | grep -E 'inputs:|in place|states|copied|ranges|arena ='
om plan "$models/decoder.onnx" found.onnx --target cpu --capacity 16
for past in 1 15 16; do
	dims="--dim sequence_length=1 --dim past_sequence_length=$past"
	om run "$models/decoder.onnx" $dims --fill deterministic --save own.npz -q >/dev/null
	om run found.onnx $dims --fill deterministic --poison --expect own.npz | tail -2
done
# What options give is not found, and what nothing tells is asked for.
om report open.ir --target cpu --capacity 16 --dim-range s1=1..4 --dim s0=2 | grep -E 'inputs:|copied'
sed 's/%mask: float32\[s2,s3\]/%mask: float32[s2,s3,s7]/; s/^\t%cut = .*/\t%cut = ReduceSum(%mask, %heads)/; s/%mask4 = .*/%mask4 = Reshape(%cut, %ones)/
	s/^\t%one = .*/&\n\t%ones = const int64[4] {1, 1, 1, 1}/' open.ir >asked.ir
om plan asked.ir asked.onnx --target cpu --capacity 16
