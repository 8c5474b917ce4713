/* SPDX-License-Identifier: Apache-2.0 */
/* Empty models, for programs that are built by hand: the bytes of such a file are read as those of any other. */
#include <config.h>

#include <stdio.h>

#include "base/guard.h"
#include "onnx/model.h"

enum { IR_VERSION = 10, OLDEST = 1, NEWEST = 28, LONGEST = 100 };

/* Messages of less than 128 bytes: field numbers and lengths are bytes. */
enum { VARINT = 0, BYTES = 2 };

static size_t
put_number(unsigned char *to, unsigned field, unsigned value)
{
	to[0] = (unsigned char)(field << 3 | VARINT);
	to[1] = (unsigned char)value;
	return 2;
}

static size_t
put_bytes(unsigned char *to, unsigned field, const void *from, size_t n)
{
	to[0] = (unsigned char)(field << 3 | BYTES);
	to[1] = (unsigned char)n;
	memcpy(to + 2, from, n);
	return n + 2;
}

/* ModelProto: ir_version is 1, graph 7, opset_import 8; GraphProto.name is 2; OperatorSetIdProto.version 2. */
static om_status
model_empty(om_session *s, const char *name, int opset, om_model **out)
{
	unsigned char graph[LONGEST + 8], set[8], all[LONGEST + 32];
	const size_t length = strlen(name);

	if (length == 0 || length > LONGEST)
		return om_fail(s, OM_USAGE, "the name of a model must have 1 to %d bytes, not %zu", LONGEST, length);
	if (opset < OLDEST || opset > NEWEST)
		return om_fail(s, OM_USAGE, "a model needs an opset from %d to %d, not %d", OLDEST, NEWEST, opset);
	size_t n = put_number(all, 1, IR_VERSION);
	n += put_bytes(all + n, 7, graph, put_bytes(graph, 2, name, length));
	n += put_bytes(all + n, 8, set, put_number(set, 2, (unsigned)opset));
	return om_model_load_memory(s, all, n, name, NULL, out);
}

om_status
om_model_empty(om_session *s, const char *name, int opset, om_model **out)
{
	*out = NULL;
	OM_GUARDED(s, model_empty(s, name, opset, out));
}
