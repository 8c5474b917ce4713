# SPDX-License-Identifier: Apache-2.0
# Gradients in one op: functions in the file, kernels in the program; the numbers of the plain form.
om grad "$models/digits.onnx" plain.onnx --loss-fn cross-entropy --optimizer sgd
om grad "$models/digits.onnx" step.onnx --loss-fn cross-entropy --optimizer sgd --fused-gradients
om dump step.onnx | sed 's/{[-0-9.e, ]*}/{..}/'
om run plain.onnx --random 1 --fill label:mod=10 --save plain.npz | tail -2
om run step.onnx --random 1 --fill label:mod=10 --expect plain.npz | tail -3
om run step.onnx --random 1 --fill label:mod=10 --expect plain.npz --poison --rematerialize 30 | tail -3
om plan step.onnx planned.onnx --target cpu
om verify planned.onnx
om run planned.onnx --random 1 --fill label:mod=10 --expect plain.npz | tail -3
om report planned.onnx | sed -n '/^peak/,$p'
om grad "$models/digits.onnx" info.onnx --loss-fn cross-entropy --optimizer sgd --fused-gradients --emit training-info
om grad step.onnx again.onnx --loss loss --wrt w1 --fused-gradients
