/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as an offline plan of TFLite Micro: the content of the metadata entry
 * "OfflineMemoryAllocation" of a .tflite file, as a C array.
 *
 *   0: version of the format, 1     1: subgraph, 0     2: number of tensors n
 *   3 to 3+n: byte offset of each tensor in the arena; -1: the runtime's planner
 *             places it around the others
 *
 * Tensors are those of the ONNX graph: inputs, then the results of each op, in the
 * order of the ops; a converter numbers tensors differently, so their names are
 * added as comments. */
#include <config.h>

#include <inttypes.h>

#include "report/tflm.h"

enum { TFLM_ALIGN = 16 };

om_status
om_tflm_check(const om_report *r, om_session *s)
{
	const om_plan *plan = r->prog->plan;

	if (plan->narena > 1)
		return om_fail(s, OM_UNSUPPORTED,
			"an offline plan of TFLite Micro supports one arena, this plan has %" PRIu32,
			plan->narena);
	if (r->prog->nblock > 1)
		return om_fail(s, OM_UNSUPPORTED,
			"an offline plan of TFLite Micro supports one graph, and this model has branches "
			"or loops, whose memory would not be reserved");
	if (plan->parallel_safe)
		return om_fail(s, OM_UNSUPPORTED, "TFLite Micro runs in the order of the file: plan without --parallel-safe and --streams");
	if (plan->arena[0].align % TFLM_ALIGN)
		return om_fail(s, OM_UNSUPPORTED,
			"TFLite Micro requires offsets that are multiples of %d, the plan has multiples of %"
			PRIu64, TFLM_ALIGN, plan->arena[0].align);
	if (plan->arena[0].bytes > INT32_MAX)
		return om_fail(s, OM_UNSUPPORTED, "TFLite Micro has offsets of 31 bits, the arena has %" PRIu64 " bytes",
			plan->arena[0].bytes);
	return OM_OK;
}

void
om_tflm_head(const om_report *r, uint32_t n, const char *note, FILE *to)
{
	fprintf(to, "// Metadata \"OfflineMemoryAllocation\", made by %s.\n// Tensor arena: at least %" PRIu64
		" bytes, and those of the runtime itself.\n%s%s%s#include <stdint.h>\n\nconst int32_t offline_memory_allocation[] = {\n"
		"\t1,  // version\n\t0,  // subgraph\n\t%" PRIu32 ",  // tensors\n", PACKAGE_STRING,
		r->prog->plan->arena[0].bytes, *note ? "// " : "", note, *note ? "\n" : "", n);
}

void
om_tflm_tensor(om_arena *mem, const char *name, const om_placement *at, FILE *to)
{
	if (at)
		fprintf(to, "\t%" PRIu64 ",", at->offset);
	else
		fputs("\t-1,", to);
	fputs("  // ", to);
	for (const char *c = om_clean_text(mem, name); *c; c++)
		putc(*c == '\\' || *c == '?' ? '_' : *c, to);
	putc('\n', to);
}

static void
write_tensor(const om_report *r, om_arena *mem, FILE *to, const om_value *v)
{
	const om_placement *at = &r->prog->plan->place[v->id];

	om_tflm_tensor(mem, v->name, at->where == OM_IN_ARENA ? at : NULL, to);
}

/* Constants are in the file. */
static bool
is_tensor(const om_report *r, const om_value *v)
{
	return v && !v->is_const && r->prog->plan->place[v->id].where != OM_UNUSED;
}

static uint32_t
write_tensors(const om_report *r, om_arena *mem, FILE *to)
{
	const om_block *graph = r->prog->first;
	uint32_t n = 0;

	for (uint32_t k = 0; k < graph->nparam; k++)
		if (is_tensor(r, graph->param[k]) && ++n && to)
			write_tensor(r, mem, to, graph->param[k]);
	for (const om_op *op = graph->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nout; k++)
			if (is_tensor(r, op->out[k]) && ++n && to)
				write_tensor(r, mem, to, op->out[k]);
	return n;
}

om_status
om_report_tflm(const om_report *r, om_session *s, om_arena *mem, FILE *to)
{
	OM_TRY(om_tflm_check(r, s));
	om_tflm_head(r, write_tensors(r, mem, NULL), "", to);
	write_tensors(r, mem, to);
	fputs("};\n", to);
	return OM_OK;
}
