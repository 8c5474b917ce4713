/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of If, Loop and Scan, against central differences. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "onnxmem/autodiff.h"
#include "tests/fixtures.h"
#include "unit.h"

#define HEAD "program \"t\" ir 8 opset 17\n"

/* The condition is true of one input and false of the other: both ways are run.
 * %x is used by both branches, %w by one, %v by none but as a result. */
static void
of_a_branch(void)
{
	static const char text[] = HEAD
		"^main(%%x: float64[2,3], %%w: float64[3,2], %%v: float64[2,2]) {\n"
		"	%%t = const float64[] {%s}\n"
		"	%%s = ReduceSum(%%x) {keepdims = 0}\n"
		"	%%c = Less(%%s, %%t)\n"
		"	%%y = If(%%c) {then_branch = ^a() {\n"
		"		%%a = Mul(%%x, %%x)\n"
		"		%%b = MatMul(%%a, %%w)\n"
		"		%%r = Relu(%%b)\n"
		"		%%z = Mul(%%r, %%b)\n"
		"		ret %%z\n"
		"	}, else_branch = ^b() {\n"
		"		ret %%v\n"
		"	}}\n"
		"	%%q = Mul(%%y, %%v)\n"
		"	%%l = ReduceSum(%%q) {keepdims = 0}\n"
		"	ret %%l\n"
		"}\n";
	char all[2048];

	snprintf(all, sizeof all, text, "1000");
	unit_grad_check(all, 1);
	snprintf(all, sizeof all, text, "-1000");
	unit_grad_check(all, 1);
}

/* Which branch runs is known, and the other one gives another rank. */
static void
of_branches_of_other_rank(void)
{
	unit_grad_check(HEAD
		"^main(%x: float64[1,3]) {\n"
		"	%one = const int64[] {1}\n"
		"	%first = const int64[1] {0}\n"
		"	%p = Mul(%x, %x)\n"
		"	%s = Shape(%p) {end = 1}\n"
		"	%n = Squeeze(%s, %first)\n"
		"	%c = Equal(%n, %one)\n"
		"	%y: float64[3] = If(%c) {then_branch = ^a() {\n"
		"		%a = Squeeze(%p, %first)\n"
		"		ret %a\n"
		"	}, else_branch = ^b() {\n"
		"		%b = Identity(%p)\n"
		"		ret %b\n"
		"	}}\n"
		"	%q = Mul(%y, %y)\n"
		"	%l = ReduceSum(%q) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n", 1);
}

/* Both branches keep a value of the same shape, in one output. */
static void
of_branches_that_share(void)
{
	static const char text[] = HEAD
		"^main(%%x: float64[N,3], %%w: float64[3,3]) {\n"
		"	%%t = const float64[] {%s}\n"
		"	%%s = ReduceSum(%%x) {keepdims = 0}\n"
		"	%%c = Less(%%s, %%t)\n"
		"	%%y, %%u = If(%%c) {then_branch = ^a() {\n"
		"		%%a = MatMul(%%x, %%w)\n"
		"		%%b = Mul(%%a, %%a)\n"
		"		ret %%b, %%x\n"
		"	}, else_branch = ^b() {\n"
		"		%%d = Add(%%x, %%x)\n"
		"		%%e = Relu(%%d)\n"
		"		ret %%e, %%d\n"
		"	}}\n"
		"	%%q = Mul(%%y, %%u)\n"
		"	%%l = ReduceSum(%%q) {keepdims = 0}\n"
		"	ret %%l\n"
		"}\n";
	char all[2048];

	snprintf(all, sizeof all, text, "1000");
	unit_grad_check(all, 2);
	snprintf(all, sizeof all, text, "-1000");
	unit_grad_check(all, 3);
}

