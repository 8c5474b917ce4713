/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and objects made by the iterations of a loop: what is not carried, collected or captured is
 * released, whatever the number of iterations, and what is keeps its contents. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/fixtures.h"
#include "unit.h"

/* Enough iterations to see memory grow; and many more, where runs are fast. */
static int64_t
iterations(int way)
{
	return way == PLANNED ? 1000000 : 20000;
}

/* Run with x = {1, 2} and n; false, with the message printed, if that failed. */
static bool
runs(bench *r, const char *body, int way)
{
	static const float x[] = {1, 2};
	int64_t n = iterations(way);
	const om_tensor in[2] = {floats_of(2, x), {.type = OM_INT64, .shape = om_shape_of(0, NULL), .data = &n}};

	*r = bench_open();
	om_status st = bench_plan(r, om_printf(r->mem, "program \"t\" ir 10 opset 20\n%s", body), om_default_pipeline());
	if (st == OM_OK)
		st = bench_exec(r, &ways[way]);
	if (st == OM_OK)
		st = bench_run(r, in, r->p->first->nparam > 1 ? 2 : 1);
	if (st == OM_OK && way != PLANNED)
		st = om_exec_run(r->e);
	CU_ASSERT_EQUAL(st, OM_OK);
	return is_ok(r->s, st);
}

static const float *
floats(const bench *r, uint32_t k)
{
	return om_exec_result(r->e, k)->data;
}

static uint64_t
object_bytes(const bench *r)
{
	return om_exec_get_stats(r->e)->object_bytes;
}

/* More than the iterations of the following programs leave live, and far less than they make. */
enum { FEW_BYTES = 256 * 1024 };

static void
optionals_are_released(void)
{
	for (int way = 0; way < NWAY; way++) {
		bench r;
		if (runs(&r, "^main(%x: float32[2], %n: int64[]) {\n"
			"	%on = const bool[] {1}\n"
			"	%one = const float32[] {1.0}\n"
			"	%start = Optional(%x)\n"
			"	%last = Loop(%n, %on, %start) {\n"
			"		body = ^round(%i: int64[], %c: bool[], %o: optional(float32)) {\n"
			"			%e = OptionalGetElement(%o)\n"
			"			%w = Add(%e, %one)\n"
			"			%next = Optional(%w)\n"
			"			ret %c, %next\n"
			"		}\n"
			"	}\n"
			"	%y = OptionalGetElement(%last)\n"
			"	%z = OptionalGetElement(%start)\n"
			"	ret %y, %z\n"
			"}\n", way)) {
			CU_ASSERT_EQUAL(floats(&r, 0)[0], 1 + iterations(way));
			CU_ASSERT_EQUAL(floats(&r, 0)[1], 2 + iterations(way));
			CU_ASSERT_EQUAL(floats(&r, 1)[1], 2);
			CU_ASSERT(object_bytes(&r) < FEW_BYTES);
		}
		bench_close(&r);
	}
}

/* A queue of two elements, carried twice: the copies stay equal. */
static void
sequences_are_released(void)
{
	for (int way = 0; way < NWAY; way++) {
		bench r;
		if (runs(&r, "^main(%x: float32[2], %n: int64[]) {\n"
			"	%on = const bool[] {1}\n"
			"	%one = const float32[] {1.0}\n"
			"	%zero = const int64[] {0}\n"
			"	%v = Neg(%x)\n"
			"	%start = SequenceConstruct(%x, %v)\n"
			"	%last, %twin = Loop(%n, %on, %start, %start) {\n"
			"		body = ^round(%i: int64[], %c: bool[], %s: seq(float32), %t: seq(float32)) {\n"
			"			%e = SequenceAt(%t, %zero)\n"
			"			%w = Add(%e, %one)\n"
			"			%rest = SequenceErase(%s, %zero)\n"
			"			%next = SequenceInsert(%rest, %w)\n"
			"			ret %c, %next, %next\n"
			"		}\n"
			"	}\n"
			"	%y = ConcatFromSequence(%last) {axis = 0}\n"
			"	%z = ConcatFromSequence(%twin) {axis = 0}\n"
			"	%o = ConcatFromSequence(%start) {axis = 0}\n"
			"	ret %y, %z, %o\n"
			"}\n", way)) {
			for (uint32_t k = 0; k < 2; k++) {
				CU_ASSERT_EQUAL(floats(&r, k)[0], 1 + iterations(way) / 2);
				CU_ASSERT_EQUAL(floats(&r, k)[1], 2 + iterations(way) / 2);
				CU_ASSERT_EQUAL(floats(&r, k)[2], -1 + iterations(way) / 2);
				CU_ASSERT_EQUAL(floats(&r, k)[3], -2 + iterations(way) / 2);
			}
			CU_ASSERT_EQUAL(floats(&r, 2)[3], -2);
			CU_ASSERT(object_bytes(&r) < FEW_BYTES);
		}
		bench_close(&r);
	}
}

