# SPDX-License-Identifier: Apache-2.0
# Loops that carry a value for several iterations: nothing is copied while a rotation has at most 64 buffers, and results are
# those without reuse.  With two lags that repeat together only after 3,599 iterations, one chain is in parts.  `model LAGS...`: a chain of parameters of each length, the last of which is computed.
model() {
	echo 'program "" ir 8 opset 13'
	printf '^main(%%x: float32[16], %%m: int64[]) {\n\t%%go = const bool[] {1}\n'
	awk -v lags="$*" 'BEGIN {
		n = split(lags, lag)
		for (c = 1; c <= n; c++) {
			for (k = 0; k < lag[c]; k++) {
				name = c "_" k
				printf "\t%%a%s = %s(%%x)\n", name, k % 2 ? "Neg" : "Sin"
				ins = ins ", %a" name; outs = outs (outs ? ", " : "") "%e" name; params = params ", %p" name ": float32[16]"
				if (k) results = results ", %p" name
			}
			ops = ops "\t\t%t" c " = Softmax(%p" c "_0) {axis = 0}\n\t\t%u" c " = Add(%t" c ", %p" c "_" lag[c] - 1 ")\n"
			results = results ", %u" c
		}
		printf "\t%s = Loop(%%m, %%go%s) {body = ^round(%%i: int64[], %%on: bool[]%s) {\n%s\t\tret %%on%s\n\t}}\n", outs, ins, params, ops, results
		printf "\t%%y = Concat(%s) {axis = 0}\n\tret %%y\n}\n", outs
	}'
}
for lags in 8 12 63 64 "9 3 16" "61 59"; do
	model $lags >m.ir
	for m in 0 5 200; do
		set -- --fill deterministic --fill m:value=$m
		"$ONNXMEM" run m.ir "$@" --no-reuse --save apart.npz >/dev/null
		"$ONNXMEM" run m.ir "$@" --expect apart.npz --rtol 0 --atol 0 --poison | grep -v '^PASSED\|^y\|^output\|^arena'
	done
	"$ONNXMEM" run m.ir "$@" --stats stats.json >/dev/null
	echo "lags $lags: $(sed -n 's/.*"copied_bytes": \([0-9]*\).*/\1/p' stats.json) bytes copied in 200 iterations"
done
# What one output of a loop is copied to, another one does not lie in.
om run "$here/ir/loops/others_end.ir" --fill deterministic --no-reuse --save own.npz | tail -1
om run "$here/ir/loops/others_end.ir" --fill deterministic --poison --expect own.npz --rtol 0 --atol 0 | tail -2
