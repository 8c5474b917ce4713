/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <inttypes.h>

#include "cli/tflite_table.h"

static const char *const head[] = {"id", "lower", "upper", "size", "offset", "name"};
enum { COLUMNS = sizeof head / sizeof head[0] };

static void
add_row(om_arena *mem, const om_tflite_tensor *t, uint32_t k, om_table *out)
{
	const char **row = &out->field[COLUMNS * out->nrow];

	row[0] = om_printf(mem, "%" PRIu32, k);
	row[1] = om_printf(mem, "%" PRIu32, t->first);
	row[2] = om_printf(mem, "%" PRIu32, t->last + 1);
	row[3] = om_printf(mem, "%" PRIu64, t->bytes);
	row[4] = t->offset < 0 ? "" : om_printf(mem, "%" PRId32, t->offset);
	row[5] = t->name;
	out->line[out->nrow++] = k;
}

om_status
om_tflite_table(om_session *s, const char *path, const void *data, size_t size, om_arena *mem, om_table *out)
{
	om_tflite file;

	OM_TRY(om_tflite_read(s, mem, path, data, size, &file));
	if (file.ngraph > 1)
		om_warn(s, "%s has %" PRIu32 " graphs: the tensors of the first are read", path, file.ngraph);
	*out = (om_table){.path = path, .ncol = COLUMNS, .newline = "\n", .head = om_memdup(mem, head, sizeof head),
		.field = OM_NEWN(mem, const char *, COLUMNS * (size_t)file.ntensor), .line = OM_NEWN(mem, size_t, file.ntensor)};
	for (uint32_t k = 0; k < file.ntensor; k++) {
		const om_tflite_tensor *t = &file.tensor[k];
		if (t->is_constant || !t->is_used)
			continue;
		if (t->bytes == UINT64_MAX)
			return om_fail(s, OM_UNSUPPORTED, "%s: the size of tensor %s is not known", path, t->name);
		add_row(mem, t, k, out);
	}
	return OM_OK;
}
