/* SPDX-License-Identifier: Apache-2.0 */
/* The words of small languages that are read by recursive descent: expressions of dims, formulas of plans. */
#ifndef OM_SCAN_H
#define OM_SCAN_H

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void
om_scan_space(const char **at)
{
	while (**at == ' ')
		++*at;
}

/* Step over `word`, if the text goes on with it, perhaps after spaces. */
static inline bool
om_scan_word(const char **at, const char *word)
{
	const size_t n = strlen(word);

	om_scan_space(at);
	if (strncmp(*at, word, n) != 0)
		return false;
	*at += n;
	return true;
}

/* The digits that are here; false: there are none, or the number overflows. */
static inline bool
om_scan_integer(const char **at, int64_t *out)
{
	*out = 0;
	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); ++*at)
		if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, **at - '0', out))
			return false;
	return true;
}

#endif
