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
om report two.ir --passes live,pack
om report two.ir --passes live,pack --order-free
om report two.ir --order-free
om report two.ir --order-free --json - | sed -n '/"order":/,/"inputs"/p; /"peak"/,/]/p'
om report two.ir --order-free --budget 1K
om report two.ir --passes live,pack=pool --order-free
om plan "$models/digits.onnx" any.onnx --order-free
om verify any.onnx
om run any.onnx --formula --save expected
om run any.onnx --formula --poison --expect expected
om plan "$models/branches.onnx" any.onnx --order-free
om verify any.onnx
