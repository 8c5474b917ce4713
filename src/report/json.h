/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values shared by several documents. */
#ifndef OM_REPORT_JSON_H
#define OM_REPORT_JSON_H

#include <jansson.h>

#include "report/report.h"

/* The JSON of a number of bytes, steps, ... */
static inline json_t *
om_json_number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* A JSON string from any bytes; null for NULL. */
json_t *om_json_text(om_arena *mem, const char *s);

/* Write a document and a newline, with the flags of json_dumpf(), and release the document; NULL is one for which there was no
 * memory.  An error of the stream is left to the caller, which closes it and says why. */
om_status om_json_write(om_session *s, json_t *document, size_t flags, FILE *to);

/* Formulas of the sizes of a plan with ranges; NULL if none were looked for. */
json_t *om_json_formulas(const om_report *r, om_arena *mem);

/* Set `node` and, in a body, `scope`: where the op is in the file.  Nothing for NULL, or an op of a pass. */
void om_json_set_node(json_t *to, om_arena *mem, const om_op *op);

/* The values of the symbols of the inputs. */
json_t *om_json_dims(const om_prog *p, om_arena *mem);

/* A report as an object, "onnxmem-report/1", which the caller releases. */
json_t *om_report_object(const om_report *r, om_arena *mem);

#endif
