/* SPDX-License-Identifier: Apache-2.0 */
/* Linear models and support vector machines. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/numbers.h"
#include "ops/ml/ml_post_transform.h"

static double
dot(const om_tensor *x, int64_t at, const float *w, int64_t n)
{
	double sum = 0;

	for (int64_t k = 0; k < n; k++)
		sum += om_feature(x, at + k) * w[k];
	return sum;
}

static int64_t
largest(const double *s, int64_t n)
{
	int64_t at = 0;

	for (int64_t k = 1; k < n; k++)
		at = s[k] > s[at] ? k : at;
	return at;
}

static void
put_floats(const om_tensor *out, int64_t at, const double *s, int64_t n)
{
	for (int64_t k = 0; k < n && out->data; k++)
		((float *)out->data)[at + k] = (float)s[k];
}

static void
regressor_shape(om_op_context *c, int64_t rows, int64_t n)
{
	c->out[0].type = OM_FLOAT32;
	c->out[0].shape = om_shape_open(2);
	c->out[0].shape.dim[0] = rows;
	c->out[0].shape.dim[1] = n;
	if (c->in[0].shape.rank == 2)
		c->out[0].shape.sym[0] = c->in[0].shape.sym[0];
}

/* ---- Linear models. ---- */

/* `n` dot products, with `width` coefficients each. */
struct linear {
	const float *weight, *bias;
	int64_t n, width, rows;
	int64_t scores;               /* of a classifier, for each row */
	om_post post;
	om_labels labels;             /* of a classifier */
	double *score;                /* of a row, while it is computed */
};

static om_status
linear_of(const om_op_context *c, int64_t n, int64_t features, struct linear *l)
{
	size_t nweight, nbias;

	l->weight = om_attr_floats(c->op, "coefficients", &nweight);
	l->bias = om_attr_floats(c->op, "intercepts", &nbias);
	l->n = n;
	OM_TRY(om_post_of(c, &l->post));
	OM_TRY(om_check_features(c, 0));
	if (n <= 0 || nweight == 0 || nweight % (size_t)n)
		return om_wrong(c,
			"the number of coefficients is not a multiple of the number of targets or classes");
	if (nbias && nbias != (size_t)n)
		return om_wrong(c, "requires one intercept for each target or class");
	l->width = (int64_t)(nweight / (size_t)n);
	if (features >= 0 && features != l->width)
		return om_op_fail(c->session, OM_SHAPE, c->op, "has %lld coefficients for %lld features",
			(long long)l->width, (long long)features);
	return OM_OK;
}

static void
linear_scores(const om_op_context *c, const struct linear *l, int64_t row, double *s)
{
	for (int64_t k = 0; k < l->n; k++)
		s[k] = dot(&c->in[0], row * l->width, l->weight + k * l->width, l->width) + (l->bias ? l->bias[k] : 0);
}

static om_status
regress(const om_op_context *c, struct linear *l)
{
	int64_t features;

	OM_TRY(om_rows(c, 0, &l->rows, &features));
	return linear_of(c, om_attr_int(c->op, "targets"), features, l);
}

static om_status
regress_infer(om_op_context *c)
{
	struct linear l = {0};

	OM_TRY(regress(c, &l));
	regressor_shape(c, l.rows, l.n);
	return OM_OK;
}

static om_status
regress_prepare(om_op_context *c, void **state)
{
	struct linear *l = *state;

	OM_TRY(regress(c, l));
	l->score = OM_NEWN(c->mem, double, (size_t)l->n);
	return OM_OK;
}

static om_status
regress_cpu(om_op_context *c)
{
	const struct linear *l = c->state;

	for (int64_t row = 0; row < l->rows; row++) {
		linear_scores(c, l, row, l->score);
		om_post_row(l->post, l->score, l->n);
		put_floats(&c->out[0], row * l->n, l->score, l->n);
	}
	return OM_OK;
}

/* One score for two classes: the other class gets its complement to one. */
static om_status
classify(const om_op_context *c, struct linear *l)
{
	int64_t features;
	size_t n;

	OM_TRY(om_rows(c, 0, &l->rows, &features));
	OM_TRY(om_labels_of(c, "classlabels_ints", "classlabels_strings", &l->labels));
	om_attr_floats(c->op, "intercepts", &n);
	OM_TRY(linear_of(c, n ? (int64_t)n : l->labels.n, features, l));
	if (l->n > 1 && l->labels.n && l->labels.n != l->n)
		return om_wrong(c, "requires one label for each class");
	l->scores = l->n == 1 && l->labels.n == 2 ? 2 : l->n;
	return OM_OK;
}

