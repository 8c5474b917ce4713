# SPDX-License-Identifier: Apache-2.0
# Plans as they are: in a model, or in a document.
om plan "$models/digits.onnx" planned.onnx -q
om report planned.onnx --stored
"$ONNXMEM" report planned.onnx --csv made.csv --svg made.svg --html made.html >made.txt
"$ONNXMEM" report planned.onnx --stored --csv stored.csv --svg stored.svg --html stored.html >stored.txt
cmp made.csv stored.csv && cmp made.svg stored.svg && echo the pictures are those of the plan that was made
om report planned.onnx --stored --json - | sed -n '/"plan":/,/}/p'
om report "$models/digits.onnx" --stored
"$ONNXMEM" dump "$models/digits.onnx" >digits.ir
om report digits.ir --stored
om run digits.ir --fill deterministic --sidecar doc.json
om report planned.onnx --stored --align 128
om report planned.onnx --stored --all-strategies
om report planned.onnx --sidecar doc.json
om plan "$models/nnc_lag.onnx" lag.onnx -q
om report lag.onnx --stored | tail -8
om plan "$models/digits.onnx" lowered.onnx --target cpu -q
om report lowered.onnx --stored | sed -n '/^  arena\|scratch\|valid/p'
# A document: valid; with two values in one place, which is drawn; with a value outside of the arena, which is not.
om plan "$models/digits.onnx" --sidecar doc.json -q
om report "$models/digits.onnx" --stored --sidecar doc.json | tail -2
sed 's/\["c2",0,2048,/["c2",0,0,/; s/\["r2",0,2048,/["r2",0,0,/' doc.json >overlap.json
om report "$models/digits.onnx" --stored --sidecar overlap.json --ascii --svg overlap.svg --html overlap.html | sed -n '/NOT VALID/p;/ at .* steps/p;/^->/p'
grep -c 'this plan is not valid' overlap.svg
grep -c 'THIS PLAN IS NOT VALID: ' overlap.html
om report "$models/digits.onnx" --stored --sidecar overlap.json --json overlap.out | tail -1
sed -n '/"plan":/,/}/p' overlap.out
sed 's/\["c2",0,2048,/["c2",0,6144,/' doc.json >outside.json
om report "$models/digits.onnx" --stored --sidecar outside.json --svg outside.svg
sed 's/\["c2",0,2048,/["c2",7,2048,/' doc.json >arena.json
om report "$models/digits.onnx" --stored --sidecar arena.json
sed 's/"bound_step":[0-9]*/"bound_step":4000000000/; s/"lower_bound":[0-9]*/"lower_bound":9223372036854775807/' doc.json >bound.json
om report "$models/digits.onnx" --stored --sidecar bound.json | sed -n '/peak at/p;$p'
ls *.svg
