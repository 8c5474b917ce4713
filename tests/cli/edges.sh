# SPDX-License-Identifier: Apache-2.0
# Elements at the edge of what an operator says: what random cases found.
calc() {
	printf 'program "edges" ir 8 opset %s\n^main() {\n' "$1" >edges.ir
	cat >>edges.ir
	echo "}" >>edges.ir
	om run edges.ir
}

# Infinities end at the largest numbers where Clip has no bounds.
calc 21 <<'END'
	%f = const float32[4] {inf, -inf, nan, 3.0}
	%a = Clip(%f)
	%low = const float32[] {-1.0}
	%b = Clip(%f, %low)
	ret %a, %b
END

# The empty string is zero.
calc 21 <<'END'
	%t = const string[3] {"a", "", "b"}
	%a = NonZero(%t)
	%b = Neg(%a)
	ret %b
END

# Numbers as text, and back.
calc 21 <<'END'
	%bools = const bool[2] {1, 0}
	%f = const float32[5] {0.5, -1e10, inf, -inf, nan}
	%i = const int64[2] {9223372036854775807, -3}
	%a = Cast(%bools) {to = 8}
	%b = Cast(%f) {to = 8}
	%c = Cast(%i) {to = 8}
	%d = Cast(%c) {to = 7}
	ret %a, %b, %c, %d
END

# What is not a number is one thing, the last; complex numbers go by both parts.
calc 21 <<'END'
	%f = const float32[5] {2.0, nan, 1.0, nan, 2.0}
	%a, %b, %c, %d = Unique(%f)
	ret %a, %d
END

# Integers are not left out.
calc 18 <<'END'
	%i = const int32[4] {-9, 0, 3, 4}
	%a = Erf(%i)
	%m = const int8[2,2] {100, 2, -3, 50}
	%b = Einsum(%m, %m) {equation = "ij,jk->ik"}
	%x = const int16[1,2,2] {1, 2, 3, 4}
	%n = const int64[1] {3}
	%k = const int64[1] {2}
	%c = Col2Im(%x, %n, %k)
	ret %a, %b, %c
END

# The memory of a loop holds elements of several sizes: the alignment is at least the widest.
cat >align.ir <<'END'
program "g" ir 8 opset 17
^g(%n: int64[], %x: float32[2], %y: float32[13,1]) {
	%m = Greater(%y, %y)
	%a = Exp(%x)
	%a2 = Neg(%x)
	%o, %o2 = Loop(%n, _, %a, %a2) {body = ^b(%i: int64[], %c: bool[], %p: float32[2], %r: float32[2]) {
		%q = Tanh(%p)
		%d: bool[] = Identity(%c)
		%r2: float32[2] = Identity(%r)
		%q2: float32[2] = Identity(%q)
		ret %d, %r2, %q2
	}}
	%z = Abs(%o)
	%zz = Add(%z, %o2)
	%m2 = Not(%m)
	%w = Where(%m2, %y, %x)
	%out: float32[13,2] = Mul(%zz, %w)
	ret %out
}
END
for align in 1 2 4; do
	om report align.ir --align $align --json align.json >align.out
	grep -o '"align": *[0-9]*' align.json
done

# A branch that cannot run does not decide the size of the output.
cat >branch.ir <<'IR'
program "sizes" ir 8 opset 17
^sizes(%x: float32[2,8], %which: bool[]) {
	%t = Tanh(%x)
	%a = If(%which) {then_branch = ^long() {
		%c = MatMul(%t, %t)
		%a1: float32[4,8] = Neg(%c)
		ret %a1
	}, else_branch = ^short() {
		%a2 = Relu(%t)
		ret %a2
	}}
	%y = Neg(%a)
	ret %y
}
IR
om report branch.ir -q | grep -c 'lower bound'
om report branch.ir -q | sed -n '/not in the arena/,/^$/p'
om run branch.ir --fill deterministic --fill which:value=0 --poison -q
om run branch.ir --fill deterministic --fill which:value=1 --poison -q
sed "s/= Neg(%c)/= own.domain.Own(%c)/" branch.ir >own.ir
om report own.ir -q

# A plan without a place for anything is no proof, and values outside of plans are counted.
cat >open.ir <<'IR'
program "open" ir 8 opset 17
^open(%x: float32[4,4]) {
	%a = NonZero(%x)
	%b = Neg(%a)
	ret %b
}
IR
om report open.ir -q | grep -e 'lower bound' -e '-> '
cat >half.ir <<'IR'
program "half" ir 8 opset 17
^half(%x: float32[4,4]) {
	%t = Exp(%x)
	%a = NonZero(%t)
	%b = Neg(%a)
	ret %b
}
IR
om report half.ir -q | grep -e 'lower bound' -e '-> '

# Sizes that data decide: those that the file declares are of the run that an exporter traced.
cat >hints.ir <<'IR'
program "hints" ir 8 opset 17
^hints(%x: float32[4,8], %from: int64[1], %k: int64[1], %n: int64[]) {
	%to = const int64[1] {100}
	%axis = const int64[1] {1}
	%zero = const int64[] {0}
	%one = const int64[] {1}
	%a: float32[4,3] = Slice(%x, %from, %to, %axis)
	%b: float32[4,3] = Neg(%a)
	%c = ReduceSum(%b) {keepdims = 0}
	%top: float32[4,2], %which: int64[4,2] = TopK(%x, %k)
	%d: float32[4,2] = Neg(%top)
	%e = ReduceSum(%d) {keepdims = 0}
	%r: int64[5] = Range(%zero, %n, %one)
	%f: int64[5] = Neg(%r)
	%g = ReduceSum(%f) {keepdims = 0}
	ret %c, %e, %g
}
IR
om report hints.ir -q | sed -n '/not in the arena/,/^$/p'
om report hints.ir -q --exact-sizes | sed -n '/lower bound/p;/not in the arena/,/^$/p'
for ways in "" --poison --no-reuse; do om run hints.ir --fill x:value=1 --fill from:value=2 --fill k:value=4 --fill n:value=7 $ways | grep -v "memory of its own\|arena"; done

# The positions of all elements, where the file declares three: a place for the most, and the run has what it finds.
cat >positions.ir <<'IR'
program "positions" ir 8 opset 17
^positions(%x: float32[8]) {
	%r = Relu(%x)
	%n: int64[1,3] = NonZero(%r)
	%y: int64[1,3] = Neg(%n)
	ret %y
}
IR
om report positions.ir | grep 'lower bound'
om run positions.ir --fill x:value=1 --poison | grep -v arena