static om_status
classify_infer(om_op_context *c)
{
	struct linear l = {0};

	OM_TRY(classify(c, &l));
	om_give_classes(c, &l.labels, l.rows, l.scores);
	return OM_OK;
}

static om_status
classify_prepare(om_op_context *c, void **state)
{
	struct linear *l = *state;

	OM_TRY(classify(c, l));
	l->score = OM_NEWN(c->mem, double, (size_t)l->scores);
	return OM_OK;
}

static om_status
classify_cpu(om_op_context *c)
{
	const struct linear *l = c->state;
	const int64_t n = l->scores;
	double *s = l->score;

	for (int64_t row = 0; row < l->rows; row++) {
		linear_scores(c, l, row, s);
		const int64_t best = l->n > 1 ? largest(s, l->n) : l->labels.n == 1 ? 0 : s[0] > 0;
		if (n > l->n) {
			if (l->post == OM_POST_PROBIT)
				s[0] = om_probit(s[0]);
			s[1] = s[0];
			s[0] = 1 - s[1];
		} else {
			om_post_row(l->post, s, n);
		}
		om_label_put(&l->labels, best, &c->out[0], row);
		put_floats(&c->out[1], row * n, s, n);
	}
	return OM_OK;
}

static void
linear_cost(const om_op_context *c, om_cost *cost)
{
	size_t n;

	om_attr_floats(c->op, "coefficients", &n);
	om_opdef_cost(c, 2.0 * (double)n, cost);
}

/* ---- Support vector machines. ---- */

/* Intermediate results of a row. */
struct room {
	double *kernel, *score, *vote, *pair, *q, *qp, *prob;
};

typedef enum svm_kernel { LINEAR, POLY, RBF, SIGMOID } svm_kernel;

struct svm {
	svm_kernel kernel;
	double gamma, coef0, degree;
	const float *vector, *coef, *rho, *prob_a, *prob_b;
	const int64_t *each;          /* number of vectors of a class */
	int64_t nvector, nclass, width, npair, rows;
	int64_t one_class;            /* of a regressor */
	int64_t scores;               /* of a classifier, for each row */
	size_t ncoef, nrho, nprob;
	om_post post;
	om_labels labels;
	struct room room;             /* of a classifier */
};

static om_status
svm_read(const om_op_context *c, struct svm *m)
{
	static const char *const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
	size_t n, k = 0;
	const float *param = om_attr_floats(c->op, "kernel_params", &n);

	*m = (struct svm){.gamma = n > 0 ? param[0] : 0, .coef0 = n > 1 ? param[1] : 0, .degree = n > 2 ? param[2] : 0};
	while (k < 4 && !om_attr_is(c->op, "kernel_type", kernels[k]))
		k++;
	if (k == 4)
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown kernel_type");
	m->kernel = (svm_kernel)k;
	m->coef = om_attr_floats(c->op, "coefficients", &m->ncoef);
	m->rho = om_attr_floats(c->op, "rho", &m->nrho);
	OM_TRY(om_check_features(c, 0));
	if (m->ncoef == 0 || m->nrho == 0)
		return om_wrong(c, "has no coefficients or no rho");
	return om_post_of(c, &m->post);
}

/* Vectors have as many elements as there are features. */
static om_status
svm_width(const om_op_context *c, struct svm *m, size_t nfloat, int64_t features)
{
	if (m->nvector <= 0 || nfloat % (size_t)m->nvector || nfloat == 0)
		return om_wrong(c, "the support vectors differ in length");
	m->width = (int64_t)(nfloat / (size_t)m->nvector);
	if (features >= 0 && features != m->width)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the support vectors have length %lld for %lld features", (long long)m->width,
			(long long)features);
	return OM_OK;
}

static double
kernel_of(const om_op_context *c, const struct svm *m, svm_kernel kind, int64_t row, const float *v)
{
	double sum = 0;

	if (kind != RBF) {
		sum = dot(&c->in[0], row * m->width, v, m->width);
		return kind == LINEAR ? sum : kind == POLY ? pow(m->gamma * sum + m->coef0, m->degree)
			: tanh(m->gamma * sum + m->coef0);
	}
	for (int64_t k = 0; k < m->width; k++) {
		const double d = om_feature(&c->in[0], row * m->width + k) - v[k];
		sum += d * d;
	}
	return exp(-m->gamma * sum);
}

