# SPDX-License-Identifier: Apache-2.0
# needs: python
# TensorFlow Lite models: their tensors are packed, and their offline plan is checked.
"$PYTHON" "$here/cli/tflite.py" free.tflite
om pack free.tflite -o -
om pack - -q -o free.csv <free.tflite
om pack free.csv --check -q
om pack free.tflite --check
"$PYTHON" "$here/cli/tflite.py" good.tflite 0,-1,64,0,64,128,-1
om pack good.tflite --check --ascii | sed -n '/^PASSED/p;/ at .* steps/p'
"$PYTHON" "$here/cli/tflite.py" bad.tflite 0,-1,32,0,64,128,-1
om pack bad.tflite --check
"$PYTHON" "$here/cli/tflite.py" part.tflite 0,-1,64,-1,-1,128,-1
om pack part.tflite --check
"$PYTHON" "$here/cli/tflite.py" other.tflite 0,64
om pack other.tflite --check
# It may not be cut anywhere: every prefix that has the mark of the format is refused.
size=$(wc -c <good.tflite)
for k in 8 20 40 60 100 200 400 600 800 $((size - 40)); do
	head -c "$k" good.tflite >cut.tflite
	"$ONNXMEM" pack cut.tflite --check -q >/dev/null 2>cut.txt
	echo "$? $(sed 's/.*cut.tflite/cut.tflite/' cut.txt)"
done