/* A state, a weight from around, values stacked, the number of iterations known. */
static void
of_a_loop(void)
{
	static const char text[] = HEAD
		"^main(%%x: float64[2,3], %%w: float64[3,3], %%k: float64[2,3]) {\n"
		"	%%n = const int64[] {%d}\n"
		"	%%y, %%ys = Loop(%%n, _) {body = ^b(%%i: int64[], %%c: bool[], %%h: float64[2,3]) {\n"
		"		%%a = MatMul(%%h, %%w)\n"
		"		%%r = Relu(%%a)\n"
		"		%%g = Add(%%r, %%x)\n"
		"		%%z = Mul(%%g, %%x)\n"
		"		ret %%c, %%g, %%z\n"
		"	}}\n"
		"	%%p = Mul(%%y, %%k)\n"
		"	%%l = ReduceSum(%%p) {keepdims = 0}\n"
		"	%%q = Mul(%%ys, %%k)\n"
		"	%%m = ReduceSum(%%q) {keepdims = 0}\n"
		"	%%e = Add(%%l, %%m)\n"
		"	ret %%e\n"
		"}\n";
	char all[2048];

	for (int n = 0; n < 4; n++) {
		snprintf(all, sizeof all, text, n);
		/* The initial value of the state is %x where the body says %h. */
		char *at = strstr(all, "_)");
		char more[2048];
		snprintf(more, sizeof more, "%.*s_, %%k)%s", (int)(at - all), all, at + 2);
		unit_grad_check(more, 1);
	}
}

/* It ends when a sum is large: the tape is as long as the number of iterations. */
static void
of_a_loop_that_ends_early(void)
{
	unit_grad_check(HEAD
		"^main(%x: float64[3], %w: float64[3]) {\n"
		"	%n = const int64[] {100}\n"
		"	%t = const bool[] {1}\n"
		"	%most = const float64[] {50.0}\n"
		"	%y, %o = Loop(%n, %t, %x, %w) {body = ^b(%i: int64[], %c: bool[], %h: float64[3], %j: float64[3]) {\n"
		"		%a = Mul(%h, %w)\n"
		"		%b = Add(%a, %h)\n"
		"		%d = Add(%b, %h)\n"
		"		%s = Mul(%d, %d)\n"
		"		%f = ReduceSum(%s) {keepdims = 0}\n"
		"		%g = Less(%f, %most)\n"
		"		ret %g, %d, %h\n"
		"	}}\n"
		"	%p = Mul(%y, %y)\n"
		"	%l = ReduceSum(%p) {keepdims = 0}\n"
		"	%q = Mul(%o, %y)\n"
		"	%m = ReduceSum(%q) {keepdims = 0}\n"
		"	%e = Add(%l, %m)\n"
		"	ret %e\n"
		"}\n", 1);
}

/* Nothing has to be kept: the number of iterations alone. */
static void
of_a_loop_without_tape(void)
{
	unit_grad_check(HEAD
		"^main(%x: float64[3], %w: float64[3]) {\n"
		"	%n = const int64[] {3}\n"
		"	%y = Loop(%n, _, %x) {body = ^b(%i: int64[], %c: bool[], %h: float64[3]) {\n"
		"		%a = Add(%h, %w)\n"
		"		%d = Add(%a, %h)\n"
		"		ret %c, %d\n"
		"	}}\n"
		"	%l = ReduceSum(%y) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n", 1);
}

/* Axes and directions of what is scanned and of what is stacked. */
static void
of_a_scan(void)
{
	unit_grad_check(HEAD
		"^main(%h: float64[2,3], %x: float64[2,4,3], %z: float64[4,3], %w: float64[3,3]) {\n"
		"	%y, %a, %b = Scan(%h, %x, %z) {num_scan_inputs = 2, scan_input_axes = [1, 0],\n"
		"		scan_input_directions = [0, 1], scan_output_axes = [1, -1], scan_output_directions = [1, 0],\n"
		"		body = ^b(%s: float64[2,3], %u: float64[2,3], %v: float64[3]) {\n"
		"		%c = Mul(%w, %w)\n"
		"		%d = MatMul(%s, %c)\n"
		"		%e = Mul(%d, %u)\n"
		"		%f = Add(%e, %v)\n"
		"		%g = Mul(%f, %v)\n"
		"		%i = Relu(%g)\n"
		"		ret %f, %i, %e\n"
		"	}}\n"
		"	%p = Mul(%y, %y)\n"
		"	%l = ReduceSum(%p) {keepdims = 0}\n"
		"	%q = Mul(%a, %x)\n"
		"	%m = ReduceSum(%q) {keepdims = 0}\n"
		"	%r = Mul(%b, %b)\n"
		"	%n = ReduceMean(%r) {keepdims = 0}\n"
		"	%o = Add(%l, %m)\n"
		"	%t = Add(%n, %o)\n"
		"	ret %t\n"
		"}\n", 1);
}

