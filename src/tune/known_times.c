/* SPDX-License-Identifier: Apache-2.0 */
/* Times of layers in a file, NAME: lines of text, in no particular order.
 *
 *	onnxmem tuning 1
 *	avx2 1 product_n784_c64_k256 gemm@50 0.25 chosen
 *
 * The file has times of all instruction sets and numbers of threads that were measured.  It is written as a whole, under
 * another name, and renamed; what another process wrote in the meantime is lost, which costs time and no correctness. */
#include <config.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output_file.h"
#include "base/split.h"
#include "lower/choices.h"
#include "tune/tune.h"

enum { MOST_BYTES = 16 << 20 };

static const char HEAD[] = "onnxmem tuning 1\n";

static const char *
path_of(const char *folder, om_arena *mem)
{
	return om_printf(mem, "%s/layers.tuning", folder);
}

/* The whole file; NULL: there is none, or it is too large. */
static const char *
read_text(const char *path, om_arena *mem, bool *is_absent)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;

	*is_absent = !f;
	if (!f)
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0) {
		const long size = ftell(f);
		if (size >= 0 && size <= MOST_BYTES && fseek(f, 0, SEEK_SET) == 0) {
			text = om_alloc(mem, (size_t)size + 1);
			const size_t n = fread(text, 1, (size_t)size, f);
			text[n] = '\0';
			text = strlen(text) == n ? text : NULL;
		}
	}
	fclose(f);
	return text;
}

static bool
read_line(const char *line, om_arena *mem, om_known_time *t)
{
	size_t n;
	const char **word = om_split(mem, line, " ", &n);
	om_choice c;
	char *end;

	if (n != 6)
		return false;
	*t = (om_known_time){.isa = word[0], .key = word[2], .name = word[3], .is_chosen = strcmp(word[5], "chosen") == 0};
	t->threads = strtoull(word[1], &end, 10);
	if (*end || t->threads < 1 || strpbrk(word[2], ",:;=") || !om_choice_read(word[3], strlen(word[3]), &c))
		return false;
	t->ms = strtod(word[4], &end);
	return !*end && t->ms >= 0 && isfinite(t->ms) && (t->is_chosen || strcmp(word[5], "-") == 0);
}

static bool
read_lines(const char *text, om_arena *mem, om_known_times *t)
{
	size_t n;

	if (strncmp(text, HEAD, strlen(HEAD)) != 0)
		return false;
	const char **line = om_split(mem, text + strlen(HEAD), "\n", &n);
	for (size_t k = 0; k < n; k++) {
		om_known_time one;
		if (!read_line(line[k], mem, &one))
			return false;
		OM_PUSH(mem, t->time, t->n, t->cap, one);
	}
	return true;
}

void
om_known_times_read(om_session *s, const char *folder, om_arena *mem, om_known_times *t)
{
	const char *path = path_of(folder, mem);
	bool is_absent;
	const char *text = read_text(path, mem, &is_absent);

	*t = (om_known_times){0};
	if (is_absent || (text && read_lines(text, mem, t)))
		return;
	*t = (om_known_times){0};
	om_info(s, "%s is damaged: its times are not used", path);
}

om_known_time *
om_known_times_find(const om_known_times *t, const char *isa, uint64_t threads, const char *key, const char *name)
{
	for (size_t k = 0; k < t->n; k++) {
		om_known_time *one = &t->time[k];
		if (one->threads == threads && strcmp(one->key, key) == 0 && strcmp(one->name, name) == 0 && strcmp(one->isa, isa) == 0)
			return one;
	}
	return NULL;
}

static om_status
write_lines(om_session *s, FILE *to, void *arg)
{
	const om_known_times *t = arg;

	(void)s;
	fputs(HEAD, to);
	for (size_t k = 0; k < t->n; k++)
		fprintf(to, "%s %" PRIu64 " %s %s %.6g %s\n", t->time[k].isa, t->time[k].threads, t->time[k].key, t->time[k].name,
			t->time[k].ms, t->time[k].is_chosen ? "chosen" : "-");
	return OM_OK;
}

void
om_known_times_write(om_session *s, const char *folder, const om_known_times *t)
{
	om_arena *mem = om_arena_new();
	const char *path = path_of(folder, mem);
	om_known_times copy = *t;

	mkdir(folder, 0777);
	if (om_output_write(s, path, write_lines, &copy) != OM_OK)
		om_info(s, "the times of layers are not kept: %s", om_message(s));
	om_arena_free(mem);
}
