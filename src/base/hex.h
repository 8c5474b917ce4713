/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in hexadecimal, in lower case. */
#ifndef OM_HEX_H
#define OM_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Write `n` bytes as 2 * n digits and a NUL. */
static inline void
om_hex_write(const void *bytes, size_t n, char *text)
{
	static const char digit[] = "0123456789abcdef";
	const unsigned char *from = bytes;

	for (size_t k = 0; k < n; k++) {
		text[2 * k] = digit[from[k] >> 4];
		text[2 * k + 1] = digit[from[k] & 15];
	}
	text[2 * n] = '\0';
}

/* Read `n` bytes; false if `text` is anything but 2 * n digits. */
static inline bool
om_hex_read(const char *text, void *bytes, size_t n)
{
	static const char digit[] = "0123456789abcdef";
	unsigned char *to = bytes;

	for (size_t k = 0; k < 2 * n; k++) {
		const char *at = text[k] ? strchr(digit, text[k]) : NULL;
		if (!at)
			return false;
		to[k / 2] = (unsigned char)(to[k / 2] << 4 | (at - digit));
	}
	return text[2 * n] == '\0';
}

#endif