static bool
is_text(const bench *r, uint32_t k, int64_t at, const char *want)
{
	const om_string *s = (const om_string *)om_exec_result(r->e, k)->data + at;
	return s->size == strlen(want) && memcmp(s->data, want, s->size) == 0;
}

/* A carried string, of the last iteration, and one from outside. */
static void
strings_are_released(void)
{
	for (int way = 0; way < NWAY; way++) {
		bench r;
		if (runs(&r, "^main(%x: float32[2], %n: int64[]) {\n"
			"	%on = const bool[] {1}\n"
			"	%tag = Cast(%x) {to = 8}\n"
			"	%id = Identity(%tag)\n"
			"	%last, %same = Loop(%n, %on, %tag, %id) {\n"
			"		body = ^round(%i: int64[], %c: bool[], %s: string[2], %d: string[2]) {\n"
			"			%t = Cast(%i) {to = 8}\n"
			"			%u = StringConcat(%tag, %t)\n"
			"			ret %c, %u, %d\n"
			"		}\n"
			"	}\n"
			"	ret %last, %same, %tag\n"
			"}\n", way)) {
			CU_ASSERT(is_text(&r, 0, 0, way == PLANNED ? "1999999" : "119999"));
			CU_ASSERT(is_text(&r, 0, 1, way == PLANNED ? "2999999" : "219999"));
			CU_ASSERT(is_text(&r, 1, 1, "2"));
			CU_ASSERT(is_text(&r, 2, 0, "1"));
			CU_ASSERT(object_bytes(&r) < FEW_BYTES);
		}
		bench_close(&r);
	}
}

/* All iterations' strings are collected, by a Loop and, backward and interleaved, by a Scan. */
static void
collected_strings_stay(void)
{
	for (int way = 0; way < NWAY; way++) {
		bench r;
		if (runs(&r, "^main(%x: float32[2]) {\n"
			"	%n = const int64[] {20000}\n"
			"	%on = const bool[] {1}\n"
			"	%tag = Cast(%x) {to = 8}\n"
			"	%all = Loop(%n, %on) {\n"
			"		body = ^round(%i: int64[], %c: bool[]) {\n"
			"			%t = Cast(%i) {to = 8}\n"
			"			%lost = StringConcat(%t, %tag)\n"
			"			%u = StringConcat(%tag, %t)\n"
			"			ret %c, %u\n"
			"		}\n"
			"	}\n"
			"	%back, %on2 = Scan(%tag, %all) {num_scan_inputs = 1, scan_output_axes = [1], scan_output_directions = [1],\n"
			"		body = ^each(%p: string[2], %q: string[2]) {\n"
			"			%v = StringConcat(%q, %tag)\n"
			"			ret %v, %v\n"
			"		}\n"
			"	}\n"
			"	ret %all, %back, %on2\n"
			"}\n", way)) {
			int64_t wrong = 0;
			for (int64_t i = 0; i < 20000; i++) {
				char want[32];
				snprintf(want, sizeof want, "1%lld", (long long)i);
				wrong += !is_text(&r, 0, 2 * i, want);
				snprintf(want, sizeof want, "1%lld1", (long long)i);
				wrong += !is_text(&r, 2, 19999 - i, want);
				snprintf(want, sizeof want, "2%lld2", (long long)i);
				wrong += !is_text(&r, 2, 20000 + 19999 - i, want);
			}
			CU_ASSERT_EQUAL(wrong, 0);
			CU_ASSERT(is_text(&r, 1, 1, "2199992"));
		}
		bench_close(&r);
	}
}

