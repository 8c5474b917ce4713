/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files: load, import, save, and embedded plans. */
#ifndef OM_ONNX_H
#define OM_ONNX_H

#include "onnxmem/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Load a model; "-" is standard input.  The file and its external data are mapped, and weights are
 * not copied from them; external data must be inside the model's folder.  The files must keep their
 * contents for the lifetime of the model: if another program truncates a mapped file, the process
 * receives SIGBUS when a weight past the new end is read.  To replace a file, write a new one and
 * rename it, as om_model_save() does, or load from a private copy.  Errors: OM_IO, OM_MALFORMED, OM_INVALID,
 * OM_UNSUPPORTED.  `*out` is NULL on failure. */
OM_API om_status om_model_load(om_session *s, const char *path, om_model **out);

/* The same from memory, which may be freed afterwards.  `name` is used in messages;
 * external data is resolved in `folder` (NULL: external data is an error). */
OM_API om_status om_model_load_memory(om_session *s, const void *data, size_t size,
	const char *name, const char *folder, om_model **out);
OM_API void om_model_free(om_model *m);   /* NULL is fine */

/* An empty model with a graph called `name`, of an opset of ai.onnx: a program that is built by hand (builder.h) starts as the
 * import of one, and om_model_update() exports it. */
OM_API om_status om_model_empty(om_session *s, const char *name, int opset, om_model **out);

/* Write the model; "-" is standard output.  A file is written under a temporary name in the
 * same folder and renamed.  Referenced external data is copied if the destination folder
 * differs, and never rewritten.  OM_USAGE if `path` is the file that the model was loaded
 * from. */
OM_API om_status om_model_save(om_session *s, const om_model *m, const char *path);

/* The same to memory, which the caller frees with free().  External data stays where it is: a reader resolves it in
 * the folder of the model.  `*data` is NULL on failure. */
OM_API om_status om_model_save_memory(om_session *s, const om_model *m, char **data, size_t *size);

/* Import the model as a program.  Nodes that are not in topological order are sorted stably;
 * cycles, undefined names and names defined twice are OM_INVALID.  An op whose operator, or
 * whose version of the operator, is unknown is kept without an operator definition. */
OM_API om_status om_model_import(om_session *s, om_model *m, om_prog **out);

/* Update the model from the program: order of nodes, removed and new ops, inlined
 * functions.  Unchanged parts keep their messages.  An input with a fixed value (om_binding_value()) becomes a constant: the
 * model has no such input any more. */
OM_API om_status om_model_update(om_session *s, om_model *m, const om_prog *p);

/* After an update: remove the initializers of the graph that the program, which must not have been changed since, does
 * not read any more, inputs with a default aside.  Returns the number of those removed. */
OM_API size_t om_model_drop_unused(om_model *m, const om_prog *p);

/* Store a training step as the training information of the model, replacing the existing one.
 * The program was made from the model by om_prog_add_training_step() with `copies`; the part of it
 * that is not in the model's graph becomes the training information, and the graph is unchanged.
 * Carried parameters must be initializers.  Values computed outside the graph are renamed, in the
 * program too. */
OM_API om_status om_model_train(om_session *s, om_model *m, om_prog *p);

/* Graph digest "canon1:sha256:<hex>"; `full` includes all weights.  `hex` is a buffer of
 * 80 bytes. */
OM_API om_status om_model_digest(om_session *s, const om_model *m, bool full, char hex[80]);

enum {
	OM_ANNOTATE_MODEL = 1u << 0,    /* the authoritative plan: always required */
	OM_ANNOTATE_VALUE = 1u << 1,    /* mirrors on value_info */
	OM_ANNOTATE_AUTO  = 1u << 2,    /* mirrors from IR 10 on */
	OM_ANNOTATE_ONNXSIM = 1u << 3,  /* also onnxsim's keys with the same meaning */
	OM_ANNOTATE_ORIGINAL = 1u << 4, /* what om_model_save_original() needs, as om_model_save() writes it */
};

/* Write the program's plan into the model, replacing an older one.  Updates the model from
 * the program first, so that file order is plan order.  If the plan is for a target other than generic, the graph
 * stays as it is: the plan lists the passes that rewrote the program (om_prog.passes), and can be read as long as
 * they make the same again. */
OM_API om_status om_model_annotate(om_session *s, om_model *m, const om_prog *p, unsigned how);

/* The plan as a JSON document ("memplan/1"); the caller frees it. */
OM_API om_status om_plan_json(om_session *s, const om_model *m, const om_prog *p, char **json);

/* Does the model contain a plan? */
OM_API bool om_model_has_plan(const om_model *m);

/* Read the model's plan into the program, which was imported from the model and not changed
 * since: binds the shapes of the plan, infers shapes, folds constants, and sets p->plan.  A plan for a target
 * other than generic is for what passes made of the program: they run again, and OM_STALE means that they do not
 * make the same.
 * `sidecar` is a file to read the plan from instead, or NULL.  OM_STALE if the plan is not for
 * this model, OM_BADPLAN if it is malformed, OM_INVALID if there is none.  Does not verify the
 * plan. */
OM_API om_status om_model_read_plan(om_session *s, om_model *m, om_prog *p, const char *sidecar);

/* Receives an entry of metadata; `value` is the name of the value that has it, NULL: the model. */
typedef void om_metadata_visit(void *arg, const char *value, const char *key, const char *text);

/* Visit the metadata of the model, then that of the values of its graph: inputs, outputs, others, each in the order of
 * the file.  An output that is listed among the others, too, is visited twice. */
OM_API void om_model_visit_metadata(const om_model *m, om_metadata_visit *visit, void *arg);

/* Does the graph have an initializer called `name`?  The setter copies the elements of `t`
 * into it: OM_USAGE if there is none, OM_SHAPE if type or shape differ. */
OM_API bool om_model_has_weight(const om_model *m, const char *name);
OM_API om_status om_model_set_weight(om_session *s, om_model *m, const char *name, const om_tensor *t);

/* Remove the plan and its metadata; returns the number of keys removed.  The graph stays as it was
 * planned: nodes in the order of the plan, functions inlined, constants folded. */
OM_API size_t om_model_strip(om_model *m);

/* Does the model keep the file that it was planned from?  So does a model that was loaded, with
 * om_model_load(), from a file that om_model_save() wrote after om_model_annotate() with
 * OM_ANNOTATE_ORIGINAL of a model that was itself loaded from a file. */
OM_API bool om_model_has_original(const om_model *m);

/* Save that file, byte for byte; external data is copied as by om_model_save().  OM_INVALID: the model
 * does not keep it; OM_STALE: its file was changed since it was planned; or as om_model_save(). */
OM_API om_status om_model_save_original(om_session *s, const om_model *m, const char *path);

/* Load and save a .pb file with a value of type `type`: a TensorProto, or a SequenceProto, an
 * OptionalProto or a MapProto, which are loaded as objects.  Loaded elements are allocated in `mem`. */
OM_API om_status om_value_load_pb(om_session *s, const char *path, om_arena *mem, const om_type *type,
	om_tensor *out);
OM_API om_status om_value_save_pb(om_session *s, const char *path, const char *name, const om_type *type,
	const om_tensor *t);

#ifdef __cplusplus
}
#endif

#endif