/* A loop in a branch in a loop: values are kept twice over. */
static void
of_nested_bodies(void)
{
	unit_grad_check(HEAD
		"^main(%x: float64[2], %w: float64[2], %k: float64[3,2]) {\n"
		"	%n = const int64[] {3}\n"
		"	%m = const int64[] {2}\n"
		"	%one = const int64[] {1}\n"
		"	%y, %o = Loop(%n, _, %x) {body = ^b(%i: int64[], %c: bool[], %h: float64[2]) {\n"
		"		%a = Mul(%h, %w)\n"
		"		%t = Less(%i, %m)\n"
		"		%u = If(%t) {then_branch = ^t() {\n"
		"			%b = Mul(%a, %a)\n"
		"			%d, %ds = Loop(%m, _, %b) {body = ^q(%j: int64[], %e: bool[], %f: float64[2]) {\n"
		"				%v = Mul(%f, %a)\n"
		"				%g = Add(%v, %x)\n"
		"				ret %e, %g, %v\n"
		"			}}\n"
		"			%s = ReduceSum(%ds) {keepdims = 0}\n"
		"			%sd = Add(%s, %d)\n"
		"			ret %sd\n"
		"		}, else_branch = ^e() {\n"
		"			%p = Add(%h, %x)\n"
		"			%q = Relu(%p)\n"
		"			ret %q\n"
		"		}}\n"
		"		ret %c, %u, %a\n"
		"	}}\n"
		"	%z = Mul(%o, %k)\n"
		"	%l = ReduceSum(%z) {keepdims = 0}\n"
		"	%r = ReduceSum(%y) {keepdims = 0}\n"
		"	%loss = Add(%l, %r)\n"
		"	ret %loss\n"
		"}\n", 1);
}

/* A layer of LSTM, rolled: the same step in a Loop, which picks its input, and in a Scan. */
#define LSTM_STEP \
	"		%wt = Transpose(%w) {perm = [1, 0]}\n" \
	"		%rt = Transpose(%r) {perm = [1, 0]}\n" \
	"		%g1 = MatMul(%xt, %wt)\n" \
	"		%g2 = MatMul(%h, %rt)\n" \
	"		%g3 = Add(%g1, %g2)\n" \
	"		%g = Add(%g3, %b)\n" \
	"		%i, %o, %f, %z = Split(%g) {axis = 1}\n" \
	"		%si = Sigmoid(%i)\n" \
	"		%so = Sigmoid(%o)\n" \
	"		%sf = Sigmoid(%f)\n" \
	"		%tz = Tanh(%z)\n" \
	"		%fc = Mul(%sf, %c)\n" \
	"		%iz = Mul(%si, %tz)\n" \
	"		%cn = Add(%fc, %iz)\n" \
	"		%tc = Tanh(%cn)\n" \
	"		%hn = Mul(%so, %tc)\n"
#define LSTM_HEAD HEAD "^main(%x: float64[3,2,2], %w: float64[8,2], %r: float64[8,2], %b: float64[8], " \
	"%h0: float64[2,2], %c0: float64[2,2]) {\n"
#define LSTM_TAIL "	}}\n	%a = Mul(%y, %y)\n	%d = Mul(%cl, %hl)\n	%e = Add(%a, %d)\n" \
	"	%l = ReduceSum(%e) {keepdims = 0}\n	ret %l\n}\n"

