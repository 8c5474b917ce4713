/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of dims, by recursive descent; the depth of parentheses is limited. */
#include <config.h>

#include <ctype.h>
#include <string.h>

#include "base/scan.h"
#include "ir/dim_expression.h"

enum { DEEPEST = 32 };

struct reader {
	const char *at;
	om_symbol_number *number;
	const void *arg;
	int depth;
	bool has_operator;
};

static bool sum(struct reader *r, int64_t *out);

static bool
group(struct reader *r, int64_t *out)
{
	if (++r->depth > DEEPEST || !sum(r, out) || !om_scan_word(&r->at, ")"))
		return false;
	r->depth--;
	return true;
}

static bool
factor(struct reader *r, int64_t *out)
{
	if (om_scan_word(&r->at, "("))
		return group(r, out);
	if (isdigit((unsigned char)*r->at))
		return om_scan_integer(&r->at, out);
	const size_t n = strcspn(r->at, " +-*/()");
	const char *name = r->at;
	r->at += n;
	return n && r->number(r->arg, name, n, out);
}

static bool
divide(int64_t a, int64_t b, int64_t *out)
{
	if (b == 0 || (a == INT64_MIN && b == -1))
		return false;
	*out = a / b - (a % b != 0 && (a < 0) != (b < 0));
	return true;
}

static bool
product(struct reader *r, int64_t *out)
{
	int64_t right;

	if (!factor(r, out))
		return false;
	for (;;) {
		const bool is_division = om_scan_word(&r->at, "//");
		if (!is_division && !om_scan_word(&r->at, "*"))
			return true;
		r->has_operator = true;
		if (!factor(r, &right) || (is_division ? !divide(*out, right, out) : __builtin_mul_overflow(*out, right, out)))
			return false;
	}
}

static bool
sum(struct reader *r, int64_t *out)
{
	int64_t right;

	if (!product(r, out))
		return false;
	for (;;) {
		const bool is_minus = om_scan_word(&r->at, "-");
		if (!is_minus && !om_scan_word(&r->at, "+"))
			return true;
		r->has_operator = true;
		if (!product(r, &right)
		    || (is_minus ? __builtin_sub_overflow(*out, right, out) : __builtin_add_overflow(*out, right, out)))
			return false;
	}
}

bool
om_dim_expression(const char *text, om_symbol_number *number, const void *arg, int64_t *out)
{
	struct reader r = {.at = text, .number = number, .arg = arg};
	int64_t n;

	if (!sum(&r, &n))
		return false;
	om_scan_space(&r.at);
	if (*r.at || !r.has_operator || n < 0)
		return false;
	*out = n;
	return true;
}

bool
om_dim_follows(const char *text, om_symbol_number *before, om_symbol_number *after, const void *arg, int64_t was, int64_t *out)
{
	int64_t n;

	return om_dim_expression(text, before, arg, &n) && n == was && om_dim_expression(text, after, arg, out);
}
