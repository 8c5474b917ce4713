# SPDX-License-Identifier: Apache-2.0
# The digest of a graph.
om hash "$models/digits.onnx"
om hash - <"$models/digits.onnx"
om hash "$models/digits.onnx" --full
om hash "$models/dynamic.onnx"
om hash no-such-file.onnx
