# SPDX-License-Identifier: Apache-2.0
# Small files that ask for much end with a sentence, or cost little.
doubled() {
	echo 'program "doubled" ir 8 opset 20'
	echo "^doubled($1) {"
	awk -v n="$2" -v how="$3" 'BEGIN { for (k = 1; k <= n; k++) printf "\t%%t%d = %s(%%t%d, %%t%d)%s\n", k, how, k - 1, k - 1, \
		how == "Concat" ? " {axis = 0}" : ""; print "\tret %t" n "\n}" }'
}

# Each value holds the one before twice: 2^60 pieces.
doubled '%t0: float32[4]' 60 Concat >pieces.ir
for c in report "dump --passes schedule"; do timeout 60 "$ONNXMEM" $c pieces.ir >out 2>&1 && echo "$c: ok"; done

# Each text is as long as two of those before.
cat >text.ir <<'IR'
program "text" ir 8 opset 20
^text() {
	%t0 = const string[1] {"12345678"}
IR
doubled '' 40 StringConcat | sed 1,2d >>text.ir
timeout 60 "$ONNXMEM" report text.ir -q >out 2>&1 && grep -c ' weights ' out
doubled '%t0: string[N]' 40 StringConcat >texts.ir
sed 's/StringConcat(%t39, %t39)/StringConcat(%t0, %t0)/' texts.ir >short.ir
cat >word.ir <<'IR'
program "word" ir 8 opset 20
^word() {
	%t0 = const string[2] {"abcdefgh", "ijklmnop"}
	%t = Identity(%t0)
	ret %t
}
IR
"$ONNXMEM" run word.ir --save word >/dev/null
mv word/output_0.pb word/input_0.pb
om run texts.ir --data word --max-memory 1M

# Loops without end, and what they collect.
cat >loop.ir <<'IR'
program "loop" ir 8 opset 20
^main(%n: int64[], %x: float32[4]) {
	%last, %all = Loop(%n, _, %x) {body = ^round(%k: int64[], %go: bool[], %v: float32[4]) {
		%more: bool[] = Identity(%go)
		%w: float32[4] = Relu(%v)
		%item: float32[4] = Neg(%v)
		ret %more, %w, %item
	}}
	ret %last, %all
}
IR
om run loop.ir --fill n:value=9007199254740992 --fill deterministic --max-iterations 1000
om run loop.ir --fill n:value=9007199254740992 --fill deterministic --max-memory 1M
om run loop.ir --fill n:value=1000 --fill deterministic --max-iterations 1000 --max-memory 1M -q | sed 1d
om run loop.ir --fill n:value=10 --fill deterministic --max-memory 10

# Propagation between two buffers that rest on each other, far below the third.
cat >rest.csv <<'CSV'
id,lower,upper,size,alignment
b2,2,9,100,4096
b3,0,7,2199023255552,1
b4,3,5,4,4096
b5,3,5,100,4096
CSV
timeout 60 "$ONNXMEM" pack rest.csv --time-limit 1 | sed 's/;.*//'
timeout 60 "$ONNXMEM" pack rest.csv --search-nodes 100000 | sed 's/;.*//'

# Constants that take much work to compute are left to the executor, which the report says.
cat >windows.ir <<'IR'
program "windows" ir 8 opset 13
^windows(%x: float32[1,1,128,128]) {
	%n = const int64[4] {1, 1, 128, 128}
	%w = ConstantOfShape(%n)
	%pool = AveragePool(%w) {kernel_shape = [127, 127], pads = [63, 63, 63, 63]}
	%axes = const int64[1] {3}
	%sum = ReduceSum(%pool, %axes)
	%small = ReduceSum(%w, %axes)
	%y = Add(%x, %sum)
	%z = Add(%y, %small)
	ret %z
}
IR
cat >boxes.ir <<'IR'
program "boxes" ir 8 opset 13
^boxes(%x: float32[3]) {
	%from = const int64[] {0}
	%step = const int64[] {1}
	%to = const int64[] {16000}
	%all = const int64[1] {16000}
	%range = Range(%from, %to, %step)
	%numbers = Cast(%range) {to = 1}
	%as_boxes = const int64[3] {1, 4000, 4}
	%boxes = Reshape(%numbers, %as_boxes)
	%as_scores = const int64[3] {1, 4, 4000}
	%scores = Reshape(%numbers, %as_scores)
	%n = const int64[] {10}
	%picked = NonMaxSuppression(%boxes, %scores, %n)
	%p = Cast(%picked) {to = 1}
	%y = Add(%x, %p)
	ret %y
}
IR
folding() {
	om report "$1" --passes inline,shapes,fold:limit=200000"$2",prune,schedule,liveness,views,alias-io=declared,inplace,pack --json out.json |
		sed -n '/^ended/,/^$/p'
	sed -n '/"limits"/,/]/p; /"computed"/,/"costly"/p' out.json
}
folding windows.ir ''
folding windows.ir :work=1000
folding windows.ir :work=1000000000
folding boxes.ir ''
folding boxes.ir :work=1000000000
om run windows.ir --fill deterministic | sed '$d'

# Sparse tensors, all of them together, when they are dense.
sparse=$here/fuzz/readers/corpus/model
cp "$sparse/sparse.onnx" "$sparse/refused-sparse-large.onnx" .
om report sparse.onnx --max-memory 15
om verify sparse.onnx --max-memory 15
om report sparse.onnx --max-memory 16 -q | sed -n '/weights/p; $p'
om report refused-sparse-large.onnx -q
