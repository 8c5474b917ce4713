# SPDX-License-Identifier: Apache-2.0
# Inputs and outputs in the arena, the total, and budgets of it.
om report "$models/digits.onnx" | grep -E 'arena|bound|weights|inputs|total'
om report "$models/digits.onnx" --io arena | grep -E 'arena|bound|weights|inputs|total'
om report "$models/digits.onnx" --io keep | grep -E 'arena|bound|total'
om report "$models/digits.onnx" --io arena --io digit=caller | grep -E 'arena|total'
om report "$models/digits.onnx" --io arena --parallel-safe | grep -E 'arena|bound'
om report "$models/digits.onnx" --io arena --json - | grep -E '_bytes": '
om plan "$models/digits.onnx" planned.onnx --io arena
om verify planned.onnx
om run "$models/digits.onnx" --fill deterministic --target generic --precise --save caller.npz | tail -1
om run planned.onnx --fill deterministic --precise --expect caller.npz --rtol 0 --atol 0 | tail -2
for io in arena keep picture=arena digit=arena; do
	om run "$models/digits.onnx" --fill deterministic --target generic --precise --io "$io" --poison --repeat 3 \
		--expect caller.npz --rtol 0 --atol 0 | tail -2
done

# An input that nothing reads, one that is a result, and one that dies first.
cat >ends.ir <<'IR'
program "ends" ir 8 opset 14
^main(%x: float32[64], %y: float32[64], %unread: float32[16]) {
	%a = Relu(%x)
	%b = Add(%a, %y)
	%c = Neg(%b)
	ret %c, %y
}
IR
om report ends.ir --io arena | grep -E 'arena|bound'
om report ends.ir --io keep | grep -E 'arena|bound'

# The same in any order: what begins when an input is not read any more may not take its memory.
cat >chain.ir <<'IR'
program "chain" ir 8 opset 17
^main(%x: float32[4,4], %w: float32[4,4], %unread: float32[16]) {
	%a = MatMul(%x, %w)
	%b = MatMul(%a, %w)
	%c = MatMul(%b, %w)
	ret %c
}
IR
cat >state.ir <<'IR'
program "state" ir 11 opset 17
^step(%x: float32[4,4], %s: float32[4,4], %t: float32[4,4]) {
	%a = Relu(%x)
	%s2 = Add(%s, %a)
	%c = Neg(%s2)
	%t2 = Mul(%t, %a)
	ret %c, %s2 to %s, %t2
}
IR
om run chain.ir --fill deterministic --save chain.npz | tail -1
for io in arena keep w=arena; do
	om run chain.ir --fill deterministic --io "$io" --parallel-safe --poison --expect chain.npz --repeat 2 | tail -2
done


# Nor may a result take it that is the next state, or that a pass ties to it.
ties=inline,shapes,fold,prune,schedule=original,liveness,views,alias-io=any,inplace,loops,pack
om run state.ir --fill deterministic --target generic --save state.npz | tail -1
om run state.ir --fill deterministic --target generic --repeat 2 --save again.npz | tail -1
for io in arena keep s=keep; do
	om report state.ir --io "$io" | grep arena
	om run state.ir --fill deterministic --io "$io" --poison --expect again.npz --repeat 2 | tail -2
	om run state.ir --fill deterministic --io "$io" --passes $ties --expect state.npz | tail -2
done

om report "$models/digits.onnx" --budget 1
om report "$models/digits.onnx" --budget 16K
om report "$models/digits.onnx" --budget 1M | grep total
om report "$models/digits.onnx" --budget 5K --budget-of arena
om report "$models/digits.onnx" --budget-of arena
om report "$models/digits.onnx" --budget 5K --budget-of weights
om report "$models/digits.onnx" --io heap
om report "$models/digits.onnx" --io nothing=arena
om report "$models/digits.onnx" --io =arena
om report "$models/digits.onnx" --io digit=arena --io digit=keep

# Where nothing is in the arena, the total still has a limit.
cat >empty.ir <<'IR'
program "empty" ir 8 opset 17
^empty(%x: float32[1024]) {
	%a = Exp(%x)
	%y = Neg(%a)
	ret %y
}
IR
om report empty.ir --json - | grep '"arena_bytes"'
om report empty.ir --budget 1
