/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the program of a model. */
#ifndef OM_IMPORT_H
#define OM_IMPORT_H

#include "ir/operators.h"

/* As om_model_import(), for given operators. */
om_status om_model_import_with(om_session *s, const struct om_operators *operators, om_model *m, om_prog **out);

#endif
