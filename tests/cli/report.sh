# The report in each of its forms.
om report "$models/digits.onnx" --draw
om report "$models/digits.onnx" --json -
om report "$models/digits.onnx" --csv -
om report "$models/digits.onnx" --align 256 --json - | grep arena_bytes
om report - --json - <"$models/digits.onnx" | grep '"model"'
om report "$models/digits.onnx" --svg plan.svg --csv plan.csv --json plan.json
ls
head -c 40 plan.svg; echo
cp "$models/digits.onnx" m.onnx
om report m.onnx --svg m.onnx
om report m.onnx --svg no/such/folder.svg
om report "$models/branches.onnx"
om report "$models/digits.onnx" --target cpu
om report "$models/digits.onnx" --target tpu
"$ONNXMEM" report "$models/digits.onnx" --svg - | cmp - "$models/../docs/digits.svg" && echo the picture in docs is this one
