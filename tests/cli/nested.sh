# SPDX-License-Identifier: Apache-2.0
# Loops in loops, whose trip counts are those of the run: results are those without reuse, and an iteration of the outer
# loop copies at most one value (128 bytes), where a copy at each end of an iteration makes several.
here=$here/ir/loops
copied() { sed -n 's/.*"copied_bytes": \([0-9]*\).*/\1/p' stats.json; }
for model in handed_over handed_on; do
	for m in 0 1 2 3 8; do
		for n in 0 1 2 3 4 5 6 7 8; do
			set -- --fill deterministic --fill m:value=$m --fill n:value=$n
			"$ONNXMEM" run "$here/$model.ir" "$@" --no-reuse --save apart.npz >/dev/null
			"$ONNXMEM" run "$here/$model.ir" "$@" --expect apart.npz --rtol 0 --atol 0 --poison | grep -v '^PASSED\|^t\|^output\|^arena'
			"$ONNXMEM" run "$here/$model.ir" "$@" --expect apart.npz --rtol 0 --atol 0 --stats stats.json >/dev/null || echo "$model $m $n"
			test "$(copied)" -le $((256 + 128 * m)) || echo "$model: $m times $n iterations copy $(copied) bytes"
		done
	done
	for n in 4 5; do
		"$ONNXMEM" run "$here/$model.ir" --fill deterministic --fill m:value=8 --fill n:value=$n --stats stats.json >/dev/null
		echo "$model, 8 times $n iterations: $(copied) bytes copied"
	done
done
