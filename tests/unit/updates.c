/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of Update of every instruction set, beside formulas in double precision: all optimizers, numbers of elements
 * with and without a rest, outputs over each of the inputs. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cpu/kernels.h"
#include "unit.h"

enum { MOST = 150, ARRAYS = 4, OUTPUTS = 3, SPLIT = 3 };

static const int lengths[] = {1, 2, 7, 16, 17, 63, MOST};

static const uint32_t states[OM_NUPDATES] = {[OM_MOMENTUM] = 1, [OM_NESTEROV] = 1, [OM_ADAM] = 2, [OM_ADAMW] = 2,
	[OM_RMSPROP] = 1, [OM_ADAGRAD] = 1, [OM_LAMB] = 2};

static const double momentum = 0.875, beta1 = 0.75, beta2 = 0.9375, epsilon = 0.03125;

static const double rate = 0.25, step = 0.5, root = 0.625, left = 0.5;

/* The direction by which one element is moved; the states are updated. */
static double
direction(enum om_update_kind kind, double decay, double w, double g, double *s)
{
	if (kind != OM_ADAMW && kind != OM_LAMB)
		g += decay * w;
	switch (kind) {
	case OM_MOMENTUM: case OM_NESTEROV:
		s[0] = momentum * s[0] + g;
		return rate * (kind == OM_MOMENTUM ? s[0] : g + momentum * s[0]);
	case OM_RMSPROP: case OM_ADAGRAD:
		s[0] = kind == OM_ADAGRAD ? s[0] + g * g : beta2 * s[0] + (1 - beta2) * g * g;
		return rate * g / (sqrt(s[0]) + epsilon);
	case OM_ADAM: case OM_ADAMW: case OM_LAMB: {
		s[0] = beta1 * s[0] + (1 - beta1) * g;
		s[1] = beta2 * s[1] + (1 - beta2) * g * g;
		const double below = sqrt(s[1]) / root + epsilon;
		if (kind == OM_LAMB)
			return s[0] / left / below + decay * w;
		return step * s[0] / below + (kind == OM_ADAMW ? rate * decay * w : 0);
	}
	default:
		return rate * g;
	}
}

struct problem {
	float in[ARRAYS][MOST];                 /* w, g, s1, s2 */
	double want[OUTPUTS][MOST];
	double of_w, of_u;
};

static void
solve(struct problem *p, enum om_update_kind kind, double decay, int n, uint64_t seed)
{
	double by[MOST];

	p->of_w = p->of_u = 0;
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < ARRAYS; k++)
			p->in[k][i] = (float)((double)om_rng_below(&seed, 2000) / 1000.0 - (k == 0 || k == 1 || (k == 2 && states[kind] == 2)));
		double s[2] = {p->in[2][i], p->in[3][i]};
		by[i] = direction(kind, decay, p->in[0][i], p->in[1][i], s);
		p->want[1][i] = s[0];
		p->want[2][i] = s[1];
		p->of_w += (double)p->in[0][i] * p->in[0][i];
		p->of_u += by[i] * by[i];
	}
	const double scale = kind != OM_LAMB ? 1 : rate * (p->of_w > 0 && p->of_u > 0 ? sqrt(p->of_w / p->of_u) : 1);
	for (int i = 0; i < n; i++)
		p->want[0][i] = p->in[0][i] - scale * by[i];
}

/* `over`: output k is stored over input (k + over) % ARRAYS; ARRAYS: elsewhere. */
static bool
agrees(const om_update_kernels *kernels, const struct problem *p, enum om_update_kind kind, double decay, int n, int over)
{
	float x[ARRAYS + OUTPUTS][MOST], *out[OUTPUTS];
	double of_w = 0, of_u = 0;
	bool same = true;

	memcpy(x, p->in, sizeof p->in);
	for (int k = 0; k < OUTPUTS; k++)
		out[k] = over == ARRAYS ? x[ARRAYS + k] : x[(k + over) % ARRAYS];
	om_update_args a = {.kind = kind, .w = x[0], .g = x[1], .s1 = states[kind] > 0 ? x[2] : NULL,
		.s2 = states[kind] > 1 ? x[3] : NULL, .w_next = out[0], .s1_next = states[kind] > 0 ? out[1] : NULL,
		.s2_next = states[kind] > 1 ? out[2] : NULL, .rate = (float)rate, .step = (float)step, .root = (float)root,
		.left = (float)left, .trust = 1, .momentum = (float)momentum, .beta1 = (float)beta1, .left1 = (float)(1 - beta1),
		.beta2 = (float)beta2, .left2 = (float)(1 - beta2), .epsilon = (float)epsilon, .decay = (float)decay};
	if (kind == OM_LAMB) {
		kernels->norms(&a, n, &of_w, &of_u);
		a.trust = of_w > 0 && of_u > 0 ? (float)sqrt(of_w / of_u) : 1;
		same = fabs(of_w - p->of_w) <= 1e-5 * (1 + p->of_w) && fabs(of_u - p->of_u) <= 1e-4 * (1 + p->of_u);
	}
	for (int k = 0; k < SPLIT; k++)
		kernels->update(&a, n * k / SPLIT, n * (k + 1) / SPLIT);
	for (uint32_t k = 0; k <= states[kind]; k++)
		for (int i = 0; i < n; i++)
			same &= fabs(out[k][i] - p->want[k][i]) <= 2e-5 * (1 + fabs(p->want[k][i]));
	return same;
}

static void
of_all(void)
{
	const om_kernels *k;

	for (unsigned isa = 0; (k = om_kernels_at(isa)); isa++)
		for (unsigned kind = 0; kind < OM_NUPDATES; kind++)
			for (int d = 0; d < 2; d++)
				for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
					struct problem p;
					bool good = true;
					solve(&p, (enum om_update_kind)kind, 0.125 * d, lengths[l], 100 * kind + l);
					for (int over = 0; over <= ARRAYS; over++)
						good &= agrees(k->update, &p, (enum om_update_kind)kind, 0.125 * d, lengths[l], over);
					if (!good)
						printf("# %s, optimizer %u, decay %d, %d elements\n", k->isa, kind, d, lengths[l]);
					CU_ASSERT(good);
				}
}

static CU_TestInfo tests[] = {
	{"all optimizers", of_all},
	CU_TEST_INFO_NULL,
};

UNIT_SUITE("updates", tests);
