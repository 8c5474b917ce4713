/* SPDX-License-Identifier: Apache-2.0 */
/* What the mock of the driver and that of NVRTC share: words of MOCK_CUDA, and calls that are counted and fail on demand. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "mock.h"

struct count {
	char name[MOCK_TEXT];
	long n;
};

static struct count counts[MOCK_FUNCTIONS];

const char *
mock_word(const char *name)
{
	static char value[4096];
	const size_t n = strlen(name);

	for (const char *at = getenv("MOCK_CUDA"); at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, name, n) == 0 && at[n] == '=') {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(at + n + 1, ","), at + n + 1);
			return value;
		}
	return NULL;
}

long
mock_number(const char *name, long otherwise)
{
	const char *value = mock_word(name);

	return value ? strtol(value, NULL, 10) : otherwise;
}

static struct count *
count_of(const char *name)
{
	struct count *c = counts;

	while (c < counts + MOCK_FUNCTIONS - 1 && *c->name && strcmp(c->name, name) != 0)
		c++;
	snprintf(c->name, sizeof c->name, "%s", name);
	return c;
}

static void
trace(const char *name)
{
	const char *file = mock_word("trace");
	FILE *to = file ? fopen(file, "a") : NULL;

	if (!to)
		return;
	fprintf(to, "%s\n", name);
	fclose(to);
}

int
mock_call(const char *name)
{
	const char *fail;
	char function[MOCK_TEXT];
	long n, code;

	struct count *c = count_of(name);
	c->n++;
	trace(name);
	fail = mock_word("fail");
	if (fail && sscanf(fail, "%127[^:]:%ld:%ld", function, &n, &code) == 3 && strcmp(function, name) == 0 && n == c->n)
		return (int)code;
	return 0;
}

void
mock_report_calls(FILE *to)
{
	for (const struct count *c = counts; c < counts + MOCK_FUNCTIONS && *c->name; c++)
		fprintf(to, "%s %ld\n", c->name, c->n);
}
