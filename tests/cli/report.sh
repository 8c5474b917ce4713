# SPDX-License-Identifier: Apache-2.0
# The report in each of its forms.
om report "$models/digits.onnx" --ascii
om report "$models/digits.onnx" --json -
om report "$models/digits.onnx" --csv -
om report "$models/digits.onnx" --align 256 --json - | grep arena_bytes
om report - --json - <"$models/digits.onnx" | grep '"model"'
om report "$models/digits.onnx" --svg plan.svg --csv plan.csv --json plan.json
ls
head -c 40 plan.svg; echo
cp "$models/digits.onnx" m.onnx
om report m.onnx --svg m.onnx
om report m.onnx --svg no/such/folder.svg
om report "$models/branches.onnx"
om report "$models/digits.onnx" --target cpu
om report "$models/digits.onnx" --target tpu
"$ONNXMEM" report "$models/digits.onnx" --svg - | cmp - "$models/../docs/digits.svg" && echo the picture in docs is this one
# Values that rotate buffers in a loop: as text, and in the picture, at each of their locations.
om report "$models/nnc_lag.onnx" --svg lag.svg | sed -n '/^rotate/,/^$/p'
sed -n 's|.*<title>b0$|&|p; /<title>b0$/{n;p;n;s/<.title>.*//p}' lag.svg | sed 's/.*<title>//'
om report "$models/loop_swap.onnx" --svg - | grep -c 'iterations 0, 2, 4'

# Long lists end early; JSON has all.
{
	printf 'program "many" ir 8 opset 17\n^many(%%x: int64[]) {\n\t%%z = const int64[] {0}\n\t%%o = const int64[] {1}\n\t%%n0 = Range(%%z, %%x, %%o)\n'
	for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do printf '\t%%n%d = Neg(%%n%d)\n' $k $((k - 1)); done
	printf '\tret %%n19\n}\n'
} >many.ir
om report many.ir | sed -n '/^not in the arena/,/^$/p'
om report many.ir --json - | grep -c 'data-dependent'
# Why values have storage of their own: weights are not named, inputs are the caller's.
"$ONNXMEM" report "$models/digits.onnx" --html - | grep -o '"not over[^"]*'

# Steps are those of a run: ops that are folded have none.
cat >folded.ir <<'END'
program "folded" ir 8 opset 13
^main(%x: float32[3,3]) {
	%w = const float32[3,3] {1, 2, 3, 4, 5, 6, 7, 8, 9}
	%a = Neg(%w)
	%b = Add(%a, %w)
	%d = Mul(%x, %b)
	%e = MatMul(%d, %d)
	%y = MatMul(%e, %x)
	ret %y
}
END
om report folded.ir --json - | sed -n '/"tensors"/,$p' | grep -E '"(name|first|last)"'

# Parts of a pipeline, each planned as a rank runs it.
om report "$models/digits.onnx" --pipeline 2
om report "$models/branches.onnx" --pipeline 2 --json - | grep -v '"model"'
om report "$models/digits.onnx" --pipeline 2 --micro-batches 2
om report "$models/digits.onnx" --pipeline 2 --shard state
om report "$models/digits.onnx" --pipeline 2 --svg x.svg
om report "$models/digits.onnx" --pipeline 2 --batch 7
om report "$models/digits.onnx" --batch 2
