# SPDX-License-Identifier: Apache-2.0
# The total leaves out outputs whose size only a run decides, and says so; one with a bound is in it.
cat >range.ir <<'IR'
program "range" ir 8 opset 17
^main(%x: float32[4], %n: int64[]) {
	%zero = const int64[] {0}
	%one = const int64[] {1}
	%y = Relu(%x)
	%numbers = Range(%zero, %n, %one)
	%f = Cast(%numbers) {to = 1}
	%e = Exp(%f)
	ret %y, %numbers, %e
}
IR
cat >bounded.ir <<'IR'
program "bounded" ir 8 opset 17
^main(%x: float32[4]) {
	%y = Relu(%x)
	%where = NonZero(%y)
	ret %where
}
IR
for model in range bounded; do
	om report $model.ir | grep total
	om report $model.ir --json - | sed -n '/"total_bytes"/,/]/p'
	om report $model.ir --budget 1M | grep total
	om report $model.ir --html page.html | tail -1
	grep -o '"total_bytes": *[0-9]*, *"unsized": *[0-9]*' page.html
done
