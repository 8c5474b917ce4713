# SPDX-License-Identifier: Apache-2.0
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

# An op of a trace has its shapes and its attributes that are integers, so that it can be classed without the model.
cat >trace.ir <<'END'
program "trace" ir 8 opset 13
^main(%x: float32[1,2,4,4], %w: float32[6,1,3,3]) {
	%y = Conv(%x, %w) {group = 2, pads = [1, 1, 1, 1], auto_pad = "NOTSET"}
	%z = Clip(%y, _, _)
	ret %z
}
END
om run trace.ir --fill deterministic --profile trace.json >/dev/null
sed -n '/"inputs"/,/^   }/p' trace.json | tr -d ' \n'
echo

# The shortest call is not longer than the mean.
om run trace.ir --fill deterministic --repeat 20 --profile trace.json >/dev/null
awk -F '[:,]' '/"calls"/ {n = $2} /"ms"/ {sum = $2} /"least_ms"/ {print ($2 > 0 && $2 <= sum / n ? "shortest call" : "WRONG " $2 " " sum)}' trace.json

# A plan made for the run has the scratch of kernels in its arena; a plan for any consumer leaves it outside, and
# --target makes a new plan.
om run "$models/digits.onnx" --fill deterministic | sed -n '/^arena/p'
om run "$models/digits.onnx" --fill deterministic --target generic | sed -n '/^arena/p'
om run planned.onnx --fill deterministic | sed -n '/^arena/p'
om run planned.onnx --fill deterministic --target cpu | sed -n '/^arena/p'

# Ops that only copy count as copied, unless the plan makes them views: the result is the caller's memory, as is %x.
cat >copies.ir <<'END'
program "copies" ir 8 opset 13
^main(%x: float32[4]) {
	%y = Identity(%x)
	%a = Neg(%x)
	%v = Identity(%a)
	%z = Relu(%v)
	ret %y, %z
}
END
om run copies.ir --fill deterministic --stats stats.json | sed -n '/^arena/p'
grep copied stats.json

# A size that the file declares and the data decide: the value is outside of the plan.
cat >traced.ir <<'IR'
program "traced" ir 8 opset 13
^traced(%x: float32[8]) {
	%axes = const int64[1] {0}
	%nz: int64[1,3] = NonZero(%x)
	%i: int64[3] = Squeeze(%nz, %axes)
	%y: float32[3] = Gather(%x, %i)
	ret %y
}
IR
om run traced.ir --fill x:value=1
