/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the JSON library.
 *
 * jansson has no error for a refused request: a document that is made lacks an item, and a text that is read lacks bytes or
 * seems to be damaged.  So its requests are watched, in this process as a whole.  Once one was refused, nothing that the
 * command has of JSON counts: it writes no file and has failed, for lack of memory and no other reason. */
#ifndef OM_CLI_JSON_MEMORY_H
#define OM_CLI_JSON_MEMORY_H

#include "onnxmem/status.h"

/* Watch all requests from now on. */
void om_cli_watch_json(void);

/* `st`; OM_MEMORY, with a message, if a request was refused. */
om_status om_cli_json_status(om_session *s, om_status st);

#endif
