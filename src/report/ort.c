/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of an ONNX Runtime session that match a plan.
 *
 * ONNX Runtime makes its own plan.  Its settings include the execution mode
 * (sequential, so that memory can be shared), the dims of the plan (so that shapes
 * are known before the first run), and the growth of its arena: one chunk for the
 * plan's arena and the outputs, more only on request, weights apart.
 * examples/ort_session.py makes a session of it.
 */
#include <config.h>

#include "report/json.h"

enum { ORT_ALIGN = 256 };

/* Outputs come from the arena as well. */
static uint64_t
first_chunk(const om_report *r)
{
	const om_block *graph = r->prog->first;
	uint64_t bytes = r->arena_bytes;

	for (uint32_t k = 0; k < graph->nresult; k++)
		bytes += (om_value_bytes(graph->result[k]) + ORT_ALIGN - 1) / ORT_ALIGN * ORT_ALIGN;
	return (bytes + ORT_ALIGN - 1) / ORT_ALIGN * ORT_ALIGN;
}

om_status
om_report_ort(const om_report *r, om_session *s, om_arena *mem, const char *digest, FILE *to)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:s, s:b, s:b, s:b, s:o, s:{s:s, s:s}, s:{s:i, s:i, s:I, s:i}}",
		"schema", "onnxmem-ort/1", "model", om_clean_text(mem, r->model), "digest", digest,
		"arena_bytes", (json_int_t)r->arena_bytes,
		"execution_mode", "sequential", "enable_cpu_mem_arena", 1, "enable_mem_pattern", 1, "enable_mem_reuse", 1,
		"free_dimension_overrides", om_json_dims(r->prog, mem),
		"config_entries", "session.use_env_allocators", "1", "session.use_device_allocator_for_initializers", "1",
		"arena_cfg", "max_mem", 0, "arena_extend_strategy", 1,
		"initial_chunk_size_bytes", (json_int_t)first_chunk(r), "max_dead_bytes_per_chunk", -1);

	return om_json_write(s, j, JSON_INDENT(1), to);
}
