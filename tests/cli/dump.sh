# SPDX-License-Identifier: Apache-2.0
# A model as text, and back.
om dump "$models/branches.onnx"
om dump "$models/branches.onnx" --passes inplace,pack
om dump "$models/branches.onnx" --live
om dump "$models/digits.onnx" >digits.ir; sed -i '1d;$d' digits.ir
om dump digits.ir >again.ir; sed -i '1d;$d' again.ir
cmp digits.ir again.ir && echo equal
om report digits.ir --json - | grep arena_bytes
om dump no-such-file.onnx
om dump no-such-file.ir
printf nonsense >nonsense.ir
om dump nonsense.ir
echo nonsense >nonsense.onnx
om dump nonsense.onnx
: >empty.onnx
om dump empty.onnx
