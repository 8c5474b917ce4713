# SPDX-License-Identifier: Apache-2.0
# A formula of four symbols; of five there is none.
cat >four.ir <<'IR'
program "four" ir 8 opset 17
^main(%x: float32[A,B,16], %y: float32[A,C,16], %z: float32[D,16]) {
	%p = Exp(%x)
	%t = Transpose(%y) {perm = [0, 2, 1]}
	%s = MatMul(%p, %t)
	%e = Exp(%s)
	%v = MatMul(%e, %y)
	%q = Exp(%z)
	%w = MatMul(%q, %t)
	ret %v, %w
}
IR
ranges="--dim-range A=1..90 --dim-range B=1..70 --dim-range C=1..80 --dim-range D=1..60"
om report four.ir $ranges --align 4 | sed -n '/memory by size/,/^$/p'
om run four.ir --dim A=90 --dim B=70 --dim C=80 --dim D=60 --target generic --align 4 --fill deterministic | grep arena
sed -e "s/float32\[D,16\]/float32[D,E,16]/" -e "s/MatMul(%q, %t)/Sin(%q)/" four.ir >five.ir
om report five.ir $ranges --dim-range E=1..9 2>&1 | grep -E 'symbols|memory'
