# SPDX-License-Identifier: Apache-2.0
# Training: a step made by hand, samples from a program that computes none.
cat >data.ir <<'IR'
program "data" ir 8 opset 17
^data() {
	%a = const float32[10,2] {0.0,0.0, 0.0,1.0, 1.0,0.0, 1.0,1.0, 0.1,0.0, 0.0,0.9, 0.9,0.1, 1.0,0.9, 0.1,0.1, 0.2,1.0}
	%b = const float32[10,1] {0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0}
	%x = Identity(%a)
	%t = Identity(%b)
	ret %x, %t
}
IR
om run data.ir --save data.npz | sed 's/;.*//'
cat >step.ir <<'IR'
program "step" ir 8 opset 17
^step(%x: float32[N,2], %t: float32[N,1], %lr: float32[], %w0: float32[2,4] = {0.9, -0.8, 0.7, 0.3, -0.9, 0.6, 0.5, -0.4}, %w1: float32[4,1] = {0.8, 0.7, -0.6, 0.5}, %b0: float32[4] = {0.1, 0.2, -0.1, 0.0}, %m1: float32[4,1] = {0.0, 0.0, 0.0, 0.0}) {
	%one = const float32[] {1.0}
	%two = const float32[] {2.0}
	%mu = const float32[] {0.5}
	%rows = const int64[1] {0}
	%z = Gemm(%x, %w0, %b0)
	%h = Tanh(%z)
	%y = MatMul(%h, %w1)
	%d = Sub(%y, %t)
	%s = Mul(%d, %d)
	%loss = ReduceMean(%s) {keepdims = 0}
	%n0 = Shape(%x) {end = 1, start = 0}
	%n = Cast(%n0) {to = 1}
	%d2 = Mul(%d, %two)
	%gy = Div(%d2, %n)
	%g1 = Gemm(%h, %gy) {transA = 1}
	%gh = Gemm(%gy, %w1) {transB = 1}
	%hh = Mul(%h, %h)
	%k = Sub(%one, %hh)
	%gz = Mul(%gh, %k)
	%g0 = Gemm(%x, %gz) {transA = 1}
	%gb = ReduceSum(%gz, %rows) {keepdims = 0}
	%m = Mul(%m1, %mu)
	%m1_next = Add(%m, %g1)
	%s1 = Mul(%m1_next, %lr)
	%w1_next = Sub(%w1, %s1)
	%s0 = Mul(%g0, %lr)
	%w0_next = Sub(%w0, %s0)
	%sb = Mul(%gb, %lr)
	%b0_next = Sub(%b0, %sb)
	ret %loss, %w0_next to %w0, %w1_next to %w1, %b0_next to %b0, %m1_next to %m1
}
IR
om train step.ir --data data.npz --lr 0.3 --epochs 4 --batch 4 --checkpoint whole.npz

# The same without reuse, and in two parts; another seed is another training.
om train step.ir --data data.npz --lr 0.3 --epochs 4 --batch 4 --checkpoint plain.npz --no-reuse --poison
cmp whole.npz plain.npz && echo same
om train step.ir --data data.npz --lr 0.3 --epochs 2 --batch 4 --checkpoint parts.npz
om train step.ir --data data.npz --lr 0.3 --epochs 4 --batch 4 --checkpoint parts.npz --resume
cmp whole.npz parts.npz && echo same
om train step.ir --data data.npz --lr 0.3 --epochs 4 --batch 4 --checkpoint parts.npz --resume
om train step.ir --data data.npz --lr 0.3 --epochs 4 --batch 4 --seed 1 --checkpoint other.npz
cmp -s whole.npz other.npz || echo other

# Schedules: constant is none, a training that is resumed has the same rates, and other rates give other weights.
with="step.ir --data data.npz --lr 0.3 --batch 4"
om train $with --epochs 4 --checkpoint constant.npz --lr-schedule constant -q
cmp whole.npz constant.npz && echo same
om train $with --epochs 4 --checkpoint cosine.npz --lr-schedule cosine:12:0.1 --warmup 3
om train $with --epochs 2 --checkpoint cosine2.npz --lr-schedule cosine:12:0.1 --warmup 3 -q
om train $with --epochs 4 --checkpoint cosine2.npz --lr-schedule cosine:12:0.1 --warmup 3 --resume -q
cmp cosine.npz cosine2.npz && echo same
cmp -s whole.npz cosine.npz || echo other
# A rate of nothing after 3 steps, which is an epoch: the second and the third one have the same loss.
om train $with --epochs 3 --lr-schedule step:3:0 -q --no-shuffle
om train $with --lr-schedule sine:3
sed 's/, %lr: float32\[\]//; s/%one = const/%lr = const float32[] {0.1}\n\t&/' step.ir >without.ir
om train without.ir --data data.npz --warmup 2

# Killed at any time it goes on as if nothing had been.
long="step.ir --data data.npz --lr 0.1 --epochs 40 --batch 4 -q"
"$ONNXMEM" train $long --checkpoint long.npz >/dev/null
"$ONNXMEM" train $long --checkpoint killed.npz --every 1 >/dev/null &
sleep 0.2
kill -9 $! 2>/dev/null
wait $! 2>/dev/null
"$ONNXMEM" train $long --checkpoint killed.npz --resume >/dev/null
cmp long.npz killed.npz && echo same

# Batches that are not full; steps that fail.
om train step.ir --data data.npz --lr 0.3 --batch 4 --drop-last -v 2>&1 | grep -e "left out" -e epoch
om train step.ir --data data.npz --lr 1e30 --epochs 3
om train step.ir --data data.npz
om train step.ir --lr 1
om train step.ir --data data.npz --lr 0.1 --resume
om train step.ir --data data.npz --lr 0.1 --eval-data data.npz
om train step.ir --data data.npz --lr 0.1 --batch 5 --checkpoint whole.npz --resume
om train step.ir --data whole.npz --lr 0.1
om train step.ir --data data.npz --lr 0.1 --checkpoint data.npz --resume
om train data.ir --data data.npz
sed 's/%w1: float32\[4,1\] = {[^}]*}/%w1: float32[4,1]/' step.ir >bare.ir
om train bare.ir --data data.npz --lr 0.1
sed 's/10,1/5,2/' data.ir >wide.ir
"$ONNXMEM" run wide.ir --save wide.npz >/dev/null
om train step.ir --data wide.npz --lr 0.1
sed 's/\[N,/[16,/g' step.ir >fixed.ir
om train fixed.ir --data data.npz --lr 0.1
sed 's/\[N,/[3,/g' step.ir >fixed.ir
om train fixed.ir --data data.npz --lr 0.1 --batch 4
om train fixed.ir --data data.npz --lr 0.1
# The log: a line for each step and epoch, and more of them with --resume.
om train step.ir --data data.npz --lr 0.5 --batch 5 --epochs 1 --checkpoint log.npz --log log.jsonl | sed 's/;.*//'
om train step.ir --data data.npz --lr 0.5 --batch 5 --epochs 2 --checkpoint log.npz --log log.jsonl --resume | sed 's/;.*//'
cat log.jsonl
om train step.ir --data data.npz --lr 0.5 --log nowhere/log.jsonl
