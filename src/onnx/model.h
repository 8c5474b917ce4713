/* A model as it lies in memory: the messages of its file, unpacked.
 *
 * Only src/onnx sees this.  All messages, and whatever is added to them, come
 * from `mem` (or from lumps that die with the model): nothing of a model is
 * freed on its own, so a field is changed by pointing it to something else.
 */
#ifndef OM_MODEL_H
#define OM_MODEL_H

#include <stdio.h>
#include <sys/types.h>

#include "onnx.pb-c.h"
#include "onnxmem/builder.h"
#include "onnxmem/onnx.h"

/* A file of external data, mapped whole. */
struct mapped {
	const char *location;    /* as the model writes it */
	const char *path;
	void *data;              /* NULL for an empty file */
	size_t size;
	struct mapped *next;
};

struct lump;                     /* a large allocation */

struct om_model {
	om_arena *mem;
	const char *name;        /* for messages: the path, or what the caller said */
	const char *folder;      /* of external data; NULL: there is none */
	bool is_file;            /* dev and ino tell which */
	dev_t dev;
	ino_t ino;
	Onnx__ModelProto *proto;
	struct mapped *mapped;
	struct lump *lumps;
	bool is_short;           /* memory ran out while messages were unpacked */
};

enum { OM_MAX_NESTING = 100 };   /* of messages: what other readers of ONNX take */

enum { OM_IR_OLDEST = 3, OM_IR_TRAINING = 7, OM_IR_OVERLOAD = 10, OM_IR_NEWEST = 14 };
/* TRAINING: has training information; OVERLOAD: functions of one name, with types of their values */

/* Look through packed messages before they are unpacked: well-formed, not too
 * deep, and not such that unpacking takes very much more memory than the bytes
 * themselves.  `name` is for the message. */
om_status om_wire_check(om_session *s, const char *name, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size);

/* Unpack into the model's memory; NULL, after a sentence, when that fails. */
om_status om_model_unpack(om_session *s, om_model *m, const ProtobufCMessageDescriptor *d,
	const void *data, size_t size, ProtobufCMessage **out);

/* A model without messages. */
om_model *om_model_new(const char *name, const char *folder);

/* A file, whole and read only: mapped where that works, else read. */
struct whole {
	void *data;
	size_t size;
	bool is_mapped;
	bool is_file;
	dev_t dev;
	ino_t ino;
};
/* It is closed when the arena ends. */
om_status om_whole_open(om_session *s, om_arena *mem, const char *path, const struct whole **out);

/* The file of external data at `location`, which has to lie in the model's
 * folder.  Mapped once, and as long as the model lives. */
om_status om_model_map(om_session *s, om_model *m, const char *location, const struct mapped **out);
void om_model_unmap(om_model *m);

/* Where a location is; refused unless it lies in the folder. */
om_status om_location_resolve(om_session *s, const char *name, const char *folder,
	const char *location, om_arena *mem, const char **path);

/* The tensor that a message describes.  Elements stay where they are, in the
 * message or in mapped external data, where their layout allows; else they
 * come from `mem`, as does the list of a string tensor.  `m` NULL: external data
 * is refused. */
om_status om_tensor_read(om_session *s, om_model *m, om_arena *mem,
	const Onnx__TensorProto *t, om_tensor *out);
/* The same, made dense. */
om_status om_sparse_read(om_session *s, om_model *m, om_arena *mem,
	const Onnx__SparseTensorProto *t, om_tensor *out);
/* A message for a tensor: elements are referred to, not copied, but for
 * strings and repeated elements. */
om_status om_tensor_write(om_session *s, om_arena *mem, const char *name, const om_tensor *t,
	Onnx__TensorProto **out);

/* Make `mem` own the elements of a tensor. */
void om_tensor_own(om_arena *mem, om_tensor *t);

/* Write a message to a file, or, "-", to standard output. */
om_status om_message_save(om_session *s, const char *path, const ProtobufCMessage *message);

const char *om_folder_of(om_arena *mem, const char *path);

/* Type and shape of a TypeProto, which may be NULL.  `what` names the value. */
om_status om_type_read(om_session *s, om_arena *mem, const char *what,
	const Onnx__TypeProto *t, om_type *type, om_shape *shape);
Onnx__TypeProto *om_type_write(om_arena *mem, const om_type *type, const om_shape *shape);

/* What an attribute holds.  Files without types of attributes, or with a wrong
 * zero, say it by what is filled in. */
om_attr_kind om_attr_kind_read(const Onnx__AttributeProto *a);

/* "" for NULL; "ai.onnx" is "". */
const char *om_text(const char *s);
const char *om_domain(const char *s);

#endif
