# SPDX-License-Identifier: Apache-2.0
# Names that mean something in the form that they are written in.
printf 'program "p" ir 8 opset 13\n^main(%%x: float32[4,16]) {\n' >names.ir
printf '\t%%"a<b>&\\"c\\"" = Relu(%%x)\n' >>names.ir
printf '\t%%"d,\\x01\\xc3\\xa9\\xff" = Softmax(%%"a<b>&\\"c\\"")\n' >>names.ir
printf '\t%%y = Add(%%"a<b>&\\"c\\"", %%"d,\\x01\\xc3\\xa9\\xff")\n\tret %%y\n}\n' >>names.ir
om dump names.ir
om report names.ir --csv - | sed 's/[^ -~]/?/g'
"$ONNXMEM" report names.ir --svg - | grep -c '<title>a&lt;b&gt;&amp;&quot;c&quot;$'
om report names.ir --json - | sed -n '/"peak"/,/^  },/p'
om report names.ir | sed -n '/live at the peak/,/^$/p'