static void
of_a_rolled_lstm(void)
{
	unit_grad_check(LSTM_HEAD
		"	%hl, %cl, %y = Scan(%h0, %c0, %x) {num_scan_inputs = 1, body = ^b(%h: float64[2,2], %c: float64[2,2], "
		"%xt: float64[2,2]) {\n" LSTM_STEP
		"		ret %hn, %cn, %hn\n" LSTM_TAIL, 1);
	unit_grad_check(LSTM_HEAD
		"	%n = const int64[] {3}\n"
		"	%hl, %cl, %y = Loop(%n, _, %h0, %c0) {body = ^b(%t: int64[], %q: bool[], %h: float64[2,2], "
		"%c: float64[2,2]) {\n"
		"		%xt = Gather(%x, %t) {axis = 0}\n" LSTM_STEP
		"		ret %q, %hn, %cn, %hn\n" LSTM_TAIL, 1);
}

#define DROPPED \
	"		%r = const float32[] {0.5}\n" \
	"		%t = const bool[] {1}\n" \
	"		%d = Dropout(%h, %r, %t)\n" \
	"		%u = RandomUniformLike(%h) {dtype = 11}\n" \
	"		%p = Sigmoid(%d)\n" \
	"		%m = Bernoulli(%p) {dtype = 11}\n" \
	"		%v = Mul(%d, %u)\n" \
	"		%s = Sin(%v)\n" \
	"		%a = Mul(%s, %m)\n" \
	"		%g = Add(%a, %h)\n"
#define DROPPED_LOSS \
	"	%e = Mul(%y, %y)\n	%l = ReduceSum(%e) {keepdims = 0}\n	ret %l\n}\n"
#define DROPPED_LOOP HEAD "^main(%x: float64[7]) {\n" \
	"	%n = const int64[] {3}\n" \
	"	%y = Loop(%n, _, %x) {body = ^b(%i: int64[], %c: bool[], %h: float64[7]) {\n" DROPPED \
	"		ret %c, %g\n	}}\n" DROPPED_LOSS

/* Each iteration draws other numbers; each run of a program draws the same. */
static void
of_what_is_drawn(void)
{
	unit_grad_check(DROPPED_LOOP, 1);
	unit_grad_check(HEAD "^main(%x: float64[4,7], %o: float64[7]) {\n"
		"	%y, %ys = Scan(%o, %x) {num_scan_inputs = 1, body = ^b(%q: float64[7], %xt: float64[7]) {\n"
		"		%h = Add(%q, %xt)\n" DROPPED
		"		ret %g, %a\n	}}\n" DROPPED_LOSS, 1);
	unit_grad_check(HEAD "^main(%h: float64[7]) {\n"
		"	%o = const bool[] {1}\n"
		"	%y = If(%o) {then_branch = ^t() {\n" DROPPED
		"		ret %g\n	}, else_branch = ^e() {\n"
		"		%z = Neg(%h)\n"
		"		ret %z\n	}}\n" DROPPED_LOSS, 1);
}

/* Where the forward path has to stay as it is, what it drew cannot be had. */
static void
what_is_drawn_is_not_drawn_again(void)
{
	bench t = bench_open();
	om_value *grad = NULL;

	CU_ASSERT_EQUAL_FATAL(bench_plan(&t, DROPPED_LOOP, "inline,shapes"), OM_OK);
	om_backward b = OM_BACKWARD(.loss = t.p->first->result[0], .wrt = t.p->first->param, .nwrt = 1, .grad = &grad, .copies = true);
	CU_ASSERT_EQUAL(om_prog_backward(t.s, t.p, &b), OM_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(om_message(t.s), "Dropout d in its body is random"));
	bench_close(&t);
}

/* No iteration computes the state from its initial value, which is the output after none, and which the first
 * iteration reads.  The number of iterations is not known. */