/* Without support vectors: a linear model with one list of coefficients. */
static om_status
svr_of(const om_op_context *c, struct svm *m)
{
	size_t nvector;
	int64_t features;

	OM_TRY(svm_read(c, m));
	OM_TRY(om_rows(c, 0, &m->rows, &features));
	m->one_class = om_attr_int(c->op, "one_class");
	m->vector = om_attr_floats(c->op, "support_vectors", &nvector);
	m->nvector = om_attr_int(c->op, "n_supports");
	if (m->nvector > 0) {
		if (m->ncoef < (size_t)m->nvector)
			return om_wrong(c, "has fewer coefficients than support vectors");
		return svm_width(c, m, nvector, features);
	}
	m->nvector = 1;
	m->vector = m->coef;
	m->coef = NULL;
	m->kernel = LINEAR;
	return svm_width(c, m, m->ncoef, features);
}

static om_status
svr_infer(om_op_context *c)
{
	struct svm m;

	OM_TRY(svr_of(c, &m));
	regressor_shape(c, m.rows, 1);
	return OM_OK;
}

static om_status
svr_prepare(om_op_context *c, void **state)
{
	return svr_of(c, *state);
}

static om_status
svr_cpu(om_op_context *c)
{
	const struct svm *m = c->state;

	for (int64_t row = 0; row < m->rows; row++) {
		double s = m->rho[0];
		for (int64_t k = 0; k < m->nvector; k++)
			s += kernel_of(c, m, m->kernel, row, m->vector + k * m->width) * (m->coef ? m->coef[k] : 1);
		if (m->one_class)
			s = s > 0 ? 1 : -1;
		else if (m->post == OM_POST_PROBIT)
			s = om_probit(s);
		put_floats(&c->out[0], row, &s, 1);
	}
	return OM_OK;
}

/* ---- The classifier: one machine per pair of classes. ---- */

static om_status
svc_pairs(const om_op_context *c, struct svm *m, int64_t features)
{
	size_t nvector, nb;

	m->npair = m->nclass * (m->nclass - 1) / 2;
	m->vector = om_attr_floats(c->op, "support_vectors", &nvector);
	m->prob_a = om_attr_floats(c->op, "prob_a", &m->nprob);
	m->prob_b = om_attr_floats(c->op, "prob_b", &nb);
	if (m->nrho < (size_t)m->npair || m->ncoef / (size_t)(m->nclass - 1) < (size_t)m->nvector)
		return om_wrong(c, "has too few coefficients or too few rho");
	if (m->nprob && (m->nprob < (size_t)m->npair || nb != m->nprob))
		return om_wrong(c, "prob_a and prob_b do not match the number of classes");
	return svm_width(c, m, nvector, features);
}

static om_status
svc_of(const om_op_context *c, struct svm *m)
{
	size_t n;
	int64_t features;

	OM_TRY(svm_read(c, m));
	OM_TRY(om_rows(c, 0, &m->rows, &features));
	OM_TRY(om_labels_of(c, "classlabels_ints", "classlabels_strings", &m->labels));
	m->each = om_attr_ints(c->op, "vectors_per_class", &n);
	m->nclass = m->labels.n > 0 ? m->labels.n : 1;
	for (size_t k = 0; k < n; k++)
		if (m->each[k] < 0 || __builtin_add_overflow(m->nvector, m->each[k], &m->nvector))
			return om_wrong(c, "a class has a negative number of support vectors");
	if (m->nvector > 0) {
		if (n != (size_t)m->nclass || m->nclass < 2 || m->nclass > 1 << 15)
			return om_wrong(c, "vectors_per_class must have one element for each class");
		OM_TRY(svc_pairs(c, m, features));
		m->scores = m->nprob ? m->nclass : m->npair == 1 ? 2 : m->npair;
		return OM_OK;
	}
	m->vector = m->coef;
	m->nvector = m->nclass;
	m->kernel = LINEAR;
	m->scores = m->nclass;
	return svm_width(c, m, m->ncoef, features);
}

static om_status
svc_infer(om_op_context *c)
{
	struct svm m;

	OM_TRY(svc_of(c, &m));
	om_give_classes(c, &m.labels, m.rows, m.scores);
	return OM_OK;
}

