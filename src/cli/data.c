/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of inputs and outputs: loading, generation, saving. */
#include <config.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "base/half.h"
#include "base/saturate.h"
#include "base/shape.h"
#include "base/system.h"
#include "cli/archive.h"
#include "cli/caches.h"
#include "cli/data.h"
#include "cli/npy.h"
#include "ir/type.h"

static const om_opt data_opts[] = {
	{"data", "PATH", "a folder with input_0.pb, input_1.pb, ... (or .npy, or inputs.npz), or a\n"
		"                            .npz file with tensors by name"},
	{"input", "NAME:FILE", "data of an input, .pb or .npy; without NAME, a .npz file with tensors by name;\n"
		"                            repeatable"},
	{"random", "SEED", "fill the remaining inputs with random numbers"},
	{"fill", "WHAT", "deterministic: fill the remaining inputs by a fixed formula;\n"
		"                            NAME:value=V: fill an input with one number; NAME:mod=M: with\n"
		"                            integers below M; repeatable"},
	{0}
};

const om_opt_group om_data_options = {"data", data_opts};

static bool
is_there(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

om_status
om_data_exists(om_cli *c, const char *path)
{
	return is_there(path) ? OM_OK : om_fail(c->session, OM_IO, "%s: %s", path, strerror(errno));
}

/* `v` is the value whose elements are loaded. */
static om_status
load(om_cli *c, const char *path, const om_value *v, const char *what, om_tensor *out)
{
	if (om_cli_ends_in(path, ".pb"))
		return om_value_load_pb(c->session, path, c->mem, &v->type, out);
	if (v->type.kind != OM_TENSOR)
		return om_fail(c->session, OM_UNSUPPORTED, "%s %s is a %s, which is read from .pb and .npz files only", what,
			v->name, om_kind_text(v->type.kind));
	if (om_cli_ends_in(path, ".npy"))
		return om_npy_load(c->session, path, c->mem, out);
	return om_fail(c->session, OM_USAGE, "%s: tensors are read from .pb, .npy and .npz files", path);
}

/* ---- Values by name or by index: the inputs or outputs of the graph. ---- */

struct list {
	om_value *const *value;
	uint32_t n;
	const char *what;         /* "input" */
	om_tensor *t;
	bool may_lack;            /* a folder may lack all of them */
};

/* By name; if the archive has none of these names, as one saved without names, by its order. */
static om_status
by_name(om_cli *c, const char *path, const struct list *l, unsigned *found)
{
	om_archive *a;

	OM_TRY(om_archive_load(c, path, &a));
	for (uint32_t k = 0; k < l->n; k++) {
		bool has_value;
		OM_TRY(om_archive_value(a, l->value[k]->name, &l->value[k]->type, &l->t[k], &has_value));
		*found += has_value;
	}
	const char *odd = om_archive_unread(a);
	if (odd && *found)
		om_warn(c->session, "%s: the model has no %s called %s", path, l->what, odd);
	if (*found)
		return OM_OK;
	for (size_t k = 0; om_archive_size(a) <= l->n && k < om_archive_size(a); k++) {
		if (l->value[k]->type.kind != OM_TENSOR)
			return om_fail(c->session, OM_MALFORMED, "%s: %s %s is a %s; its entries need its name", path, l->what,
				l->value[k]->name, om_kind_text(l->value[k]->type.kind));
		l->t[k] = om_archive_entry(a, k)->t;
		++*found;
	}
	return OM_OK;
}

static om_status
by_place(om_cli *c, const char *folder, const struct list *l, unsigned *found)
{
	static const char *const endings[] = {"pb", "npy"};
	const char *npz = om_printf(c->mem, "%s/%ss.npz", folder, l->what);

	for (uint32_t k = 0; k < l->n; k++)
		for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++) {
			const char *file = om_printf(c->mem, "%s/%s_%u.%s", folder, l->what, k, endings[e]);
			if (!is_there(file))
				continue;
			OM_TRY(load(c, file, l->value[k], l->what, &l->t[k]));
			++*found;
			break;
		}
	return *found == 0 && is_there(npz) ? by_name(c, npz, l, found) : OM_OK;
}

static om_status
from_path(om_cli *c, const char *path, const struct list *l)
{
	const bool archive = om_cli_ends_in(path, ".npz");
	unsigned found = 0;

	OM_TRY(om_data_exists(c, path));
	OM_TRY(archive ? by_name(c, path, l, &found) : by_place(c, path, l, &found));
	if (found == 0 && (archive || !l->may_lack))
		return om_fail(c->session, OM_IO, "%s: has no %s of this model", path, l->what);
	return OM_OK;
}

/* A folder that has outputs only is valid for a model that requires no elements. */
static struct list
inputs(const om_cli *c, om_tensor *t)
{
	const om_block *graph = c->prog->first;
	struct list l = {graph->param, graph->nparam, "input", t, true};

	for (uint32_t k = 0; k < graph->nparam; k++)
		l.may_lack = l.may_lack && graph->param[k]->data;
	return l;
}

