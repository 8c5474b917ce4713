/* SPDX-License-Identifier: Apache-2.0 */
/* What a test is fed with and compared with. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "onnxmem/onnx.h"
#include "onnxmem/opdef.h"

typedef struct om_data {
	bool is_given;
	om_tensor t;              /* or what stands for an object */
} om_data;

/* Read a file of a value of this type. */
om_status om_data_load(om_session *s, const char *path, om_arena *mem, const om_type *type, om_data *out);

/* Is `got`, which `v` is, what is wanted?  The folder's name is that of the test. */
om_status om_data_check(om_session *s, om_arena *mem, const char *folder, const om_value *v, const om_tensor *got,
	const om_data *want);

/* Why the test has a wider tolerance than others; NULL: it has not. */
const char *om_data_wider(const char *folder);

/* Of an operator that draws numbers: type, shape, and a distribution that the
 * inputs `in` give: Dropout, else Bernoulli. */
om_status om_data_check_random(om_session *s, bool dropout, const om_data *in, const om_tensor *got,
	const om_data *want);

#endif
