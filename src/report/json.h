/* JSON values shared by several documents. */
#ifndef OM_REPORT_JSON_H
#define OM_REPORT_JSON_H

#include <jansson.h>

#include "report/report.h"

/* A JSON string from any bytes. */
json_t *om_json_text(om_arena *mem, const char *s);

/* The values of the symbols of the inputs. */
json_t *om_json_dims(const om_prog *p, om_arena *mem);

#endif
