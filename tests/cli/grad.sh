# SPDX-License-Identifier: Apache-2.0
# Gradients of a Scan of a file that says along which axes it stacks: what is kept for the
# way back is stacked, too.
om grad "$models/scans.onnx" grad.onnx --loss-fn mse --wrt x
om dump grad.onnx | grep -o 'scan_output_axes.*}'
om run grad.onnx --fill deterministic --poison | grep grad
