/* SPDX-License-Identifier: Apache-2.0 */
/* Output width: tables are cut to the terminal, texts are wrapped. Output to a file or another
 * program is never cut. */
#include <config.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

enum { LEAST = 40 };

unsigned
om_cli_width(FILE *to)
{
	const char *text = getenv("COLUMNS");
	struct winsize size;

	if (!isatty(fileno(to)))
		return 0;
	const long requested = text ? strtol(text, NULL, 10) : 0;
	if (requested >= LEAST && requested < 10000)
		return (unsigned)requested;
	return ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col >= LEAST ? size.ws_col : 0;
}

/* Bytes of the first `n` UTF-8 characters. */
static size_t
bytes_of(const char *text, unsigned n)
{
	size_t k = 0;

	for (; text[k] && n; n--)
		for (k++; ((unsigned char)text[k] & 0xc0) == 0x80; k++)
			;
	return k;
}

void
om_cli_line(om_cli *c, unsigned width, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	(void)c;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	const size_t fits = width ? bytes_of(line, width) : strlen(line);
	if (!line[fits])
		puts(line);
	else
		printf("%.*s…\n", (int)bytes_of(line, width - 1), line);
}
