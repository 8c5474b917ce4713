# SPDX-License-Identifier: Apache-2.0
# needs: python
# Weights that are inputs too are constants of a run that does not give them: the product reads packed weights. Those that are given
# or filled are read.
"$PYTHON" "$here/cli/defaults.py"
ops() { sed -n 's/.*"type": "\(.*\)",*/\1/p' profile.json | sort | uniq -c | sed 's/^ *//'; }
om run defaults.onnx --fill deterministic --profile profile.json -q
ops
"$ONNXMEM" run defaults.onnx --fill deterministic --precise --save plain.npz -q >/dev/null
om run defaults.onnx --fill deterministic --expect plain.npz --poison -q
om run defaults.onnx --fill deterministic --fill b:value=0 --profile profile.json -q
ops
om run defaults.onnx --fill deterministic --fill w:value=0 --profile profile.json -q
ops
