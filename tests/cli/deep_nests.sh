# SPDX-License-Identifier: Apache-2.0
# A verifier looks at all rotations of a loop in each iteration of the loops around it.  In deep nests the outer loops
# copy, so that there are few to look at: with rotations in twelve loops there are too many for any plan.
nest() {
	awk -v levels="$1" 'BEGIN {
		print "program \"nest\" ir 10 opset 18"
		print "^main(%x: float32[2,2], %s0: float32[2,2], %n: int64[]) {"
		print "\t%go = const bool[] {1}"
		for (k = 1; k <= levels; k++) {
			printf "%%p%d.end, %%r%d = Loop(%%n, %%go, %%x, %%s%d) {body = ^body%d(%%i%d: int64[], %%c%d: bool[], %%p%d: float32[2,2], %%s%d: float32[2,2]) {\n",
				k, k, k - 1, k, k, k, k, k
			printf "%%m%d = MatMul(%%p%d, %%p%d)\n%%y%d = Tanh(%%m%d)\n", k, k, k, k, k
		}
		printf "%%r%d = Softmax(%%s%d)\n", levels + 1, levels
		for (k = levels; k >= 1; k--)
			printf "%%q%d = Sub(%%r%d, %%p%d)\nret %%c%d, %%y%d, %%q%d\n}}\n", k, k + 1, k, k, k, k
		print "ret %r1\n}"
	}'
}
for levels in 3 9 12; do
	nest $levels >nest.ir
	"$ONNXMEM" dump nest.ir --passes liveness,views,inplace,loops >nest.txt
	echo "$levels loops: $(grep -c '; %p.*rotate(%p[0-9]*, %m' nest.txt) rotate, $(grep -c '; %p.*rotate(%p[0-9]*)' nest.txt) copy"
done
for levels in 3 9; do
	nest $levels >nest.ir
	for n in 1 2; do
		om run nest.ir --fill n:value=$n --fill deterministic --no-reuse --save own.npz | tail -1
		om run nest.ir --fill n:value=$n --fill deterministic --poison --expect own.npz --rtol 0 --atol 0 | tail -2
	done
done