static void
of_an_initial_value(void)
{
	static const char text[] = HEAD
		"^main(%%x: float64[2,3]) {\n"
		"	%%k = const float64[2,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}\n"
		"	%%t = const float64[] {0}\n"
		"	%%d = Mul(%%t, %%x)\n"
		"	%%m = ReduceSum(%%d) {keepdims = 0}\n"
		"	%%f = const float64[] {%d}\n"
		"	%%e = Add(%%m, %%f)\n"
		"	%%n = Cast(%%e) {to = 7}\n"
		"	%%y, %%s, %%q = Loop(%%n, _, %%x, %%t) {body = ^b(%%i: int64[], %%c: bool[], %%h: float64[2,3], %%a: float64[]) {\n"
		"		%%g = Identity(%%c)\n"
		"		%%z = Mul(%%h, %%h)\n"
		"		%%r = ReduceSum(%%z) {keepdims = 0}\n"
		"		%%v = Add(%%a, %%r)\n"
		"		ret %%g, %%k, %%v, %%r\n"
		"	}}\n"
		"	%%o = Mul(%%y, %%y)\n"
		"	%%p = ReduceSum(%%o) {keepdims = 0}\n"
		"	%%u = ReduceSum(%%q) {keepdims = 0}\n"
		"	%%w = Mul(%%s, %%s)\n"
		"	%%j = Add(%%p, %%u)\n"
		"	%%l = Add(%%j, %%w)\n"
		"	ret %%l\n"
		"}\n";

	for (int n = 0; n < 4; n++) {
		char all[2048];
		snprintf(all, sizeof all, text, n);
		unit_grad_check(all, 1);
	}
}

/* Three levels: the trip counts of the inner ones depend on the outer iteration; the last level ends by a condition
 * on data. */
#define NESTED(n) HEAD \
	"^main(%x: float64[2], %w: float64[2]) {\n" \
	"	%n = const int64[] {" #n "}\n" \
	"	%two = const int64[] {2}\n" \
	"	%m = const int64[] {9}\n" \
	"	%most = const float64[] {1.5}\n" \
	"	%y, %ys = Loop(%n, _, %x) {body = ^a(%i: int64[], %c: bool[], %h: float64[2]) {\n" \
	"		%t = Mul(%i, %two)\n" \
	"		%k = Sub(%n, %t)\n" \
	"		%p, %ps = Loop(%k, _, %h) {body = ^b(%j: int64[], %d: bool[], %q: float64[2]) {\n" \
	"			%l = Add(%i, %j)\n" \
	"			%u = Loop(%l, _, %q) {body = ^d(%e: int64[], %f: bool[], %r: float64[2]) {\n" \
	"				%s = Sin(%r)\n" \
	"				%v = Mul(%s, %w)\n" \
	"				%z = ReduceSum(%v) {keepdims = 0}\n" \
	"				%g = Less(%z, %most)\n" \
	"				ret %g, %v\n" \
	"			}}\n" \
	"			%o = Mul(%u, %x)\n" \
	"			%aa = Add(%o, %q)\n" \
	"			ret %d, %aa, %o\n" \
	"		}}\n" \
	"		%ab = Mul(%ps, %ps)\n" \
	"		%ac = ReduceSum(%ab) {keepdims = 0}\n" \
	"		%ad = Mul(%p, %w)\n" \
	"		ret %c, %ad, %ac\n" \
	"	}}\n" \
	"	%ae = Mul(%y, %y)\n" \
	"	%af = ReduceSum(%ae) {keepdims = 0}\n" \
	"	%ag = ReduceSum(%ys) {keepdims = 0}\n" \
	"	%loss = Add(%af, %ag)\n" \
	"	ret %loss\n" \
	"}\n"

static void
of_ragged_nests(void)
{
	unit_grad_check(NESTED(0), 1);
	unit_grad_check(NESTED(1), 1);
	unit_grad_check(NESTED(2), 1);
	unit_grad_check(NESTED(4), 1);
	unit_grad_check(NESTED(8), 1);
}

/* Both dims of a kept value depend on the iteration; a branch that is not always taken has an inner loop; the last
 * dim of a value may be 0. */