/* The input that `text` names before a colon; names and files may hold colons. */
static om_status
split(om_cli *c, const char *option, const char *text, uint32_t *input, const char **rest)
{
	const om_block *graph = c->prog->first;

	for (const char *at = strchr(text, ':'); at; at = strchr(at + 1, ':'))
		for (uint32_t k = 0; k < graph->nparam; k++)
			if (strlen(graph->param[k]->name) == (size_t)(at - text)
			    && memcmp(graph->param[k]->name, text, (size_t)(at - text)) == 0) {
				*input = k;
				*rest = at + 1;
				return OM_OK;
			}
	if (!strchr(text, ':'))
		return om_fail(c->session, OM_USAGE, "--%s %s: the name of an input is missing", option,
			text);
	return om_fail(c->session, OM_USAGE, "--%s %s: the model has no input called %.*s", option, text,
		(int)strcspn(text, ":"), text);
}

om_status
om_data_read(om_cli *c, om_tensor *in)
{
	const struct list l = inputs(c, in);
	const char *text, *file;

	for (size_t at = 0; (text = om_cli_next(c, "data", &at));)
		OM_TRY(from_path(c, text, &l));
	for (size_t at = 0; (text = om_cli_next(c, "input", &at));) {
		uint32_t k;
		if (is_there(text) && om_cli_ends_in(text, ".npz")) {
			OM_TRY(from_path(c, text, &l));
			continue;
		}
		OM_TRY(split(c, "input", text, &k, &file));
		OM_TRY(load(c, file, l.value[k], l.what, &in[k]));
	}
	return OM_OK;
}

om_status
om_data_expected(om_cli *c, const char *path, om_tensor *out)
{
	const om_block *graph = c->prog->first;
	const struct list l = {graph->result, graph->nresult, "output", out, false};

	return from_path(c, path, &l);
}

/* ---- Formulas. ---- */

struct fill {
	bool random, is_set;      /* is_set: `value` for every element */
	uint64_t state;
	uint64_t k;               /* of the input */
	double value, mod;
};

/* In [0, 1).  The formula is that of the reference outputs used for comparison. */
static double
next(struct fill *f, uint64_t i)
{
	if (!f->random) {
		const double u = (double)(i + 1) * 0.6180339887498949 + (double)f->k * 0.37;
		return u - floor(u);
	}
	return om_rng_unit(&f->state);
}

static double
element(struct fill *f, bool is_float, uint64_t i)
{
	const double u = next(f, i);

	if (f->is_set)
		return f->value;
	return is_float ? 2 * u - 1 : floor(u * f->mod);
}

bool
om_data_put(om_tensor *t, uint64_t i, double x)
{
	switch (t->type) {
	case OM_FLOAT32: ((float *)t->data)[i] = (float)x; return true;
	case OM_FLOAT64: ((double *)t->data)[i] = x; return true;
	case OM_FLOAT16: ((uint16_t *)t->data)[i] = om_float_to_half((float)x); return true;
	case OM_BFLOAT16: ((uint16_t *)t->data)[i] = om_float_to_bfloat((float)x); return true;
	case OM_INT64: ((int64_t *)t->data)[i] = OM_SATURATE(int64_t, x); return true;
	case OM_INT32: ((int32_t *)t->data)[i] = OM_SATURATE(int32_t, x); return true;
	case OM_INT16: ((int16_t *)t->data)[i] = OM_SATURATE(int16_t, x); return true;
	case OM_INT8: ((int8_t *)t->data)[i] = OM_SATURATE(int8_t, x); return true;
	case OM_UINT64: ((uint64_t *)t->data)[i] = OM_SATURATE(uint64_t, x); return true;
	case OM_UINT32: ((uint32_t *)t->data)[i] = OM_SATURATE(uint32_t, x); return true;
	case OM_UINT16: ((uint16_t *)t->data)[i] = OM_SATURATE(uint16_t, x); return true;
	case OM_UINT8: ((uint8_t *)t->data)[i] = OM_SATURATE(uint8_t, x); return true;
	case OM_BOOL: ((uint8_t *)t->data)[i] = x != 0; return true;
	default: return false;
	}
}

static om_status
fill_input(om_cli *c, const om_value *v, const om_shape *of, struct fill *f, om_tensor *t)
{
	char shape[256];
	uint64_t bytes;

	if (v->type.kind != OM_TENSOR)
		return om_fail(c->session, OM_USAGE, "input %s is a %s, which cannot be filled; use --data or --input", v->name,
			om_kind_text(v->type.kind));
	if (!om_tensor_bytes(v->type.elem, of, &bytes))
		return om_fail(c->session, OM_USAGE, "input %s: %s %s cannot be filled: its size is unknown",
			v->name, om_dtype_text(v->type.elem), om_shape_text(of, shape, sizeof shape));
	*t = (om_tensor){.type = v->type.elem, .shape = *of};
	if (!(t->data = om_aligned_new(64, bytes))) {
		*t = (om_tensor){.type = OM_UNDEFINED};
		return om_fail(c->session, OM_MEMORY, "input %s: cannot allocate its %llu bytes", v->name,
			(unsigned long long)bytes);
	}
	const uint64_t n = (uint64_t)om_shape_count(&t->shape);
	for (uint64_t i = 0; i < n; i++)
		if (!om_data_put(t, i, element(f, om_dtype_is_float(t->type), i)))
			return om_fail(c->session, OM_UNSUPPORTED, "input %s: there is no formula for %s", v->name,
				om_dtype_text(t->type));
	return OM_OK;
}

