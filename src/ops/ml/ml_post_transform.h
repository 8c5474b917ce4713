/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the classifiers and regressors of ai.onnx.ml: rows of features, class labels,
 * transformations of scores. */
#ifndef OM_ML_POST_TRANSFORM_H
#define OM_ML_POST_TRANSFORM_H

#include "onnxmem/opdef.h"

typedef enum om_post { OM_POST_NONE, OM_POST_SOFTMAX, OM_POST_LOGISTIC, OM_POST_SOFTMAX_ZERO, OM_POST_PROBIT } om_post;

/* Read the attribute post_transform. */
om_status om_post_of(const om_op_context *c, om_post *post);
/* Transform a row of scores. */
void om_post_row(om_post post, double *score, int64_t n);
double om_logistic(double x);
double om_probit(double x);

/* A matrix of features; a list is one row.  -1: not known. */
om_status om_rows(const om_op_context *c, uint32_t k, int64_t *rows, int64_t *features);
/* Element `i` of a numeric tensor. */
double om_feature(const om_tensor *t, int64_t i);
/* Refuse elements that are not numeric. */
om_status om_check_features(const om_op_context *c, uint32_t k);

/* Class labels: strings or int64; n == 0 if there are none. */
typedef struct om_labels {
	om_dtype type;
	int64_t n;
	const int64_t *i;
	const om_string *s;
} om_labels;

om_status om_labels_of(const om_op_context *c, const char *ints, const char *strings, om_labels *l);
void om_label_put(const om_labels *l, int64_t k, const om_tensor *out, int64_t at);

/* Strings of an attribute. */
const om_string *om_attr_texts(const om_op *op, const char *name, size_t *n);

/* Outputs of a classifier: labels [rows], scores [rows, n]. */
void om_give_classes(om_op_context *c, const om_labels *l, int64_t rows, int64_t n);

/* The cost of `each` multiplications per row. */
void om_opdef_cost(const om_op_context *c, double each, om_cost *cost);

#endif
