/* SPDX-License-Identifier: Apache-2.0 */
/* States by name: inputs of the graph that its outputs replace in the next run.
 *
 * Exporters of decoders do not declare which output is which input of the next step, but name both alike:
 * past_key_values.0.key and present.0.key, past_h and present_h.  A rule is a pair of beginnings: an input and an
 * output whose names have these beginnings and the same rest are a state. */
#include <config.h>

#include <string.h>

#include "ir/edit.h"

struct rule {
	const char *input, *output;
	size_t ninput, noutput;  /* lengths */
};

static struct rule
rule_of(const char *input, size_t ninput, const char *output)
{
	return (struct rule){input, output, ninput, strlen(output)};
}

/* The result that replaces a parameter; UINT32_MAX: none. */
static uint32_t
find_result(const om_prog *p, const struct rule *r, const om_value *param)
{
	const om_block *graph = p->first;

	if (strncmp(param->name, r->input, r->ninput) != 0)
		return UINT32_MAX;
	for (uint32_t k = 0; k < graph->nresult; k++)
		if (strncmp(graph->result[k]->name, r->output, r->noutput) == 0
		    && strcmp(graph->result[k]->name + r->noutput, param->name + r->ninput) == 0)
			return k;
	return UINT32_MAX;
}

static bool
is_paired(const om_prog *p, uint32_t result, uint32_t param)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->io_alias[k].result == result && p->io_alias[k].param == param)
			return true;
	return false;
}

/* Are they tensors that may be one state?  Lengths may differ: a cache grows. */
static bool
may_pair(const om_value *result, const om_value *param)
{
	const bool is_known = result->type.elem != OM_UNDEFINED && param->type.elem != OM_UNDEFINED;
	const bool has_rank = result->shape.rank != OM_RANK_UNKNOWN && param->shape.rank != OM_RANK_UNKNOWN;

	return !param->is_overridable && !param->is_const && result->type.kind == OM_TENSOR && param->type.kind == OM_TENSOR
	    && (!is_known || result->type.elem == param->type.elem) && (!has_rank || result->shape.rank == param->shape.rank);
}

/* Pair all that the rule names; the number of pairs, those that are declared already included. */
static uint32_t
pair_all(om_prog *p, const struct rule *r)
{
	const om_block *graph = p->first;
	uint32_t n = 0;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		const uint32_t result = find_result(p, r, graph->param[k]);
		if (result == UINT32_MAX || !may_pair(graph->result[result], graph->param[k]))
			continue;
		n += is_paired(p, result, k) || om_prog_pair_io(p, result, k);
	}
	return n;
}

static om_status
pair_by_text(om_session *s, om_prog *p, const char *text)
{
	const size_t end = strcspn(text, "=");
	const struct rule r = rule_of(text, end, text + end + (text[end] == '='));

	if (end == 0 || r.noutput == 0)
		return om_fail(s, OM_USAGE, "states are named as INPUT=OUTPUT, with the names or their beginnings, or as auto, "
			"not as %s", text);
	if (pair_all(p, &r) == 0)
		return om_fail(s, OM_USAGE, "no input whose name begins with %.*s has an output of its type whose name begins with %s "
			"and ends like that of the input", (int)end, text, r.output);
	return OM_OK;
}

om_status
om_prog_states_by_name(om_session *s, om_prog *p, const char *text)
{
	static const struct { const char *input, *output; } exporters[] = {
		{"past_key_values", "present"},  /* optimum, onnxruntime-genai; also present.0.decoder.key of encoder-decoders */
		{"past", "present"},             /* past_key_self_0, past.0.conv, past_conv.0, past_ssm.0, past_h */
		{"cache_in", "cache_out"}, {"in_cache", "out_cache"},
	};

	if (strcmp(text, "auto") != 0)
		return pair_by_text(s, p, text);
	for (size_t k = 0; k < sizeof exporters / sizeof exporters[0]; k++) {
		const struct rule r = rule_of(exporters[k].input, strlen(exporters[k].input), exporters[k].output);
		pair_all(p, &r);
	}
	return OM_OK;
}
