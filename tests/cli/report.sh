# The report in each of its forms.
om report "$models/digits.onnx" --ascii
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
# Values that rotate buffers in a loop: as text, and in the picture, at each of their locations.
om report "$models/nnc_lag.onnx" --svg lag.svg | sed -n '/^rotate/,/^$/p'
sed -n 's|.*<title>b0$|&|p; /<title>b0$/{n;p;n;s/<.title>.*//p}' lag.svg | sed 's/.*<title>//'
om report "$models/loop_swap.onnx" --svg - | grep -c 'iterations 0, 2, 4'
