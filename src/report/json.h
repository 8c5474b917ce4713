/* Values of JSON that several documents have. */
#ifndef OM_REPORT_JSON_H
#define OM_REPORT_JSON_H

#include <jansson.h>

#include "report/report.h"

/* A text, of whatever bytes it is. */
json_t *om_json_text(om_arena *mem, const char *s);

/* What the symbols of the inputs stand for. */
json_t *om_json_dims(const om_prog *p, om_arena *mem);

#endif
