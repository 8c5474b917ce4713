# SPDX-License-Identifier: Apache-2.0
# Branches and loops: what has no place in the arena and why, and what a run says
# about itself.  How much is moved is for tests/models/flow.py.
outside() {
	om report "$@" | sed -n '/^not in the arena/,/^$/p'
}
said() {
	om run -q "$@" --stats stats.json | sed '/^arena/d'
	sed '/_ms/d; /copied/d; /arena/d; /weight/d' stats.json
}

# Branches of different shapes; one that is never taken counts, too.
outside "$models/sizes.onnx"
said "$models/sizes.onnx" --fill which:value=1 --fill deterministic
said "$models/sizes.onnx" --fill which:value=0 --fill deterministic

# A row more in every round.
outside "$models/loop_grow.onnx"
said "$models/loop_grow.onnx" --fill trips:value=0 --fill deterministic
said "$models/loop_grow.onnx" --fill trips:value=3 --fill deterministic

# What is stacked up, in as many rounds as the caller or the data say.
cat >rounds.ir <<'END'
program "p" ir 8 opset 17
^main(%x: float32[4], %trips: int64[], %more: bool[]) {
	%five = const int64[] {5}
	%axis = const int64[1] {0}
	%one = const float32[] {1.0}
	%a, %known = Loop(%five, _, %x) {body = ^sure(%i: int64[], %g: bool[], %v: float32[4]) {
		%w = Tanh(%v)
		%h = Identity(%g)
		ret %h, %w, %w
	}}
	%b, %given = Loop(%trips, %more, %x) {body = ^told(%j: int64[], %k: bool[], %p: float32[4]) {
		%q = Abs(%p)
		%l = Identity(%k)
		ret %l, %q, %q
	}}
	%c, %found = Loop(%five, %more, %x) {body = ^ends(%m: int64[], %n: bool[], %r: float32[4]) {
		%s = Neg(%r)
		%t = ReduceMax(%s) {keepdims = 0}
		%u = Less(%t, %one)
		ret %u, %s, %s
	}}
	%d = ReduceSum(%known, %axis) {keepdims = 0}
	%e = ReduceSum(%given, %axis) {keepdims = 0}
	%f = ReduceSum(%found, %axis) {keepdims = 0}
	%y = Sum(%a, %b, %c, %d, %e, %f)
	ret %y
}
END
outside rounds.ir
said rounds.ir --fill deterministic --fill trips:value=3 --fill more:value=1
said rounds.ir --fill deterministic --fill trips:value=0 --fill more:value=0

# What decides how often, and which, is one element.
decides() {
	{
		echo 'program "p" ir 8 opset 17'
		echo '^main(%x: float32[4], %n: int64[0], %c: float32[0]) {'
		cat
		printf '\tret %%y\n}\n'
	} >decides.ir
	om run -q decides.ir --random 1
}
decides <<'END'
	%y = If(%c) {then_branch = ^a() {
		ret %x
	}, else_branch = ^b() {
		ret %x
	}}
END
decides <<'END'
	%y = Loop(%n, _, %x) {body = ^a(%i: int64[], %go: bool[], %v: float32[4]) {
		%w = Neg(%v)
		ret %go, %w
	}}
END
decides <<'END'
	%y = Loop(_, _, %x) {body = ^a(%i: int64[], %go: bool[], %v: float32[4]) {
		%w = Neg(%c)
		ret %w, %v
	}}
END
