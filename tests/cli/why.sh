# SPDX-License-Identifier: Apache-2.0
# Why the arena is as large as it is: peaks, floors, and the life of one value.
om why "$models/digits.onnx"
om why "$models/digits.onnx" --json -
om why "$models/digits.onnx" sum
om why "$models/digits.onnx" c2 --json -
om why "$models/digits.onnx" --json why.json | tail -1
ls

# Values of bodies are named after their scope where their name alone is not enough; what is outside of the arena has
# no address.
cat >scopes.ir <<'END'
program "scopes" ir 8 opset 13
^main(%x: float32[4,16], %c: bool[]) {
	%two = const float32[1] {2}
	%k = Add(%two, %two)
	%a = Exp(%x) as "first"
	%y = If(%c) {then_branch = ^t() {
		%same = MatMul(%a, %w)
			%t2 = ReduceMax(%same) {axes = [0]}
		ret %t2
	}, else_branch = ^e() {
		%same = Mul(%a, %k)
		%e2 = ReduceMax(%same) {axes = [0]}
		ret %e2
	}}
	%z = Neg(%y)
	ret %z
}
END
om why scopes.ir same
om why scopes.ir y/else_branch/same
om why scopes.ir k
om why scopes.ir z
om why scopes.ir x
om why scopes.ir smae
om why scopes.ir two
om why scopes.ir --parallel-safe
om why scopes.ir a b

# Sizes that only a run tells.
printf 'program "sizes" ir 8 opset 17\n^g(%%x: float32[4]) {\n\t%%n = NonZero(%%x)\n\t%%m = Neg(%%n)\n\tret %%m\n}\n' >sizes.ir
om why sizes.ir n
om why sizes.ir

# Steps count ops that run: with 40 folded ops between two, there are as many steps as without them.
{
	printf 'program "folded" ir 8 opset 17\n^folded(%%x: float32[64]) {\n\t%%k0 = const float32[1] {1}\n\t%%a = Exp(%%x)\n'
	for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do printf '\t%%k%d = Neg(%%k%d)\n' $k $((k - 1)); done
	printf '\t%%b = Mul(%%a, %%k20)\n\t%%c = ReduceMax(%%b) {axes = [0]}\n\t%%y = Neg(%%c)\n\tret %%y\n}\n'
} >folded.ir
om report folded.ir --ascii | sed -n '/^peak/p; /steps/p'
om report folded.ir --csv -
om report folded.ir --budget-of arena --budget 64
om why folded.ir b | sed -n '/computed/p; /live /p'
om report folded.ir --json - | grep -E '"(step|node)"'
om plan folded.ir --export c-header:folded.h >/dev/null; sed -n '/STEPS/p' folded.h

# Long lists end early; JSON has all.
{
	printf 'program "peaks" ir 8 opset 17\n^peaks(%%x: float32[64,16]) {\n\t%%v0 = Exp(%%x)\n'
	for k in 1 2 3 4 5 6 7 8 9; do
		printf '\t%%w%d = ReduceMax(%%v%d) {axes = [0]}\n' $k $((k - 1))
		printf '\t%%u%d = Exp(%%w%d)\n\t%%s%d = const int64[2] {%d, 16}\n' $k $k $k $((40 - k))
		printf '\t%%v%d = Expand(%%u%d, %%s%d)\n' $k $k $k
	done
	printf '\t%%y = ReduceMax(%%v9) {axes = [0]}\n\tret %%y\n}\n'
} >peaks.ir
om why peaks.ir | grep -E '^(peak|and)'
om why peaks.ir --json - | grep -c own_bytes
om why peaks.ir ''
