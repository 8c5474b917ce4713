# SPDX-License-Identifier: Apache-2.0
# Wrong answers that were found: values whose size data decide on devices, bodies of an If that nothing reads, attention with a
# bias, an input in the arena beside an output of the caller.
cat >race.ir <<'END'
program "race" ir 8 opset 17
^g(%x0: float32[4], %x1: float32[1,3]) {
	%n = NonZero(%x0)
	%s = Size(%n)
	%shape = const int64[2] {4, 3}
	%v = Expand(%x1, %shape)
	ret %s, %v
}
END
om run race.ir --random 1 -q --threads 1 --save cpu.npz | grep -v arena
for seed in 1 2 3 4; do
	om run race.ir --random 1 -q --device sim:seed=$seed --place all --io arena --expect cpu.npz --rtol 0 --atol 0 | tail -n 2
done
cat >dead.ir <<'END'
program "dead" ir 8 opset 17
^g(%x: float32[4], %c: bool[]) {
	%y = Neg(%x)
	%z = If(%c) {else_branch = ^no() {
		%n: float32[4] = Abs(%y)
		ret %n
	}, then_branch = ^yes() {
		%e: float32[4] = Exp(%y)
		ret %e
	}} as "choose"
	ret %y
}
END
om run dead.ir --random 1 -q --device sim | grep -v arena
om run dead.ir --random 1 -q --device sim --place all | grep -v arena
om report dead.ir --place all -q
cat >bias.ir <<'END'
program "bias" ir 9 opset 18 opset com.microsoft 1
^g(%q: float32[1,1,32], %k: float32[1,1,16], %v: float32[1,1,16], %past_key_values.0.key: float32[1,2,5,8], %past_key_values.0.value: float32[1,2,5,8], %sl: int32[1], %bias: float32[1,1,1,6]) {
	%tot = const int32[1] {6}
	%y, %present.0.key, %present.0.value = com.microsoft::GroupQueryAttention(%q, %k, %v, %past_key_values.0.key, %past_key_values.0.value, %sl, %tot, _, _, _, %bias) {kv_num_heads = 2, num_heads = 4}
	ret %y, %present.0.key, %present.0.value
}
END
om run bias.ir --random 1 --fill sl:value=5 -q --threads 1 --save bias.npz | grep -v arena
om run bias.ir --random 1 --fill sl:value=5 -q --threads 1 --capacity 64 --expect bias.npz | tail -n 2
om run bias.ir --random 1 --fill sl:value=100000000 -q --threads 1
cat >state.ir <<'END'
program "state" ir 8 opset 17
^g(%x: float32[3]) {
	%y = Relu(%x)
	ret %y
}
END
om run state.ir --random 1 -q --threads 1 --io x=arena | grep -v "^arena"
om run state.ir --random 1 -q --threads 1 --tie x=y --io x=arena | grep -v "^arena"
