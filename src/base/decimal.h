/* SPDX-License-Identifier: Apache-2.0 */
/* Integers as text, where printf() would take most of the time. */
#ifndef OM_DECIMAL_H
#define OM_DECIMAL_H

#include <stdint.h>

enum { OM_DECIMAL = 24 };   /* bytes of the longest number with its sign, and more */

/* `n` in decimal, at the end of `s`. */
static inline const char *
om_decimal(char s[OM_DECIMAL], int64_t n)
{
	uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;
	char *at = s + OM_DECIMAL - 1;

	*at = '\0';
	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (n < 0)
		*--at = '-';
	return at;
}

#endif