static void
of_ragged_values(void)
{
	unit_grad_check(HEAD
		"^main(%x: float64[4,5], %w: float64[4]) {\n"
		"	%n = const int64[] {4}\n"
		"	%one = const int64[] {1}\n"
		"	%zero = const int64[2] {0, 0}\n"
		"	%axes0 = const int64[1] {0}\n"
		"	%two = const int64[] {2}\n"
		"	%axes = const int64[2] {0, 1}\n"
		"	%y = Loop(%n, _, %w) {body = ^a(%i: int64[], %c: bool[], %h: float64[4]) {\n"
		"		%iu = Unsqueeze(%i, %axes0)\n"
		"		%ends = Concat(%iu, %iu) {axis = 0}\n"
		"		%part = Slice(%x, %zero, %ends, %axes)\n"
		"		%s = Mul(%part, %part)\n"
		"		%sin = Sin(%s)\n"
		"		%sum = ReduceSum(%sin) {keepdims = 0}\n"
		"		%t = Less(%i, %two)\n"
		"		%b = If(%t) {then_branch = ^t() {\n"
		"			%k = Add(%i, %one)\n"
		"			%q = Loop(%k, _, %h) {body = ^b(%j: int64[], %d: bool[], %r: float64[4]) {\n"
		"				%ss = Sin(%r)\n"
		"				%sw = Mul(%ss, %w)\n"
		"				ret %d, %sw\n"
		"			}}\n"
		"			ret %q\n"
		"		}, else_branch = ^e() {\n"
		"			%hh = Mul(%h, %sum)\n"
		"			ret %hh\n"
		"		}}\n"
		"		%z = Add(%b, %sum)\n"
		"		ret %c, %z\n"
		"	}}\n"
		"	%yy = Mul(%y, %y)\n"
		"	%l = ReduceSum(%yy) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n", 1);
}

/* A state that grows, whose gradient shrinks. */
static void
of_a_growing_state(void)
{
	static const char text[] = HEAD
		"^main(%%x: float64[2], %%w: float64[2]) {\n"
		"	%%n = const int64[] {%d}\n"
		"	%%y, %%o = Loop(%%n, _, %%x, %%w) {body = ^a(%%i: int64[], %%c: bool[], %%h: float64[..], %%g: float64[2]) {\n"
		"		%%a = Mul(%%g, %%x)\n"
		"		%%b = Concat(%%h, %%a) {axis = 0}\n"
		"		%%d = Sin(%%b)\n"
		"		%%s = ReduceSum(%%d) {keepdims = 0}\n"
		"		%%e = Mul(%%g, %%s)\n"
		"		ret %%c, %%d, %%e\n"
		"	}}\n"
		"	%%p = Mul(%%y, %%y)\n"
		"	%%q = ReduceSum(%%p) {keepdims = 0}\n"
		"	%%r = ReduceSum(%%o) {keepdims = 0}\n"
		"	%%l = Add(%%q, %%r)\n"
		"	ret %%l\n"
		"}\n";

	for (int n = 0; n < 5; n++) {
		char all[2048];
		snprintf(all, sizeof all, text, n);
		unit_grad_check(all, 1);
	}
}

/* Its tape would be ragged, so it becomes a Loop; axes and directions as in of_a_scan(). */
static void
of_a_ragged_scan(void)
{
	unit_grad_check(HEAD
		"^main(%h: float64[2,3], %x: float64[2,4,3], %z: float64[4,3], %w: float64[2,3]) {\n"
		"	%k = const int64[4] {2, 0, 3, 1}\n"
		"	%y, %a, %b = Scan(%h, %x, %z, %k) {num_scan_inputs = 3, scan_input_axes = [1, 0, 0],\n"
		"		scan_input_directions = [0, 1, 0], scan_output_axes = [1, -1], scan_output_directions = [1, 0],\n"
		"		body = ^b(%s: float64[2,3], %u: float64[2,3], %v: float64[3], %n: int64[]) {\n"
		"		%d, %ds = Loop(%n, _, %s) {body = ^l(%i: int64[], %c: bool[], %t: float64[2,3]) {\n"
		"			%e = Mul(%t, %u)\n"
		"			%f = Sin(%e)\n"
		"			%g = Mul(%f, %w)\n"
		"			ret %c, %g, %f\n"
		"		}}\n"
		"		%j = ReduceSum(%ds) {keepdims = 0}\n"
		"		%m = Mul(%d, %v)\n"
		"		%o = Mul(%v, %j)\n"
		"		ret %m, %o, %d\n"
		"	}}\n"
		"	%p = Mul(%y, %y)\n"
		"	%l = ReduceSum(%p) {keepdims = 0}\n"
		"	%at = Transpose(%a) {perm = [1, 0]}\n"
		"	%q = Mul(%at, %z)\n"
		"	%q2 = Mul(%q, %q)\n"
		"	%m2 = ReduceSum(%q2) {keepdims = 0}\n"
		"	%r = Mul(%b, %b)\n"
		"	%n2 = ReduceMean(%r) {keepdims = 0}\n"
		"	%o2 = Add(%l, %m2)\n"
		"	%t2 = Add(%n2, %o2)\n"
		"	ret %t2\n"
		"}\n", 1);
}

