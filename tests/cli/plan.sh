# SPDX-License-Identifier: Apache-2.0
# A plan written into a model, checked, used, taken out again.
om plan "$models/digits.onnx" planned.onnx
om verify planned.onnx
om verify - <planned.onnx
om strip planned.onnx stripped.onnx
cmp stripped.onnx "$models/digits.onnx" && echo equal
om hash planned.onnx
om strip -v "$models/digits.onnx" again.onnx
om plan "$models/digits.onnx" planned.onnx --sidecar plan.json --annotate model
om verify "$models/digits.onnx" --sidecar plan.json
"$ONNXMEM" plan "$models/digits.onnx" - -q --annotate model | cmp - planned.onnx && echo equal
"$ONNXMEM" plan - - <"$models/digits.onnx" 2>log | "$ONNXMEM" verify - | tail -1; cat log
om plan planned.onnx planned.onnx
om plan planned.onnx no/such/folder.onnx
om plan "$models/digits.onnx" x.onnx --annotate everything
om plan "$models/digits.onnx" x.onnx --compat other
om dump "$models/digits.onnx" | grep -v '^[$-]' >digits.ir
om plan digits.ir x.onnx
om plan "$models/unsorted.onnx" sorted.onnx
om verify sorted.onnx
om plan "$models/function.onnx" inlined.onnx
om verify inlined.onnx
om plan "$models/names.onnx" names.onnx
om verify names.onnx
om run names.onnx --fill deterministic --fill rounds:value=3
om plan "$models/dynamic.onnx" bound.onnx --dim-range N=1..4
om verify bound.onnx