/* The inner loop reads a sequence of the outer one and gives it an optional; the outer one grows. */
static void
nested_loops_keep_what_they_carry(void)
{
	for (int way = 0; way < NWAY; way++) {
		bench r;
		if (runs(&r, "^main(%x: float32[2]) {\n"
			"	%n = const int64[] {100}\n"
			"	%m = const int64[] {300}\n"
			"	%on = const bool[] {1}\n"
			"	%one = const float32[] {1.0}\n"
			"	%end = const int64[] {-1}\n"
			"	%start = SequenceConstruct(%x)\n"
			"	%all = Loop(%n, %on, %start) {\n"
			"		body = ^outer(%i: int64[], %c: bool[], %s: seq(float32)) {\n"
			"			%e = SequenceAt(%s, %end)\n"
			"			%o = Optional(%e)\n"
			"			%p = Loop(%m, %c, %o) {\n"
			"				body = ^inner(%j: int64[], %d: bool[], %q: optional(float32)) {\n"
			"					%f = OptionalGetElement(%q)\n"
			"					%g = Add(%f, %one)\n"
			"					%t = SequenceInsert(%s, %g)\n"
			"					%h = SequenceAt(%t, %end)\n"
			"					%u = Optional(%h)\n"
			"					ret %d, %u\n"
			"				}\n"
			"			}\n"
			"			%v = OptionalGetElement(%p)\n"
			"			%more = SequenceInsert(%s, %v)\n"
			"			ret %c, %more\n"
			"		}\n"
			"	}\n"
			"	%y = ConcatFromSequence(%all) {axis = 0}\n"
			"	ret %y\n"
			"}\n", way)) {
			int64_t wrong = 0;
			for (int64_t i = 0; i <= 100; i++)
				wrong += floats(&r, 0)[2 * i] != (float)(1 + 300 * i) || floats(&r, 0)[2 * i + 1] != (float)(2 + 300 * i);
			CU_ASSERT_EQUAL(wrong, 0);
			CU_ASSERT(object_bytes(&r) < 4 * FEW_BYTES);
		}
		bench_close(&r);
	}
}

/* The body takes an optional and gives its element: the optional must hold a copy. */
static void
an_optional_holds_its_own_elements(void)
{
	for (int way = 0; way < NWAY; way++) {
		bench r;
		if (runs(&r, "^main(%x: float32[2]) {\n"
			"	%n = const int64[] {5000}\n"
			"	%on = const bool[] {1}\n"
			"	%one = const float32[] {1.0}\n"
			"	%start = Optional(%x)\n"
			"	%last, %all = Loop(%n, %on, %start) {\n"
			"		body = ^round(%i: int64[], %c: bool[], %o: optional(float32)) {\n"
			"			%e = OptionalGetElement(%o)\n"
			"			%w = Add(%e, %one)\n"
			"			%v = Neg(%e)\n"
			"			%u = Add(%v, %w)\n"
			"			%t = Add(%e, %u)\n"
			"			ret %c, %t, %v\n"
			"		}\n"
			"	}\n"
			"	%y = OptionalGetElement(%last)\n"
			"	ret %y, %all\n"
			"}\n", way)) {
			CU_ASSERT_EQUAL(floats(&r, 0)[0], 5001);
			CU_ASSERT_EQUAL(floats(&r, 0)[1], 5002);
			CU_ASSERT_EQUAL(floats(&r, 1)[2 * 4999], -5000);
			CU_ASSERT(object_bytes(&r) < FEW_BYTES);
		}
		bench_close(&r);
	}
}

/* Each element's body makes strings; those of the results stay. */
static void
mapped_strings_stay(void)
{
	for (int way = 0; way < NWAY; way++) {
		bench r;
		if (runs(&r, "^main(%x: float32[2]) {\n"
			"	%zero = const int64[] {0}\n"
			"	%limit = const int64[] {20000}\n"
			"	%delta = const int64[] {1}\n"
			"	%range = Range(%zero, %limit, %delta)\n"
			"	%parts = SplitToSequence(%range)\n"
			"	%tag = Cast(%x) {to = 8}\n"
			"	%y = SequenceMap(%parts) {\n"
			"		body = ^each(%p: int64[?]) {\n"
			"			%t = Cast(%p) {to = 8}\n"
			"			%lost = StringConcat(%t, %t)\n"
			"			%u = StringConcat(%tag, %t)\n"
			"			ret %u\n"
			"		}\n"
			"	}\n"
			"	%z = ConcatFromSequence(%y) {axis = 0}\n"
			"	ret %z\n"
			"}\n", way)) {
			int64_t wrong = 0;
			for (int64_t i = 0; i < 20000; i++) {
				char want[32];
				snprintf(want, sizeof want, "2%lld", (long long)i);
				wrong += !is_text(&r, 0, 2 * i + 1, want);
			}
			CU_ASSERT_EQUAL(wrong, 0);
		}
		bench_close(&r);
	}
}

static CU_TestInfo objects_in_loops_tests[] = {
	{"optionals are released", optionals_are_released},
	{"sequences are released", sequences_are_released},
	{"strings are released", strings_are_released},
	{"collected strings stay", collected_strings_stay},
	{"nested loops keep what they carry", nested_loops_keep_what_they_carry},
	{"an optional holds its own elements", an_optional_holds_its_own_elements},
	{"mapped strings stay", mapped_strings_stay},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("objects in loops", objects_in_loops_tests);
