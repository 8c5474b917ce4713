# SPDX-License-Identifier: Apache-2.0
# Copies that are ops count: a branch that passes a captured value on, by Identity, while another op reads the value
# later.  The executor copies 4 * 256 bytes; in the other branch the result is computed where the output is.
cat >pass.ir <<'IR'
program "pass" ir 8 opset 17
^pass(%x: float32[16,16], %c: bool[]) {
	%a = Exp(%x)
	%r = If(%c) {then_branch = ^then() {
		%i = Identity(%a)
		ret %i
	}, else_branch = ^else() {
		%j = Neg(%a)
		ret %j
	}}
	%s = Mul(%r, %a)
	%t = ReduceSum(%s)
	ret %t
}
IR
for c in 1 0; do
	"$ONNXMEM" run pass.ir --fill x:value=1 --fill c:value=$c --target generic --stats stats.json >/dev/null
	grep -o '"copied_bytes": [0-9]*' stats.json
done