/* Scores of all pairs from the kernels of all vectors, and the number of wins of each class. */
static void
svc_vote(const struct svm *m, const double *kernel, double *s, double *vote)
{
	int64_t from_i = 0, pair = 0;

	memset(vote, 0, (size_t)m->nclass * sizeof *vote);
	for (int64_t i = 0; i < m->nclass; from_i += m->each[i++]) {
		int64_t from_j = from_i + m->each[i];
		for (int64_t j = i + 1; j < m->nclass; from_j += m->each[j++], pair++) {
			double sum = m->rho[pair];
			for (int64_t k = 0; k < m->each[i]; k++)
				sum += (double)m->coef[(j - 1) * m->nvector + from_i + k] * kernel[from_i + k];
			for (int64_t k = 0; k < m->each[j]; k++)
				sum += (double)m->coef[i * m->nvector + from_j + k] * kernel[from_j + k];
			s[pair] = sum;
			vote[sum > 0 ? i : j]++;
		}
	}
}

/* Class probabilities from pairwise probabilities (Wu, Lin and Weng, 2004): `r` is [n, n], the n
 * best-fitting ones are written to `p`.  Bounded by the number of iterations that the authors
 * allow. */
static void
couple(const double *r, int64_t n, double *q, double *qp, double *p)
{
	const int64_t iterations = n > 100 ? n : 100;

	for (int64_t t = 0; t < n; t++) {
		p[t] = 1.0 / (double)n;
		q[t * n + t] = 0;
		for (int64_t j = 0; j < n; j++)
			if (j != t) {
				q[t * n + t] += r[j * n + t] * r[j * n + t];
				q[t * n + j] = -r[j * n + t] * r[t * n + j];
			}
	}
	for (int64_t iteration = 0; iteration < iterations; iteration++) {
		double pqp = 0, error = 0;
		for (int64_t t = 0; t < n; t++) {
			qp[t] = 0;
			for (int64_t j = 0; j < n; j++)
				qp[t] += q[t * n + j] * p[j];
			pqp += p[t] * qp[t];
		}
		for (int64_t t = 0; t < n; t++)
			error = fmax(error, fabs(qp[t] - pqp));
		if (error < 0.005 / (double)n)
			break;
		for (int64_t t = 0; t < n; t++) {
			const double d = (pqp - qp[t]) / q[t * n + t];
			p[t] += d;
			pqp = (pqp + d * (d * q[t * n + t] + 2 * qp[t])) / ((1 + d) * (1 + d));
			for (int64_t j = 0; j < n; j++) {
				qp[j] = (qp[j] + d * q[t * n + j]) / (1 + d);
				p[j] /= 1 + d;
			}
		}
	}
}

static struct room
svc_room(const om_op_context *c, const struct svm *m)
{
	const size_t n = (size_t)m->nclass, pairs = (size_t)m->npair + 2;
	const size_t square = m->nprob ? n * n : 0;

	return (struct room){OM_NEWN(c->mem, double, (size_t)m->nvector), OM_NEWN(c->mem, double, pairs > n ? pairs : n),
		OM_NEWN(c->mem, double, n), OM_NEWN(c->mem, double, square), OM_NEWN(c->mem, double, square),
		OM_NEWN(c->mem, double, n), OM_NEWN(c->mem, double, n)};
}

static void
svc_probabilities(const struct svm *m, const struct room *r)
{
	const int64_t n = m->nclass;
	int64_t pair = 0;

	for (int64_t i = 0; i < n; i++)
		for (int64_t j = i + 1; j < n; j++, pair++) {
			const double p = 1 - om_logistic(r->score[pair] * m->prob_a[pair] + m->prob_b[pair]);
			r->pair[i * n + j] = fmin(fmax(p, 1e-7), 1 - 1e-7);
			r->pair[j * n + i] = 1 - r->pair[i * n + j];
		}
	couple(r->pair, n, r->q, r->qp, r->prob);
	memcpy(r->score, r->prob, (size_t)n * sizeof *r->score);
}

static om_status
svc_prepare(om_op_context *c, void **state)
{
	struct svm *m = *state;

	OM_TRY(svc_of(c, m));
	m->room = svc_room(c, m);
	return OM_OK;
}

