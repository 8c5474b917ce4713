# SPDX-License-Identifier: Apache-2.0
# Sizes of a range that are trip counts: where carried values are when a loop ends differs between sizes.
cat >lags.ir <<'IR'
program "lags" ir 10 opset 18
^main(%x: float32[N,4]) {
	%go = const bool[] {1}
	%zero = const int64[] {0}
	%rows = const int64[1] {0}
	%start = ReduceMean(%x, %rows) {keepdims = 0}
	%shape = Shape(%x)
	%n = Gather(%shape, %zero)
	%p.end, %q.end, %sums = Scan(%start, %start, %x) {body = ^scanned(%p: float32[4], %q: float32[4], %row: float32[4]) {
		%sum = Sub(%q, %row)
		%new = Tanh(%sum)
		%next = Identity(%new)
		%older = Identity(%p)
		ret %next, %older, %new
	}, num_scan_inputs = 1}
	%top = ReduceMax(%x, %rows) {keepdims = 0}
	%s.end, %t.end = Loop(%n, %go, %top, %top) {body = ^repeated(%i: int64[], %c: bool[], %s: float32[4], %t: float32[4]) {
		%y = Softmax(%t)
		%older = Identity(%s)
		ret %c, %y, %older
	}}
	%all = Neg(%t.end)
	ret %sums, %all
}
IR
om report lags.ir --dim-range N=1..6 | grep -E 'arena|ranges'
for n in 1 2 3 4 5 6; do
	om run lags.ir --dim-range N=1..6 --input-shape x:$n,4 --fill deterministic --no-reuse --save own.npz | tail -2
	om run lags.ir --dim-range N=1..6 --input-shape x:$n,4 --fill deterministic --poison --expect own.npz --rtol 0 --atol 0 | tail -2
done
om run lags.ir --dim-range N=2..8:2 --input-shape x:6,4 --fill deterministic --poison --expect own.npz | tail -2