/* A Loop that appends to a sequence, which is then joined. */
static void
of_a_sequence(void)
{
	unit_grad_check(HEAD
		"^main(%x: float64[4,2], %w: float64[2]) {\n"
		"	%n = const int64[] {4}\n"
		"	%zero = const int64[1] {0}\n"
		"	%first = const float64[0,2] {}\n"
		"	%none = SequenceConstruct(%first)\n"
		"	%y, %s = Loop(%n, _, %w, %none) {body = ^a(%i: int64[], %c: bool[], %h: float64[2], %q: seq(float64)) {\n"
		"		%iu = Unsqueeze(%i, %zero)\n"
		"		%part = Slice(%x, %zero, %iu, %zero)\n"
		"		%a = Mul(%part, %h)\n"
		"		%b = Sin(%h)\n"
		"		%t = SequenceInsert(%q, %a)\n"
		"		ret %c, %b, %t\n"
		"	}}\n"
		"	%all = ConcatFromSequence(%s) {axis = 0}\n"
		"	%two = Mul(%all, %y)\n"
		"	%sq = Mul(%two, %two)\n"
		"	%l = ReduceSum(%sq) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n", 1);
}

/* A sequence that is not appended to, and one whose first element has rows. */
static void
of_other_sequences(void)
{
	static const char *const text[] = {
		HEAD "^main(%x: float64[4,2]) {\n"
		"	%s = SplitToSequence(%x)\n"
		"	%a = ConcatFromSequence(%s) {axis = 0}\n"
		"	%ax = const int64[2] {0, 1}\n"
		"	%l = ReduceSum(%a, %ax) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n",
		HEAD "^main(%x: float64[4,2]) {\n"
		"	%n = const int64[] {2}\n"
		"	%q = SequenceConstruct(%x)\n"
		"	%s = Loop(%n, _, %q) {body = ^a(%i: int64[], %c: bool[], %p: seq(float64)) {\n"
		"		%t = SequenceInsert(%p, %x)\n"
		"		ret %c, %t\n"
		"	}}\n"
		"	%a = ConcatFromSequence(%s) {axis = 0}\n"
		"	%ax = const int64[2] {0, 1}\n"
		"	%l = ReduceSum(%a, %ax) {keepdims = 0}\n"
		"	ret %l\n"
		"}\n"};

	for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
		bench t = bench_open();
		om_value *grad = NULL;
		CU_ASSERT_EQUAL_FATAL(bench_plan(&t, text[k], "inline,shapes"), OM_OK);
		om_backward b = OM_BACKWARD(.loss = t.p->first->result[0], .wrt = t.p->first->param, .nwrt = 1, .grad = &grad);
		CU_ASSERT_EQUAL(om_prog_backward(t.s, t.p, &b), OM_UNSUPPORTED);
		CU_ASSERT_PTR_NOT_NULL(strstr(om_message(t.s), "only if a Loop appends its elements"));
		bench_close(&t);
	}
}

/* Rows that iterations read, some of them twice, are scattered into the sums; slices from the end, empty ones, and beyond both
 * ends.  One gradient goes to the state and to a captured value. */
