# SPDX-License-Identifier: Apache-2.0
# What inference knows of the elements of sizes, and what may be concluded from that.
# As a bool, 5 and 1 are equal: the length is 7.
cat >bools.ir <<'IR'
program "g" ir 8 opset 17
^g(%x: float32[6]) {
	%e5 = const int64[2] {1, 5}
	%ax = const int64[1] {2}
	%i1 = const int64[1] {1}
	%i2 = const int64[1] {2}
	%seven = const int64[1] {7}
	%three = const int64[1] {3}
	%f = const float32[1] {2.5}
	%nz = NonZero(%x)
	%tz = Transpose(%nz) {perm = [1, 0]}
	%y = Expand(%tz, %e5)
	%y3 = Unsqueeze(%y, %ax)
	%s = Shape(%y3)
	%five = Gather(%s, %i1)
	%one = Gather(%s, %i2)
	%b5 = Cast(%five) {to = 9}
	%b1 = Cast(%one) {to = 9}
	%eq = Equal(%b5, %b1)
	%len = Where(%eq, %seven, %three)
	%out0 = Expand(%f, %len)
	%out: float32[K] = Add(%out0, %f)
	ret %out
}
IR
om run bools.ir --random 1 | grep -E 'out '
# Two sizes that data decide and that a file gives one name may differ: the length is 3.
cat >names.ir <<'IR'
program "g" ir 8 opset 17
^g(%x: float32[6], %m1: bool[6], %m2: bool[6], %x2: float32[6]) {
	%seven = const int64[1] {7}
	%three = const int64[1] {3}
	%zero = const int64[1] {0}
	%f = const float32[1] {2.5}
	%a: float32[K] = Compress(%x, %m1) {axis = 0}
	%b: float32[K] = Compress(%x, %m2) {axis = 0}
	%sa = Shape(%a)
	%sb = Shape(%b)
	%eq = Equal(%sa, %sb)
	%len = Where(%eq, %seven, %three)
	%o0 = Expand(%f, %len)
	%out: float32[L] = Add(%o0, %f)
	%sl = Slice(%x2, %zero, %sb)
	%o2: float32[Z] = Neg(%sl)
	ret %out, %o2
}
IR
om run names.ir --random 1 --fill m1:mod=2 --fill m2:mod=3 | grep -E '^out|^o2'
# A product with a quotient is not a quotient of a product: at A = 777 and B = 3 another length is taken, and nothing says that it was proven.
cat >quotients.ir <<'IR'
program "g" ir 8 opset 17
^g(%x: float32[A], %y: float32[B], %s: float32[1]) {
	%i0 = const int64[1] {0}
	%k777 = const int64[1] {777}
	%big = const int64[1] {1000}
	%small = const int64[1] {10}
	%two = const int64[1] {2}
	%a = Shape(%x)
	%b = Shape(%y)
	%bh = Div(%b, %two)
	%p = Mul(%a, %bh)
	%ab = Mul(%a, %b)
	%q = Div(%ab, %two)
	%eq = Equal(%p, %q)
	%eqa = Equal(%a, %k777)
	%rare = Where(%eqa, %big, %small)
	%len = Where(%eq, %small, %rare)
	%d = Expand(%s, %len)
	%d2 = Neg(%d)
	%rs = ReduceSum(%d2) {keepdims = 0}
	%o: float32[A] = Add(%x, %rs)
	%o2: float32[B] = Add(%y, %rs)
	ret %o, %o2
}
IR
om report quotients.ir --dim-range A=2..20000 --dim-range B=3..3 | grep -A3 'formulas\|for A'
# A dim that is called like a sum, and is given numbers of its own, is no sum.
cat >sums.ir <<'IR'
program "g" ir 8 opset 17
^g(%x: float32[A], %y: float32[B], %z: float32["A+B"], %s: float32[1]) {
	%i0 = const int64[1] {0}
	%k777 = const int64[1] {777}
	%big = const int64[1] {1000}
	%small = const int64[1] {10}
	%two = const int64[1] {2}
	%a = Shape(%x)
	%b = Shape(%y)
	%zs = Shape(%z)
	%p = Add(%a, %b)
	%eq = Equal(%p, %zs)
	%eqa = Equal(%a, %k777)
	%rare = Where(%eqa, %big, %small)
	%len = Where(%eq, %small, %rare)
	%d = Expand(%s, %len)
	%d2 = Neg(%d)
	%rs = ReduceSum(%d2) {keepdims = 0}
	%o: float32[A] = Add(%x, %rs)
	%o2: float32[B] = Add(%y, %rs)
	%o3: float32["A+B"] = Neg(%z)
	ret %o, %o2, %o3
}
IR
om report sums.ir --dim-range A=1..20000 --dim-range B=1..1 --dim-range A+B=5..6 | grep -A3 'formulas\|for A'
# What a transfer reads is not computed again.
cat >transfer.ir <<'IR'
program "g" ir 8 opset 17 opset org.onnxmem.dist 1
^g(%a: float32[1000], %b: float32[1]) {
	%reps = const int64[1] {3000}
	%zero = const int64[] {0}
	%x = Exp(%a)
	%t = org.onnxmem.dist::ReduceScatter(%x) {async = 1, ranks = 2}
	%b1 = org.onnxmem.dist::AllReduce(%b) {ranks = 2}
	%m2 = Tile(%b1, %reps)
	%m3 = Sin(%m2)
	%m3b = CumSum(%m3, %zero)
	%m3c = Mul(%m3b, %m2)
	%m4 = ReduceSum(%m3c) {keepdims = 1}
	%m5 = org.onnxmem.dist::AllReduce(%m4) {ranks = 2}
	%w = org.onnxmem.dist::Wait(%t, %x)
	%o: float32[500] = Add(%w, %m5)
	ret %o
}
IR
om report transfer.ir --rematerialize 100 | grep arena
