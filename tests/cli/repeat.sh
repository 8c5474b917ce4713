# SPDX-License-Identifier: Apache-2.0
# Runs go on from the states of the run before, wherever these are: in place, and where that is refused; and with inputs and outputs in the arena.
cat >inplace.ir <<'IR'
program "inplace" ir 8 opset 17
^main(%x: float32[4], %h: float32[4]) {
	%s = Add(%x, %h)
	%y = Exp(%s)
	ret %s, %y
}
IR
cat >copied.ir <<'IR'
program "copied" ir 8 opset 17
^main(%x: float32[4], %h: float32[4]) {
	%s = Add(%x, %h)
	%z = ReduceSum(%h) {keepdims = 0}
	ret %s, %z
}
IR
for model in inplace copied; do
	for io in caller arena keep h=arena; do
		om run $model.ir --tie h=s --io $io --fill x:value=1 --fill h:value=0 --repeat 3 --poison | grep -v ' runs, '
	done
	om run $model.ir --tie h=s --fill x:value=1 --fill h:value=0 --repeat 3 --no-reuse | grep -v ' runs, '
	om run $model.ir --fill x:value=1 --fill h:value=0 --repeat 3 | grep -v ' runs, '
done
