/* SPDX-License-Identifier: Apache-2.0 */
/* Reads offline plans of TFLite Micro: the C array of words that tflm.c writes, or that of another program. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "report/tflm_read.h"

enum { HEAD = 3 };             /* words before the offsets: version, subgraph, number of tensors */

struct parser {
	om_session *s;
	om_arena *mem;
	const char *path, *at, *end;
	size_t line;
	int32_t *word;
	const char **comment;    /* by word */
	size_t nword, capword, ncomment, capcomment;
};

static om_status
fail(const struct parser *p, const char *what)
{
	return om_fail(p->s, OM_MALFORMED, "%s:%zu: %s", p->path, p->line, what);
}

static bool
starts(const struct parser *p, const char *text)
{
	const size_t n = strlen(text);

	return (size_t)(p->end - p->at) >= n && memcmp(p->at, text, n) == 0;
}

/* Go on, over a comment if there is one here; the text of one that begins with two slashes is that of the word before it. */
static om_status
skip_comment(struct parser *p, bool *is_comment)
{
	const char *from = p->at + 2;

	*is_comment = starts(p, "//") || starts(p, "/*");
	if (!*is_comment)
		return OM_OK;
	if (starts(p, "//")) {
		while (p->at < p->end && *p->at != '\n')
			p->at++;
		while (from < p->at && (*from == ' ' || *from == '\t'))
			from++;
		if (p->nword)
			p->comment[p->nword - 1] = om_strndup(p->mem, from, (size_t)(p->at - from));
		return OM_OK;
	}
	for (p->at += 2; !starts(p, "*/"); p->at++) {
		if (p->at >= p->end)
			return fail(p, "a comment has no end");
		p->line += *p->at == '\n';
	}
	p->at += 2;
	return OM_OK;
}

static om_status
skip_blank(struct parser *p)
{
	for (bool is_comment = true; is_comment;) {
		for (; p->at < p->end && strchr(" \t\r\n", *p->at) && *p->at; p->at++)
			p->line += *p->at == '\n';
		OM_TRY(skip_comment(p, &is_comment));
	}
	return OM_OK;
}

static om_status
read_word(struct parser *p)
{
	const bool is_negative = p->at < p->end && *p->at == '-';
	int64_t n = 0;

	p->at += is_negative;
	if (p->at >= p->end || *p->at < '0' || *p->at > '9')
		return fail(p, "a number is missing");
	for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
		n = 10 * n + (*p->at - '0');
		if (n > INT32_MAX)
			return fail(p, "a number has more than 31 bits");
	}
	OM_PUSH(p->mem, p->word, p->nword, p->capword, (int32_t)(is_negative ? -n : n));
	OM_PUSH(p->mem, p->comment, p->ncomment, p->capcomment, NULL);
	return OM_OK;
}

/* The numbers between braces. */
static om_status
read_words(struct parser *p)
{
	while (p->at < p->end && *p->at != '{') {
		bool is_comment;
		OM_TRY(skip_comment(p, &is_comment));
		if (!is_comment)
			p->line += *p->at++ == '\n';
	}
	if (p->at >= p->end)
		return fail(p, "there is no array, which begins with {");
	p->at++;
	OM_TRY(skip_blank(p));
	while (p->at < p->end && *p->at != '}') {
		OM_TRY(read_word(p));
		OM_TRY(skip_blank(p));
		if (p->at < p->end && *p->at == ',')
			p->at++;
		else if (p->at < p->end && *p->at != '}')
			return fail(p, "there is no comma after a number");
		OM_TRY(skip_blank(p));
	}
	return p->at < p->end ? OM_OK : fail(p, "the array has no end");
}

om_status
om_tflm_parse(om_session *s, const char *path, const char *text, size_t size, om_arena *mem, om_tflm_plan *out)
{
	struct parser p = {.s = s, .mem = mem, .path = path, .at = text, .end = text + size, .line = 1};

	OM_TRY(read_words(&p));
	if (p.nword < HEAD || p.word[0] != 1 || p.word[1] != 0 || p.word[2] < 0 || p.nword - HEAD != (size_t)p.word[2])
		return om_fail(s, OM_MALFORMED, "%s: %zu words are no offline plan, which has the version 1, the subgraph 0, the "
			"number of tensors, and an offset for each", path, p.nword);
	*out = (om_tflm_plan){.n = (uint32_t)p.word[2], .offset = p.word + HEAD, .name = p.comment + HEAD};
	for (uint32_t k = 0; k < out->n; k++) {
		if (out->offset[k] < -1)
			return om_fail(s, OM_MALFORMED, "%s: the offset of tensor %" PRIu32 " is %" PRId32, path, k, out->offset[k]);
		out->nfree += out->offset[k] == -1;
	}
	return OM_OK;
}

/* ---- For a graph. ---- */

static const om_value **
list_tensors(const om_foreign *f, size_t *n)
{
	const om_block *graph = f->p->first;
	const om_value **list = NULL;
	size_t cap = 0;

	*n = 0;
	for (uint32_t k = 0; k < graph->nparam; k++)
		OM_PUSH(f->mem, list, *n, cap, graph->param[k]);
	for (const om_op *op = graph->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && !op->out[k]->is_const)
				OM_PUSH(f->mem, list, *n, cap, op->out[k]);
	return list;
}

om_status
om_tflm_places(om_session *s, const om_tflm_plan *t, om_foreign *f)
{
	bool is_named = true;
	size_t n;

	for (uint32_t k = 0; k < t->n; k++)
		is_named = is_named && t->name[k];
	const om_value **tensor = list_tensors(f, &n);
	if (!is_named && n != t->n)
		return om_fail(s, OM_BADPLAN, "%s is for %" PRIu32 " tensors without names, the graph has %zu", f->source, t->n, n);
	for (uint32_t k = 0; k < t->n; k++)
		if (t->offset[k] >= 0)
			OM_TRY(om_foreign_add(s, f, is_named ? t->name[k] : tensor[k]->name, (uint64_t)t->offset[k], OM_SIZE_UNSTATED));
	return OM_OK;
}