static bool
is_deterministic(const char *fill)
{
	return strcmp(fill, "deterministic") == 0;
}

/* Is --fill deterministic given? */
static bool
fills_rest(om_cli *c)
{
	const char *text;

	for (size_t at = 0; (text = om_cli_next(c, "fill", &at));)
		if (is_deterministic(text))
			return true;
	return false;
}

static om_status
wrong_fill(om_cli *c, const char *text)
{
	return om_fail(c->session, OM_USAGE, "--fill requires deterministic, NAME:value=V or NAME:mod=M, not %s", text);
}

/* Parse the value of --fill for input `k`. */
static om_status
read_fill(om_cli *c, uint32_t k, struct fill *f, bool *requested)
{
	const char *text, *rest;

	for (size_t at = 0; (text = om_cli_next(c, "fill", &at));) {
		uint32_t input;
		char *end;
		if (is_deterministic(text))
			continue;
		if (!strchr(text, ':'))
			return wrong_fill(c, text);
		OM_TRY(split(c, "fill", text, &input, &rest));
		const bool value = strncmp(rest, "value=", 6) == 0, mod = strncmp(rest, "mod=", 4) == 0;
		const char *number = rest + (value ? 6 : 4);
		const double x = value || mod ? strtod(number, &end) : 0;
		if ((!value && !mod) || end == number || *end || !isfinite(x) || (mod && x < 1) || fabs(x) > 0x1p53)
			return wrong_fill(c, text);
		if (input != k)
			continue;
		*requested = true;
		f->is_set = value;
		*(value ? &f->value : &f->mod) = x;
	}
	return OM_OK;
}

om_status
om_data_fills(om_cli *c, uint32_t param, bool *fills)
{
	struct fill f = {0};

	*fills = false;
	return read_fill(c, param, &f, fills);
}

static om_status
missing(om_cli *c, const om_tensor *in)
{
	const om_block *graph = c->prog->first;
	const char *names = "";

	for (uint32_t k = 0; k < graph->nparam; k++)
		if (in[k].type == OM_UNDEFINED && !graph->param[k]->data)
			names = om_printf(c->mem, "%s%s%s", names, *names ? ", " : "", graph->param[k]->name);
	if (!*names)
		return OM_OK;
	return om_fail(c->session, OM_USAGE, "these inputs have no data: %s; use --data or --input, or fill "
		"them by --fill deterministic or --random", names);
}

om_status
om_data_fill(om_cli *c, om_tensor *in, void **owned)
{
	const om_block *graph = c->prog->first;
	const bool all = fills_rest(c) || om_cli_has(c, "random");
	uint64_t seed = 0;

	if (fills_rest(c) && om_cli_has(c, "random"))
		return om_fail(c->session, OM_USAGE, "--random and --fill deterministic both fill the remaining inputs: use one of them");
	OM_TRY(om_cli_number(c, "random", 0, UINT64_MAX, &seed));
	for (uint32_t k = 0; k < graph->nparam; k++) {
		struct fill f = {.random = om_cli_has(c, "random"), .k = k, .mod = 2,
			.state = seed * 0x9e3779b97f4a7c15 + k};
		bool requested = false;
		OM_TRY(read_fill(c, k, &f, &requested));
		if (in[k].type != OM_UNDEFINED || !(requested || (all && !graph->param[k]->data)))
			continue;
		const om_shape shape = om_input_shape(c->prog, k);
		const om_status st = fill_input(c, graph->param[k], &shape, &f, &in[k]);
		owned[k] = in[k].data;
		OM_TRY(st);
	}
	return missing(c, in);
}

/* ---- Outputs. ---- */

static om_status
save_npz(om_cli *c, const char *path, const om_tensor *const *out)
{
	const om_block *graph = c->prog->first;
	om_entries e = {0};

	for (uint32_t k = 0; k < graph->nresult; k++)
		om_entries_add(c->mem, &e, graph->result[k]->name, &graph->result[k]->type, out[k]);
	return om_npz_save(c->session, path, e.list, e.n, false);
}

om_status
om_data_save(om_cli *c, const char *path, const om_tensor *const *out)
{
	const om_block *graph = c->prog->first;

	if (om_cli_ends_in(path, ".npz"))
		return save_npz(c, path, out);
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return om_fail(c->session, OM_IO, "%s: %s", path, strerror(errno));
	for (uint32_t k = 0; k < graph->nresult; k++)
		OM_TRY(om_value_save_pb(c->session, om_printf(c->mem, "%s/output_%u.pb", path, k),
			graph->result[k]->name, &graph->result[k]->type, out[k]));
	return OM_OK;
}
