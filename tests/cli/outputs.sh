# SPDX-License-Identifier: Apache-2.0
# An output file is whole or absent, and the previous file is intact until the new one is complete.
cp "$models/digits.onnx" .
"$ONNXMEM" report digits.onnx --csv p.csv >/dev/null
"$ONNXMEM" plan digits.onnx planned.onnx >/dev/null
cat >data.ir <<'IR'
program "data" ir 8 opset 17
^data() {
	%n = const int64[2] {400, 1}
	%one = const float32[] {1.0}
	%x = Expand(%one, %n)
	ret %x
}
IR
"$ONNXMEM" run data.ir --save data.npz >/dev/null
cat >step.ir <<'IR'
program "step" ir 8 opset 17
^step(%x: float32[N,1], %lr: float32[], %w: float32[1] = {0.5}) {
	%d = Sub(%x, %w)
	%s = Mul(%d, %d)
	%loss = ReduceMean(%s) {keepdims = 0}
	%g = ReduceMean(%d) {keepdims = 0}
	%h = Mul(%g, %lr)
	%w_next = Add(%w, %h)
	ret %loss, %w_next to %w
}
IR

# kept WHAT COMMAND...: on a disk that is full after some hundred bytes, the old out/file stays, alone.
kept() {
	what=$1
	shift
	rm -rf out
	mkdir out
	echo old >out/file
	cp out/file out/file.npz
	(ulimit -f 1; exec "$ONNXMEM" "$@" >/dev/null 2>err)
	echo "$what: $?, $(tail -n 1 err), $(cd out && echo *), $(cat out/file out/file.npz | paste -sd ' ')"
}
kept html report digits.onnx --html out/file
kept svg report digits.onnx --svg out/file
kept json report digits.onnx --json out/file
kept plan plan digits.onnx out/file
kept sidecar plan digits.onnx --sidecar out/file
kept export plan digits.onnx --export json:out/file
kept strip strip planned.onnx out/file
kept grad grad digits.onnx out/file --loss-fn cross-entropy --default-dim 1
kept profile run digits.onnx --fill deterministic --profile out/file
kept save run data.ir --save out/file.npz
kept checkpoint train step.ir --data data.npz --lr 0.1 --checkpoint out/file
kept graph report digits.onnx --passes inline,shapes,liveness,pack:strategy=nnc-paper:dump=out/file
kept tile tile "$models/nnc_conv.onnx" out/file
kept tune tune digits.onnx out/file --seconds 0.01
cat >set.json <<J
{
  "schema": "onnxmem-set/1",
  "parts": [{"name": "a", "model": "$models/nnc_chain.onnx"}, {"name": "b", "model": "$models/nnc_chain.onnx"}],
  "links": [["a.y", "b.x"]],
  "order": ["a", "b"]
}
J
kept set set plan set.json out/file
# Of a folder, what does not fit is not there.
rm -rf out
(ulimit -f 1; exec "$ONNXMEM" split digits.onnx out --parts 2 >/dev/null 2>err)
echo "split: $?, $(tail -n 1 err), $(cd out && echo *)"

# What a process that was killed left is taken over, whatever its number was; what another one writes is not.
rm -rf out
mkdir out
head -c 100000 /dev/zero >out/file.part
om report digits.onnx --json out/file -q | tail -n 1
(cd out && echo *)
"$ONNXMEM" report digits.onnx --json again >/dev/null
sed 's/"plan_ms.*//' out/file >a && sed 's/"plan_ms.*//' again >b && cmp a b && echo whole
mkdir out/dir.part
ln -s /etc/passwd out/link.part
mkfifo out/pipe.part
for f in dir link pipe; do om strip planned.onnx out/$f; done
(cd out && echo *)

# Links are followed, and permissions kept.
rm -rf out
mkdir out
echo old >out/real
chmod 640 out/real
ln -s real out/link
om strip planned.onnx out/link
ls -l out | sed -n 's/^\(..........\).* \(link\|real\)/\1 \2/p'
cmp out/real out/link && echo same
ln -s nowhere out/dangling
om strip planned.onnx out/dangling

# Pipes and devices are written directly; a pipe that no process reads is not waited for.
mkfifo pipe
om strip planned.onnx pipe
exec 3<>pipe
head -c "$(wc -c <out/real)" <&3 >from_pipe &
om strip planned.onnx pipe
wait
exec 3<&-
cmp from_pipe out/real && echo same
om strip planned.onnx /dev/null
"$ONNXMEM" strip planned.onnx - | cmp - out/real && echo same
"$ONNXMEM" strip planned.onnx /dev/stdout | cmp - out/real && echo same
"$ONNXMEM" strip planned.onnx /dev/stdout >stdout && cmp stdout out/real && echo same
(echo first; "$ONNXMEM" report digits.onnx --json out.txt; echo last) >out.txt
sed -n '1p;$p' out.txt
om strip planned.onnx /dev/full

# External data and lists of models that are pipes are refused, and not waited for.
mkdir in copy
cp "$models/external.onnx" in
mkfifo in/external.data copy/external.data
om report in/external.onnx | sed "s|$PWD/||"
om strip in/external.onnx copy/a.onnx | sed "s|$PWD/||"
om strip "$models/external.onnx" copy/a.onnx

# External data is not copied to the folder of a device.
mkdir device
ln -s /dev/null device/a.onnx
om strip "$models/external.onnx" device/a.onnx
ls device
ONNX_HOME=$PWD/home om fetch --list --manifest pipe

# A plan alone is read back from files only: a pipe is not waited for, and stays.
mkfifo plan.pipe
cat plan.pipe >piped.json &
timeout 20 "$ONNXMEM" plan digits.onnx --sidecar plan.pipe -q
echo "-> $?"
wait
"$ONNXMEM" plan digits.onnx --sidecar alone.json -q
cmp alone.json piped.json && test -p plan.pipe && echo "the pipe is there"

# Paths are checked before the work.
om train step.ir --data data.npz --lr 0.1 --checkpoint none/c.npz
om train step.ir --data data.npz --lr 0.1 --model digits.onnx --save none/c.onnx
om regress "$models" --junit none/j.xml
for o in json csv svg html; do om report digits.onnx --$o none/file; done
om plan digits.onnx none/file
om plan digits.onnx --sidecar none/file
om plan digits.onnx --export csv:none/file
om grad digits.onnx none/file --loss-fn mse
om run digits.onnx --fill deterministic --save none/file
om run digits.onnx --fill deterministic --stats none/file
om pack p.csv -o none/file
om pack p.csv -o out
om pack p.csv -o ''

# A process that is killed, early or late, leaves the old file or the new one.
rm -rf out
mkdir out
damaged=0
for after in 0 0.002 0.004 0.006 0.008 0.010 0.012 0.014 0.016 0.018 0.02 0.03; do
	echo old >out/file
	"$ONNXMEM" plan digits.onnx out/file >/dev/null 2>&1 &
	sleep $after
	kill -9 $! 2>/dev/null
	wait $! 2>/dev/null
	test "$(cat out/file | head -c 4)" = old || cmp -s out/file planned.onnx || damaged=$((damaged + 1))
done 2>/dev/null
echo "$damaged damaged"
om plan digits.onnx out/file | tail -n 1
cmp out/file planned.onnx && (cd out && echo *)
