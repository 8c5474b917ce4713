/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others; see clean_text.h. */
#include <config.h>

#include "base/clean_text.h"

size_t
om_text_utf8(const unsigned char *s)
{
	const size_t n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3
		: *s >= 0xf0 && *s < 0xf5 ? 4 : 0;

	for (size_t k = 1; k < n; k++)
		if ((s[k] & 0xc0) != 0x80)
			return 0;
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0) || (*s == 0xf0 && s[1] < 0x90)
	    || (*s == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}

/* The bytes of the printable character that starts at `s`; 0 if there is none. */
static size_t
character(const unsigned char *s)
{
	return *s < 0x20 || *s == 0x7f || (*s == 0xc2 && s[1] < 0xa0) ? 0 : om_text_utf8(s);
}

void
om_text_clean(char *s)
{
	while (*s) {
		const size_t n = character((unsigned char *)s);
		if (n == 0)
			*s = '?';
		s += n ? n : 1;
	}
}
