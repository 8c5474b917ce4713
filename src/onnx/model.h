/* SPDX-License-Identifier: Apache-2.0 */
/* The in-memory representation of a model: the unpacked messages of its file.
 *
 * Private to src/onnx.  All messages and additions to them are allocated in `mem`
 * (or in lumps with the lifetime of the model).  Parts of a model are not freed
 * individually, so a field is changed by redirecting its pointer.
 */
#ifndef OM_MODEL_H
#define OM_MODEL_H

#include <stdio.h>
#include <sys/types.h>

#include "onnx.pb-c.h"
#include "base/byte_delta.h"
#include "base/mapping.h"
#include "onnxmem/builder.h"
#include "onnxmem/onnx.h"

/* A file of external data, mapped whole. */
struct mapped {
	const char *location;    /* as written in the model */
	const char *path;
	void *data;              /* NULL for an empty file */
	size_t size;
	struct om_file_state state;
	struct mapped *next;
};

struct lump;                     /* a large allocation */
struct whole;

struct om_model {
	om_arena *mem;
	const char *name;        /* for messages: the path, or the name given by the caller */
	const char *folder;      /* of external data; NULL: none */
	bool is_file;            /* dev and ino are valid */
	dev_t dev;
	ino_t ino;
	Onnx__ModelProto *proto;
	const struct whole *whole;   /* the file that it was loaded from; NULL: it was not */
	bool was_planned;        /* the file had a plan */
	bool keeps_original;     /* save the original with the plan */
	const Onnx__StringStringEntryProto *kept;   /* the entry with the original of a planned file; NULL: none */
	struct mapped *mapped;
	struct om_mappings files;    /* all mapped files: its own, and those of external data */
	struct lump *lumps;
	bool is_short;           /* memory ran out while messages were unpacked */
};

enum { OM_MAX_NESTING = 100 };   /* of messages: the limit of other ONNX readers */

enum { OM_IR_OLDEST = 3, OM_IR_TRAINING = 7, OM_IR_OVERLOAD = 10, OM_IR_NEWEST = 14 };
/* TRAINING: training information; OVERLOAD: overloaded functions, and value types in functions */

/* Check packed messages before they are unpacked: they must be well-formed, not nested too
 * deeply, and must not require disproportionately more memory than their size.  `name` is used
 * in messages. */
om_status om_wire_check(om_session *s, const char *name, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size);

/* The same, and a copy without raw data of `large` and more bytes, to be freed with free() whatever is returned;
 * NULL if there is no such data.  Once the copy is unpacked, om_wire_resolve() makes its raw data refer to the
 * packed messages. */
om_status om_wire_thin(om_session *s, const char *name, const ProtobufCMessageDescriptor *d, const void *data, size_t size,
	size_t large, om_bytes *thin);
void om_wire_resolve(ProtobufCMessage *m, void *data);

/* Visit all tensors in a message: they occur in attributes, functions and training graphs too. */
typedef void om_tensor_visitor(Onnx__TensorProto *t, void *arg);
void om_tensors_visit(ProtobufCMessage *m, om_tensor_visitor *visit, void *arg);

/* Unpack into the model's memory; `*out` is NULL on failure.  All bytes are copied. */
om_status om_model_unpack(om_session *s, om_model *m, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size, ProtobufCMessage **out);
/* The same, except that raw data of `large` and more bytes refers to `data`, which must live as long as the model. */
om_status om_model_unpack_in_place(om_session *s, om_model *m, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size, size_t large, ProtobufCMessage **out);

/* A new model without messages. */
om_model *om_model_new(const char *name, const char *folder);

/* The contents of a file, read-only: mapped if possible, else read. */
struct whole {
	void *data;
	size_t size;
	bool is_mapped;
	bool is_file;
	dev_t dev;
	ino_t ino;
	struct om_file_state state;  /* if it is mapped */
};
/* The file is closed when the arena is freed. */
om_status om_whole_open(om_session *s, om_arena *mem, const char *path, const struct whole **out);
/* The same for a path that a file names: pipes and devices are refused, and not waited for. */
om_status om_whole_open_regular(om_session *s, om_arena *mem, const char *path, const struct whole **out);

/* Map the external data file at `location`, which must be inside the model's folder.  A file
 * is mapped once, for the lifetime of the model. */
om_status om_model_map(om_session *s, om_model *m, const char *location, const struct mapped **out);
void om_model_unmap(om_model *m);

/* Resolve a location to a path; fails unless it is inside the folder. */
om_status om_location_resolve(om_session *s, const char *name, const char *folder,
	const char *location, om_arena *mem, const char **path);

/* Read a tensor from a message.  Elements are referenced in place, in the message or in mapped
 * external data, if their layout permits; otherwise they are copied to `mem`, as is the list of a
 * string tensor.  `m` NULL: external data is an error. */
om_status om_tensor_read(om_session *s, om_model *m, om_arena *mem,
	const Onnx__TensorProto *t, om_tensor *out);
/* The same for a sparse tensor, which is converted to dense; its bytes are taken from `*left`. */
om_status om_sparse_read(om_session *s, om_model *m, om_arena *mem, uint64_t *left,
	const Onnx__SparseTensorProto *t, om_tensor *out);
/* Create a message for a tensor: elements are referenced, not copied, except strings and
 * splats. */
om_status om_tensor_write(om_session *s, om_arena *mem, const char *name, const om_tensor *t,
	Onnx__TensorProto **out);

/* Ensure that the elements of a tensor are owned by `mem`. */
void om_tensor_own(om_arena *mem, om_tensor *t);

/* Write a message to a file, or to standard output if `path` is "-". */
om_status om_message_save(om_session *s, const char *path, const ProtobufCMessage *message);

const char *om_folder_of(om_arena *mem, const char *path);

/* Type and shape of a TypeProto, which may be NULL.  `what` names the value. */
om_status om_type_read(om_session *s, om_arena *mem, const char *what,
	const Onnx__TypeProto *t, om_type *type, om_shape *shape);
Onnx__TypeProto *om_type_write(om_arena *mem, const om_type *type, const om_shape *shape);

/* The kind of an attribute.  If its type is absent or 0, as in some files, the kind is derived
 * from the fields that are set. */
om_attr_kind om_attr_kind_read(const Onnx__AttributeProto *a);

/* om_text: "" for NULL; om_domain: also "" for "ai.onnx". */
const char *om_text(const char *s);
const char *om_domain(const char *s);

#endif
