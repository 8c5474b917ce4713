# SPDX-License-Identifier: Apache-2.0
# Plans that are not for this model, or not right: status 4.
om plan "$models/digits.onnx" planned.onnx --sidecar plan.json
om verify "$models/digits.onnx"
om verify "$models/dynamic.onnx" --sidecar plan.json
LC_ALL=C sed 's/Softmax/Sigmoid/' planned.onnx >other.onnx
om verify other.onnx
LC_ALL=C sed 's/"arenas":\[{"id":0/"arenas":[{"id":1/' planned.onnx >torn.onnx
om verify torn.onnx
sed 's/\["c1",0,0,2048/["c1",0,64,2048/' plan.json >moved.json
cmp -s plan.json moved.json && echo same
om verify "$models/digits.onnx" --sidecar moved.json
echo '{' >broken.json
om verify "$models/digits.onnx" --sidecar broken.json
om verify "$models/digits.onnx" --sidecar no-such-file.json
om verify no-such-file.onnx
