/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a block of weights: a digest of all that it is made of, except elements in files; see weight_cache.h. */
#include <config.h>

#include "base/fast_hash.h"
#include "base/mapping.h"
#include "base/shape.h"
#include "exec/weights.h"
#include "onnxmem/version.h"

enum {
	ALIGN = 4096,            /* of a block in a file */
	PIECE = 4 << 20          /* bytes that are read before their pages are given back */
};

struct key {
	const struct weights *w;
	om_sha256 *hash, *files;
	bool is_settled;
	bool is_complete;        /* nothing was met that the digest does not cover */
};

/* ---- Digests. ---- */

static void
bytes(struct key *k, const void *p, uint64_t n)
{
	om_sha256_add(k->hash, &n, sizeof n);
	om_sha256_add(k->hash, p, n);
}

static void
number(struct key *k, uint64_t n)
{
	om_sha256_add(k->hash, &n, sizeof n);
}

static void
text(struct key *k, const char *s)
{
	bytes(k, s ? s : "", s ? strlen(s) : 0);
}

static void
form(struct key *k, om_dtype type, const om_shape *s)
{
	number(k, type);
	number(k, (uint64_t)s->rank);
	for (int d = 0; d < s->rank; d++)
		number(k, (uint64_t)s->dim[d]);
}

static uint64_t
size_of(const om_tensor *t)
{
	uint64_t n;

	if (t->splat)
		return om_dtype_bytes(t->type, 1, &n) ? n : 0;
	return om_tensor_bytes(t->type, &t->shape, &n) ? n : 0;
}

static void
head(struct key *k, const om_tensor *t)
{
	form(k, t->type, &t->shape);
	number(k, t->splat);
	k->is_complete &= t->type != OM_STRING && t->data;
}

static void
tensor(struct key *k, const om_tensor *t)
{
	head(k, t);
	if (k->is_complete)
		bytes(k, t->data, size_of(t));
}

static void
attribute(struct key *k, const om_attr *a)
{
	text(k, a->name);
	number(k, a->kind);
	number(k, a->n);
	switch (a->kind) {
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS:
		bytes(k, a->f, a->n * sizeof *a->f);
		break;
	case OM_ATTR_INT: case OM_ATTR_INTS:
		bytes(k, a->i, a->n * sizeof *a->i);
		break;
	case OM_ATTR_STRING: case OM_ATTR_STRINGS:
		for (size_t i = 0; i < a->n; i++)
			bytes(k, a->s[i].data, a->s[i].size);
		break;
	case OM_ATTR_TENSOR: case OM_ATTR_TENSORS: case OM_ATTR_SPARSE: case OM_ATTR_SPARSES:
		for (size_t i = 0; i < a->n; i++)
			tensor(k, &a->t[i]);
		break;
	default:
		k->is_complete = false;
	}
}

static void
operation(struct key *k, const om_op *op)
{
	text(k, op->domain);
	text(k, op->type);
	text(k, op->overload);
	number(k, (uint64_t)op->version);
	number(k, op->nattr);
	for (uint32_t i = 0; i < op->nattr; i++)
		attribute(k, &op->attr[i]);
	number(k, op->nin);
	for (uint32_t i = 0; i < op->nin; i++)
		number(k, op->in[i] ? op->in[i]->id : UINT64_MAX);
	number(k, op->nout);
	for (uint32_t i = 0; i < op->nout; i++) {
		const om_tensor *t = op->out[i] ? &k->w->e->slot[op->out[i]->id] : NULL;
		number(k, op->out[i] ? op->out[i]->id : UINT64_MAX);
		if (t)
			form(k, t->type, &t->shape);
	}
}

/* ---- Sources. ---- */

static void
file(struct key *k, const struct om_file_state *f, uint64_t offset)
{
	const int64_t time[] = {f->modified[0], f->modified[1], f->changed[0], f->changed[1]};
	const uint64_t which[] = {f->device, f->inode, f->size};

	om_sha256_add(k->files, which, sizeof which);
	om_sha256_add(k->files, time, sizeof time);
	k->is_settled &= f->is_settled;
	number(k, offset);
}

static void
source(struct key *k, const om_value *v)
{
	uint64_t offset;
	const struct om_file_state *f = om_mappings_find(k->w->e->prog->files, v->data->data, &offset);

	number(k, v->id);
	number(k, f != NULL);
	if (!f) {
		tensor(k, v->data);
		return;
	}
	head(k, v->data);
	file(k, f, offset);
}

/* The elements in files, in the order of the values. */
static uint64_t
hash_elements(void *arg)
{
	const struct weights *w = arg;
	const struct om_mappings *files = w->e->prog->files;
	uint64_t h = 0, offset;

	for (uint32_t k = 0; k < w->nsource; k++) {
		const om_tensor *t = w->source[k]->data;
		if (!om_mappings_find(files, t->data, &offset))
			continue;
		for (uint64_t at = 0, n = size_of(t); at < n; at += PIECE) {
			const uint64_t size = n - at < PIECE ? n - at : PIECE;
			h = om_fast_hash(h, (const char *)t->data + at, size);
			om_mappings_drop(files, (const char *)t->data + at, size);
		}
	}
	return h;
}

static void
list_sources(struct weights *w)
{
	const om_prog *p = w->e->prog;

	w->source = OM_NEWN(w->e->mem, const om_value *, p->nvalue);
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (!w->by[k].is_computed && p->values[k]->data && p->values[k]->data->data
		    && (w->by[k].at != OM_OUTSIDE || w->by[k].nreader))
			w->source[w->nsource++] = p->values[k];
}

/* ---- The key. ---- */

static void
layout(struct key *k)
{
	const struct weights *w = k->w;

	number(k, w->bytes);
	for (uint32_t i = 0; i < w->e->prog->nvalue; i++) {
		const struct weight *by = &w->by[i];
		if (by->at != OM_OUTSIDE) {
			number(k, i);
			number(k, by->at);
		}
		k->is_complete &= !(by->is_kept && by->is_computed && by->holder->id == i && by->at == OM_OUTSIDE);
	}
}

/* The order in which ops are computed depends on a schedule, that of their ids does not. */
static void
operations(struct key *k)
{
	const struct weights *w = k->w;
	const om_op **by_id = OM_NEWN(w->e->call, const om_op *, w->e->prog->nop);

	for (uint32_t i = 0; i < w->nleft; i++)
		by_id[w->left[i]->id] = w->left[i];
	number(k, w->nleft);
	for (uint32_t i = 0; i < w->e->prog->nop; i++)
		if (by_id[i])
			operation(k, by_id[i]);
}

bool
om_weight_key(struct weights *w, struct om_weight_cache *out)
{
	om_exec *e = w->e;
	struct key k = {.w = w, .hash = om_sha256_new(e->call), .files = om_sha256_new(e->call), .is_settled = true,
		.is_complete = !e->registry && e->align <= ALIGN && w->bytes};

	list_sources(w);
	text(&k, "onnxmem weights 1");
	text(&k, om_version());
	text(&k, om_isa(e->session));
	number(&k, e->align);
	number(&k, e->options.precise);
	layout(&k);
	operations(&k);
	for (uint32_t i = 0; i < w->nsource; i++)
		source(&k, w->source[i]);
	*out = (struct om_weight_cache){.session = e->session, .folder = e->options.cache, .is_settled = k.is_settled,
		.bytes = w->bytes, .hash = hash_elements, .arg = w};
	om_sha256_end(k.hash, out->key);
	om_sha256_end(k.files, out->files);
	om_arena_clear(e->call);
	return k.is_complete;
}
