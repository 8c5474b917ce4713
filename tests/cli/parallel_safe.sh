# SPDX-License-Identifier: Apache-2.0
# Plans that hold in every order of the ops.  Two branches: three of five values
# at once in the order of the file, all five in some other one.
cat >two.ir <<'END'
program "two" ir 8 opset 13
^main(%x: float32[160]) {
	%i = const int64[] {0}
	%a = CumSum(%x, %i)
	%b = CumSum(%a, %i)
	%c = CumSum(%a, %i)
	%d = CumSum(%b, %i)
	%e = CumSum(%c, %i)
	%y = Add(%d, %e)
	ret %y
}
END
om report two.ir --passes liveness,pack
om report two.ir --passes liveness,pack --parallel-safe
om report two.ir --parallel-safe
om report two.ir --parallel-safe --json - | sed -n '/"schedule":/,/"inputs"/p; /"peak"/,/]/p'
om report two.ir --parallel-safe --budget 1K --budget-of arena
om report two.ir --passes liveness,pack=pool-best-fit --parallel-safe
om plan "$models/digits.onnx" any.onnx --parallel-safe
om verify any.onnx
om run any.onnx --fill deterministic --save expected
om run any.onnx --fill deterministic --poison --expect expected
om plan "$models/branches.onnx" any.onnx --parallel-safe
om verify any.onnx
