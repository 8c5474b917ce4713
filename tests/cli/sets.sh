# SPDX-License-Identifier: Apache-2.0
# Sets of models in one arena: a prefill and steps of one file, and parts that repeat; runs equal those of the parts by hand.
cp "$models/decoder.onnx" "$models/nnc_chain.onnx" .
cat >decoder.json <<'J'
{
  "schema": "onnxmem-set/1",
  "parts": [
    {"name": "prefill", "model": "decoder.onnx", "dims": {"sequence_length": [1, 4], "past_sequence_length": 0}},
    {"name": "step", "model": "decoder.onnx", "dims": {"sequence_length": 1, "past_sequence_length": [1, 7]}}
  ],
  "links": [
    ["prefill.past_key_values.*", "prefill.present.*", "step.past_key_values.*", "step.present.*"]
  ],
  "order": ["prefill", ["step"]]
}
J
# inputs NAME PAST TOKEN...: a file with what a run of decoder.onnx takes, without caches.
inputs() {
	name=$1 past=$2
	shift 2
	all=$(($past + $#)) ones=1 at=$past
	for k in $(seq 2 $all); do ones="$ones, 1"; done
	for k in $(seq $(($past + 1)) $(($all - 1))); do at="$at, $k"; done
	cat >$name.ir <<IR
program "inputs" ir 10 opset 18
^main() {
	%input_ids = const int64[1,$#] {$(echo "$*" | sed 's/ /, /g')}
	%attention_mask = const int64[1,$all] {$ones}
	%position_ids = const int64[1,$#] {$at}
	%past_key_values.0.key = const float32[1,2,0,4] {}
	%past_key_values.0.value = const float32[1,2,0,4] {}
	ret %input_ids, %attention_mask, %position_ids, %past_key_values.0.key, %past_key_values.0.value
}
IR
	"$ONNXMEM" run $name.ir --save $name.npz -q >/dev/null 2>&1 || echo "no $name.npz"
}
inputs zero 0 3 1 4
inputs one 3 1
inputs two 4 5
inputs three 5 9
om set plan decoder.json plan.json --target generic
om set verify decoder.json plan.json --target generic
runs="--run prefill=zero.npz --run step=one.npz --run step=two.npz --run step=three.npz"
om set run decoder.json plan.json $runs --save all --target generic
# The last step has all tokens behind it: a prefill of all of them has the same last logits and caches.
inputs whole 0 3 1 4 1 5 9
"$ONNXMEM" run decoder.onnx --data whole.npz --save whole-out.npz >/dev/null 2>&1 || echo failed
mkdir want && cp all/0-prefill.npz all/1-step.npz all/2-step.npz want
cat >last.ir <<'IR'
program "last" ir 10 opset 18
^main(%logits: float32[1,6,24], %present.0.key: float32[1,2,6,4], %present.0.value: float32[1,2,6,4]) {
	%from = const int64[1] {5}
	%to = const int64[1] {6}
	%axis = const int64[1] {1}
	%last = Slice(%logits, %from, %to, %axis)
	%k = Identity(%present.0.key)
	%v = Identity(%present.0.value)
	ret %last, %k, %v
}
IR
"$ONNXMEM" run last.ir --data whole-out.npz --save last.npz -q >/dev/null 2>&1 || echo failed
cat >names.ir <<'IR'
program "names" ir 10 opset 18
^main(%last: float32[1,1,24], %k: float32[1,2,6,4], %v: float32[1,2,6,4]) {
	%logits = Identity(%last)
	%present.0.key = Identity(%k)
	%present.0.value = Identity(%v)
	ret %logits, %present.0.key, %present.0.value
}
IR
"$ONNXMEM" run names.ir --data last.npz --save want/3-step.npz -q >/dev/null 2>&1 || echo failed
for how in "--poison" "--target generic --poison" "--capacity 8 --poison" "--io arena --poison" "--precise --threads 2"; do
	om set run decoder.json $runs --expect want $how | grep -v 'arena of\|largest part'
done
# Iterations of two parts; the values between them go both ways.
cat >chain.json <<'J'
{
  "schema": "onnxmem-set/1",
  "parts": [
    {"name": "b", "model": "nnc_chain.onnx"},
    {"name": "c", "model": "nnc_chain.onnx"},
    {"name": "a", "model": "nnc_chain.onnx"}
  ],
  "links": [["a.y", "b.x", "c.y"], ["b.y", "c.x"]],
  "order": ["a", ["b", "c"]]
}
J
"$ONNXMEM" run nnc_chain.onnx --fill deterministic --save y0.npz -q >/dev/null 2>&1
cat >x.ir <<'IR'
program "x" ir 10 opset 18
^main(%y: float32[1,4,5,5]) {
	%x = Identity(%y)
	ret %x
}
IR
mkdir chain
k=0
for part in a b c b c; do
	"$ONNXMEM" run x.ir --data y$k.npz --save x$k.npz -q >/dev/null 2>&1 || echo failed
	"$ONNXMEM" run nnc_chain.onnx --data x$k.npz --save chain/$k-$part.npz -q >/dev/null 2>&1 || echo failed
	cp chain/$k-$part.npz y$(($k + 1)).npz
	k=$(($k + 1))
done
om set report chain.json --target generic
om set run chain.json --run a=x0.npz --run b --run c --run b --run c --expect chain --rtol 0 --atol 0 --poison | grep -v 'arena of\|largest part'
om set run chain.json --target generic --run a=x0.npz --run c
om set run chain.json --target generic --run b=x1.npz
om set run chain.json --target generic --run a
# Plans that are wrong: a value where its part runs, or where another part runs before it is read; an arena that is too small.
generic="--target generic"
om set plan chain.json plan2.json $generic >/dev/null
# refused MANIFEST EDIT: verification of plan2.json after an edit.
refused() {
	sed "$2" plan2.json >wrong.json
	cmp -s plan2.json wrong.json && echo "$2 changes nothing"
	om set verify $1 wrong.json $generic
}
tr -d '\n ' <plan2.json | sed 's/"offsets":\[[0-9]*\]/"offsets":[0]/g' >wrong.json
om set verify chain.json wrong.json $generic
refused chain.json 's/"arena_bytes": [0-9]*/"arena_bytes": 64/'
refused chain.json 's/"bytes": [0-9]*/"bytes": 0/'
refused chain.json 's/"offset": 0/"offset": 32/'
refused chain.json 's/canon1:sha256:./canon1:sha256:?/'
refused chain.json 's/"name": "x"/"name": "y"/'
refused decoder.json 's/"align": 64/"align": 128/'
om set verify chain.json chain.json $generic
# A value whose buffers take turns is in either, by how often the loop runs: another part may be in the place of none of them.
cat >turns.json <<'J'
{
  "schema": "onnxmem-set/1",
  "parts": [
    {"name": "first", "model": "nnc_chain.onnx"},
    {"name": "turn", "model": "nnc_chain.onnx"},
    {"name": "again", "model": "nnc_chain.onnx"},
    {"name": "last", "model": "nnc_chain.onnx"}
  ],
  "links": [["first.y", "turn.x", "turn.y", "again.x", "again.y", "last.x"]],
  "order": ["first", ["turn"], ["again"], "last"]
}
J
om set plan turns.json turns-plan.json $generic
for buffer in 1 2; do
	tr -d '\n ' <turns-plan.json | sed 's/},{/},\n{/g' >turns-lines.json
	at=$(sed -n 's/.*"offsets":\[\([0-9]*\),\([0-9]*\)\].*/\'$buffer'/p' turns-lines.json)
	sed "/\"name\":\"last\"/s/\"offset\":[0-9]*/\"offset\":$at/;s/\"arena_bytes\":[0-9]*/\"arena_bytes\":100000/" turns-lines.json >wrong.json
	om set verify turns.json wrong.json $generic
done
# Both loops may be left out.
om set run turns.json --run first=x0.npz --run last --poison $generic | grep -c 'last'
cat >between.json <<'J'
{
  "schema": "onnxmem-set/1",
  "parts": [
    {"name": "first", "model": "nnc_chain.onnx"},
    {"name": "between", "model": "decoder.onnx", "dims": {"sequence_length": 16, "past_sequence_length": 0}},
    {"name": "last", "model": "nnc_chain.onnx"}
  ],
  "links": [["first.y", "last.x"]],
  "order": ["first", "between", "last"]
}
J
om set report between.json $generic
om set plan between.json plan2.json $generic >/dev/null
tr -d '\n ' <plan2.json | sed 's/"offsets":\[[0-9]*\]/"offsets":[1472]/g' >wrong.json
om set verify between.json wrong.json $generic
# Sizes that are not planned, and manifests that are wrong.
inputs large 0 1 2 3 4 5 6 7 8 9
om set run decoder.json $generic --run prefill=large.npz
wrong() {
	sed "$1" decoder.json >bad.json
	om set report bad.json
}
wrong 's/onnxmem-set/other/'
wrong 's/\["step"\]/"other"/'
wrong 's/, \["step"\]//'
wrong 's/"prefill.present.\*"/"prefill.absent.*"/'
wrong 's/"prefill.present.\*"/"other.present.*"/'
wrong 's/"prefill.present.\*"/"prefill.present.0.key"/'
wrong 's/"prefill.past_key_values.\*"/"prefill.past_key_values.*", "step.past_key_values.*"/'
wrong 's/\[1, 7\]/[1, 100000]/'
wrong 's/\[1, 7\]/[7, 1]/'
wrong 's/\[1, 7\]/"batch + 1"/'
wrong 's/"dims"/"dim"/'
wrong 's/decoder.onnx/nothing.onnx/'
sed 's/"prefill.past_key_values.\*", //' decoder.json >bad.json
om set report bad.json --capacity 8
om set walk decoder.json
om set plan decoder.json
om set run decoder.json
# A batch that is given, and one that is not.
cp "$models/dynamic.onnx" .
cat >batches.json <<'J'
{
  "schema": "onnxmem-set/1",
  "parts": [
    {"name": "three", "model": "dynamic.onnx", "dims": {"N": 3}},
    {"name": "one", "model": "dynamic.onnx"}
  ],
  "links": [],
  "order": ["three", "one"]
}
J
om set report batches.json $generic | head -n 4
# Inputs that are constants of a part: the branches that they decide are left out, and no run is given them.
cp "$models/branches.onnx" .
cat >values.json <<'J'
{
  "schema": "onnxmem-set/1",
  "parts": [
    {"name": "narrow", "model": "branches.onnx", "values": {"which": false}},
    {"name": "wide", "model": "branches.onnx", "values": {"which": [true]}}
  ],
  "links": [["narrow.z", "wide.x"]],
  "order": ["narrow", "wide"]
}
J
mkdir values
cat >again.ir <<'IR'
program "again" ir 10 opset 18
^main(%z: float32[2,16]) {
	%x = Identity(%z)
	ret %x
}
IR
"$ONNXMEM" run again.ir --fill deterministic --save narrow.npz -q >/dev/null 2>&1 || echo failed
"$ONNXMEM" run branches.onnx --value which=0 --data narrow.npz --save values/0-narrow.npz -q >/dev/null 2>&1 || echo failed
"$ONNXMEM" run again.ir --data values/0-narrow.npz --save wide.npz -q >/dev/null 2>&1 || echo failed
"$ONNXMEM" run branches.onnx --value which=1 --data wide.npz --save values/1-wide.npz -q >/dev/null 2>&1 || echo failed
for how in "--poison" "--target generic --poison" "--precise"; do
	om set run values.json --run narrow=narrow.npz --run wide --expect values $how | grep -v 'arena of\|largest part'
done
om set report values.json $generic
for value in '"yes"' 1 '[true, false]' '{}'; do
	sed "s/\[true\]/$value/" values.json >bad.json
	om set report bad.json
done
sed 's/"which": false/"who": false/' values.json >bad.json
om set report bad.json
sed 's/{"which": false}/[false]/' values.json >bad.json
om set report bad.json
# A value and a link of one input contradict one another; a value beyond the type is none.
sed 's/{"which": \[true\]}/{"which": true, "x": 2}/' values.json >bad.json
om set report bad.json
sed 's/{"which": false}/{"which": false, "x": 1e300}/' values.json >bad.json
om set report bad.json
