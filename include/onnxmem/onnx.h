/* ONNX files: load, import, save, and the plan inside them. */
#ifndef OM_ONNX_H
#define OM_ONNX_H

#include "onnxmem/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Load a model; "-" is standard input.  External data is mapped, not read;
 * its location has to stay inside the model's folder.  As long as the model lives, files of external
 * data must keep their length: a mapped file that another program cuts short ends the process with
 * SIGBUS where a kernel reads behind its new end.  Put new data beside the old and rename it, as
 * om_model_save() does; or load from a copy that nobody else writes.  Refused with a sentence:
 * OM_IO, OM_MALFORMED, OM_INVALID, OM_UNSUPPORTED.  `*out` is NULL on failure. */
OM_API om_status om_model_load(om_session *s, const char *path, om_model **out);

/* The same from memory, which may be freed afterwards.  `name` names it in
 * messages; external data is looked for in `folder` (NULL: refused). */
OM_API om_status om_model_load_memory(om_session *s, const void *data, size_t size,
	const char *name, const char *folder, om_model **out);
OM_API void om_model_free(om_model *m);   /* NULL is fine */

/* Write the model; "-" is standard output.  A file is written beside its place
 * and renamed.  External data that the model refers to is copied
 * into the new folder when that is another one; never rewritten.  OM_USAGE when
 * `path` is the file that the model was loaded from. */
OM_API om_status om_model_save(om_session *s, const om_model *m, const char *path);

/* The model as a program.  Nodes in a wrong order are sorted, stably; cycles,
 * names that are used but never defined, and names defined twice are OM_INVALID.
 * An operator that is not known stays in the program without a row; an operator
 * that is known, but not in this version, too. */
OM_API om_status om_model_import(om_session *s, om_model *m, om_prog **out);

/* Make the model what the program is now: order of nodes, removed and new ops,
 * inlined functions.  Whatever the program left alone keeps its message. */
OM_API om_status om_model_update(om_session *s, om_model *m, const om_prog *p);

/* The program is a step of training, made of the model by om_prog_add_training_step() with `copies`: what it has
 * besides the model's graph, which stays as it is, becomes the model's training information, in place
 * of what was there.  Parameters that are handed on have to be initializers.  Values that are computed
 * beside the graph get other names, in the program too. */
OM_API om_status om_model_train(om_session *s, om_model *m, om_prog *p);

/* First op that keeps the model from being run: no row, or no kernel; OM_OK or
 * OM_UNSUPPORTED naming node, operator, domain and version. */
OM_API om_status om_prog_is_runnable(om_session *s, const om_prog *p);

/* Graph digest "canon1:sha256:<hex>"; `full` adds all weights.  `hex` has room
 * for 80 bytes. */
OM_API om_status om_model_digest(om_session *s, const om_model *m, bool full, char hex[80]);

enum {
	OM_ANNOTATE_MODEL = 1u << 0,    /* the authority: always wanted */
	OM_ANNOTATE_VALUE = 1u << 1,    /* mirrors on value_info */
	OM_ANNOTATE_AUTO  = 1u << 2,    /* mirrors from IR 10 on */
	OM_ANNOTATE_ONNXSIM = 1u << 3,  /* onnxsim's keys too, where ours mean the same */
};

/* Write the program's plan into the model, replacing an older one: updates the
 * model from the program first, so that file order is plan order. */
OM_API om_status om_model_annotate(om_session *s, om_model *m, const om_prog *p, unsigned how);

/* The plan as a JSON document ("memplan/1"), which the caller frees. */
OM_API om_status om_plan_json(om_session *s, const om_model *m, const om_prog *p, char **json);

/* Does the model carry a plan? */
OM_API bool om_model_has_plan(const om_model *m);

/* Read the model's plan into the program (imported from it, not changed since):
 * binds the shapes that the plan was made for, infers, folds, and sets p->plan.
 * `sidecar` is a file to read it from instead, or NULL.  OM_STALE when the plan
 * is not for this model, OM_BADPLAN when it is malformed, OM_INVALID when there
 * is none.  The plan is not verified yet. */
OM_API om_status om_model_read_plan(om_session *s, om_model *m, om_prog *p, const char *sidecar);

/* Is there an initializer of the graph called `name`?  Give it these elements, which are
 * copied; OM_USAGE when there is none, OM_SHAPE when type or shape differ. */
OM_API bool om_model_has_weight(const om_model *m, const char *name);
OM_API om_status om_model_set_weight(om_session *s, om_model *m, const char *name, const om_tensor *t);

/* Take the plan, and what belongs to it, away; the number of keys that were there. */
OM_API size_t om_model_strip(om_model *m);

/* A .pb file (TensorProto), or memory, as a tensor.  Elements come from `mem`. */
OM_API om_status om_tensor_load_pb(om_session *s, const char *path, om_arena *mem, om_tensor *out);
OM_API om_status om_tensor_save_pb(om_session *s, const char *path, const char *name,
	const om_tensor *t);

/* The same of a value of any type: a file may hold a SequenceProto, an
 * OptionalProto or a MapProto, too.  What is no tensor is an object then. */
OM_API om_status om_value_load_pb(om_session *s, const char *path, om_arena *mem, const om_type *type,
	om_tensor *out);
OM_API om_status om_value_save_pb(om_session *s, const char *path, const char *name, const om_type *type,
	const om_tensor *t);

#ifdef __cplusplus
}
#endif

#endif
