/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>

#include "base/rng.h"
#include "drawn_text.h"
#include "unit.h"

void
unit_say(struct unit_text *t, const char *fmt, ...)
{
	va_list v;

	va_start(v, fmt);
	const int n = vsnprintf(t->at + t->n, sizeof t->at - t->n, fmt, v);
	va_end(v);
	CU_ASSERT_FATAL(n >= 0 && (size_t)n < sizeof t->at - t->n);
	t->n += (size_t)n;
}

void
unit_draw(struct unit_text *t, uint64_t *rng, int values, int rows, int columns, bool some_alone)
{
	static const char *const two[] = {"Add", "Sub", "Max", "Min"}, *const one[] = {"Relu", "Neg", "Abs"};

	t->n = 0;
	unit_say(t, "program \"t\" ir 8 opset 17\n^main(%%v0: float32[%d,%d], %%v1: float32[%d,%d]) {\n\t%%axis = const int64[] {1}\n"
		"\t%%w = const float32[%d] splat {0.5}\n\t%%s = const int64[2] {%d, %d}\n", rows, columns, rows, columns, columns, rows, columns);
	for (int k = 2; k < values; k++) {
		const int a = (int)om_rng_below(rng, (uint64_t)k), b = (int)om_rng_below(rng, (uint64_t)k);
		switch (om_rng_below(rng, some_alone ? 9 : 8)) {
		case 0: unit_say(t, "\t%%v%d = CumSum(%%v%d, %%axis)\n", k, a); break;
		case 1: unit_say(t, "\t%%v%d = Reshape(%%v%d, %%s)\n", k, a); break;
		case 2: unit_say(t, "\t%%v%d = Mul(%%v%d, %%w)\n", k, a); break;
		case 3: case 4: unit_say(t, "\t%%v%d = %s(%%v%d)\n", k, one[om_rng_below(rng, 3)], a); break;
		case 8:
			unit_say(t, "\t%%n%d = NonZero(%%v%d)\n\t%%m%d = Cast(%%n%d) {to = 1}\n\t%%r%d = ReduceMax(%%m%d) {keepdims = 0}\n"
				"\t%%v%d = Add(%%v%d, %%r%d)\n", k, a, k, k, k, k, k, b, k);
			break;
		default: unit_say(t, "\t%%v%d = %s(%%v%d, %%v%d)\n", k, two[om_rng_below(rng, 4)], a, b); break;
		}
	}
	unit_say(t, "\tret %%v%d, %%v%d, %%v%d\n}\n", values - 1, values - 2, (int)om_rng_below(rng, (uint64_t)values - 2) + 2);
}
