# A model run in its arena.
om plan "$models/digits.onnx" planned.onnx
om run planned.onnx --fill deterministic
om run planned.onnx --fill deterministic --poison
om run planned.onnx --fill deterministic --no-reuse
om run planned.onnx --fill deterministic --save expected
ls expected
om run "$models/digits.onnx" --fill deterministic --expect expected
om run "$models/digits.onnx" --random 3 --expect expected | sed '$s/digit.*//'
om run planned.onnx

# Nothing goes in; or what is no tensor.
cat >none.ir <<'END'
program "p" ir 8 opset 13
^main() {
	%c = const float32[2] {0.5, -1.0}
	%y = Relu(%c)
	ret %y
}
END
mkdir empty
om run none.ir --data empty --save out
om run none.ir --data out --expect out
cat >list.ir <<'END'
program "p" ir 8 opset 13
^main(%x: seq(float32)) {
	%y = Relu(%x)
	ret %y
}
END
cp out/output_0.pb out/input_0.pb
om run list.ir --data out
om run list.ir --input x:out/output_0.pb

# Bytes in use, in the trace: at each op, and at the end.
om run "$models/digits.onnx" --fill deterministic --profile trace.json >/dev/null
sed -n 's/.*"bytes in use": \([0-9]*\).*/\1/p' trace.json | tr '\n' ' '
echo
