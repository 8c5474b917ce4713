/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto files. */
#ifndef OM_VALUE_FILES_H
#define OM_VALUE_FILES_H

#include "onnxmem/onnx.h"

/* Load and save a .pb file (TensorProto).  Loaded elements are allocated in `mem`. */
om_status om_tensor_load_pb(om_session *s, const char *path, om_arena *mem, om_tensor *out);
om_status om_tensor_save_pb(om_session *s, const char *path, const char *name,
	const om_tensor *t);

#endif