static void
of_rows_of_captured_values(void)
{
	static const char *const rows[] = {
		"%r = Gather(%w, %i)\n", "%j = Neg(%i)\n%r = Gather(%w, %j)\n",
		"%k = const int64[2,2] {0, 1, 1, -1}\n%g = Gather(%w, %k)\n%r = ReduceSum(%g, %ax) {keepdims = 0}\n",
		"%k = const int64[2,1] {1, -1}\n%g = GatherND(%w, %k)\n%r = ReduceSum(%g, %zero) {keepdims = 0}\n",
		"%k = const int64[1,3] {1, -1, 0}\n%g = GatherElements(%w, %k)\n%r = ReduceSum(%g, %zero) {keepdims = 0}\n",
		"%a = Unsqueeze(%i, %zero)\n%b = const int64[1] {3}\n%g = Slice(%w, %a, %b)\n%r = ReduceSum(%g, %zero) {keepdims = 0}\n",
		("%m = Sub(%i, %six)\n%a = Unsqueeze(%m, %zero)\n%b = const int64[1] {-1}\n%g = Slice(%w, %a, %b, %zero)\n"
			"%r = ReduceSum(%g, %zero) {keepdims = 0}\n"),
		"%a = Unsqueeze(%i, %zero)\n%b = const int64[1] {99}\n%g = Slice(%w, %a, %b, %zero)\n%r = ReduceSum(%g, %zero) {keepdims = 0}\n",
		"%r0 = Gather(%w, %i)\n%r1 = Gather(%w, %i)\n%r2 = Mul(%r0, %r1)\n%e = Gather(%w, %one)\n%r = Add(%e, %r2)\n",
		"%all = Add(%q, %w)\n%r = Gather(%all, %i)\n",
	};
	char text[2048];

	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		printf("# %zu\n", k);
		snprintf(text, sizeof text, HEAD "^main(%%x: float64[3], %%w: float64[4,3], %%v: float64[4,3]) {\n"
			"%%n = const int64[] {4}\n%%zero = const int64[1] {0}\n%%one = const int64[] {1}\n%%six = const int64[] {6}\n"
			"%%ax = const int64[2] {0, 1}\n"
			"%%y, %%z = Loop(%%n, _, %%x, %%v) {body = ^a(%%i: int64[], %%c: bool[], %%h: float64[3], %%q: float64[4,3]) {\n"
			"%s%%t = Mul(%%h, %%r)\n%%u = Sin(%%t)\nret %%c, %%u, %%q\n}}\n"
			"%%s = Mul(%%y, %%y)\n%%l = ReduceSum(%%s) {keepdims = 0}\nret %%l\n}\n", rows[k]);
		unit_grad_check(text, 1);
		unit_grad_check_twice(text, 1);
	}
}

static CU_TestInfo gradbodies_tests[] = {
	{"of a branch", of_a_branch},
	{"branches of another rank", of_branches_of_other_rank},
	{"of branches that share an output", of_branches_that_share},
	{"of a loop", of_a_loop},
	{"of rows of captured values", of_rows_of_captured_values},
	{"of a loop that ends early", of_a_loop_that_ends_early},
	{"of an initial value that no iteration passes on", of_an_initial_value},
	{"of a loop that keeps nothing", of_a_loop_without_tape},
	{"of a scan", of_a_scan},
	{"of a loop in a branch in a loop", of_nested_bodies},
	{"of an LSTM in a Loop and in a Scan", of_a_rolled_lstm},
	{"of nested loops whose trip counts depend on the iteration", of_ragged_nests},
	{"of values whose shape depends on the iteration", of_ragged_values},
	{"of a state that grows", of_a_growing_state},
	{"of a scan over loops of different lengths", of_a_ragged_scan},
	{"of a sequence that a loop appends to", of_a_sequence},
	{"not of other sequences", of_other_sequences},
	{"of what is drawn in bodies", of_what_is_drawn},
	{"what is drawn is not drawn again", what_is_drawn_is_not_drawn_again},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("gradients of bodies", gradbodies_tests);