static om_status
svc_cpu(om_op_context *c)
{
	const struct svm *m = c->state;
	const struct room r = m->room;
	const int64_t n = m->scores;

	for (int64_t row = 0; row < m->rows; row++) {
		int64_t best;
		for (int64_t k = 0; k < m->nvector; k++)
			r.kernel[k] = kernel_of(c, m, m->kernel, row, m->vector + k * m->width);
		if (m->each && m->npair) {
			svc_vote(m, r.kernel, r.score, r.vote);
			best = largest(r.vote, m->nclass);
			if (m->nprob)
				svc_probabilities(m, &r);
			else if (m->npair == 1) {
				r.score[1] = r.score[0];
				r.score[0] = -r.score[1];
			}
		} else {
			for (int64_t k = 0; k < m->nclass; k++)
				r.score[k] = r.kernel[k] + m->rho[0];
			best = m->nclass > 1 ? largest(r.score, m->nclass) : r.score[0] > 0;
		}
		om_post_row(m->post, r.score, n);
		om_label_put(&m->labels, best, &c->out[0], row);
		put_floats(&c->out[1], row * n, r.score, n);
	}
	return OM_OK;
}

static void
svm_cost(const om_op_context *c, om_cost *cost)
{
	size_t n;

	om_attr_floats(c->op, "support_vectors", &n);
	om_opdef_cost(c, 2.0 * (double)n, cost);
}

/* ---- The table. ---- */

#define POST {"post_transform", OM_ATTR_STRING, .s = "NONE"}
#define SVM                                                                    \
	{"coefficients", OM_ATTR_FLOATS},                                      \
	{"kernel_params", OM_ATTR_FLOATS},                                     \
	{"kernel_type", OM_ATTR_STRING, .s = "LINEAR"},                        \
	{"rho", OM_ATTR_FLOATS},                                               \
	{"support_vectors", OM_ATTR_FLOATS}

static const om_attr_spec regress_attrs[] = {
	{"coefficients", OM_ATTR_FLOATS},
	{"intercepts", OM_ATTR_FLOATS},
	POST,
	{"targets", OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec classify_attrs[] = {
	{"classlabels_ints", OM_ATTR_INTS},
	{"classlabels_strings", OM_ATTR_STRINGS},
	{"coefficients", OM_ATTR_FLOATS, .required = true},
	{"intercepts", OM_ATTR_FLOATS},
	{"multi_class", OM_ATTR_INT},
	POST,
	{0}
};

static const om_attr_spec svr_attrs[] = {
	SVM,
	POST,
	{"n_supports", OM_ATTR_INT},
	{"one_class", OM_ATTR_INT},
	{0}
};

static const om_attr_spec svc_attrs[] = {
	SVM,
	POST,
	{"classlabels_ints", OM_ATTR_INTS},
	{"classlabels_strings", OM_ATTR_STRINGS},
	{"prob_a", OM_ATTR_FLOATS},
	{"prob_b", OM_ATTR_FLOATS},
	{"vectors_per_class", OM_ATTR_INTS},
	{0}
};

#define ML .domain = "ai.onnx.ml", .since = 1, .min_in = 1, .max_in = 1

const om_opdef om_ops_ml_linear[] = {
	{ML, .name = "LinearRegressor", .brief = "linear regressor", .min_out = 1, .max_out = 1,
	 .attrs = regress_attrs,
	 .infer = regress_infer, .slice = om_slice_rows, .cpu = regress_cpu, .cost = linear_cost,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{ML, .name = "LinearClassifier", .brief = "linear classifier", .min_out = 2,
	 .max_out = 2, .attrs = classify_attrs, .infer = classify_infer, .slice = om_slice_rows, .cpu = classify_cpu, .cost = linear_cost,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{ML, .name = "SVMRegressor", .brief = "support vector regressor", .min_out = 1, .max_out = 1,
	 .attrs = svr_attrs, .infer = svr_infer, .slice = om_slice_rows, .cpu = svr_cpu, .cost = svm_cost,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{ML, .name = "SVMClassifier", .brief = "support vector classifier", .min_out = 2, .max_out = 2,
	 .attrs = svc_attrs, .infer = svc_infer, .slice = om_slice_rows, .cpu = svc_cpu, .cost = svm_cost,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{0}
};

#undef ML
#define ML(type, called, label)                                                \
	{.domain = "ai.onnx.ml", .name = label, .state_bytes = sizeof(struct type), \
	 .prepare = called##_prepare, .run = called##_cpu}

const om_kernel om_kernels_ml_linear[] = {
	ML(linear, regress, "LinearRegressor"),
	ML(linear, classify, "LinearClassifier"),
	ML(svm, svr, "SVMRegressor"),
	ML(svm, svc, "SVMClassifier"),
	{0}
};
