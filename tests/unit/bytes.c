/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions of bytes beside plain loops: equal bit for bit. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "ops/nn/conv.h"
#include "tests/fixtures.h"
#include "unit.h"

/* The same numbers on every run. */
static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Bytes as they come, or the least and greatest alone: sums grow as far as they can. */
static void
fill(uint32_t *seed, bool is_signed, bool extreme, uint8_t *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = (uint8_t)(extreme ? (next(seed) % 8 ? 255 : 0) ^ (is_signed ? 0x80 : 0) : next(seed));
}

static om_tensor
bytes_new(uint32_t *seed, bool is_signed, bool extreme, int rank, const int64_t *dims)
{
	om_tensor t = {.type = is_signed ? OM_INT8 : OM_UINT8, .shape = om_shape_of(rank, dims)};
	const int64_t n = om_shape_count(&t.shape);

	t.data = malloc((size_t)n + 1);
	fill(seed, is_signed, extreme, t.data, n);
	return t;
}

/* ---- Products. ---- */

struct product {
	int64_t m, n, k;
	om_tensor a, b, a_zero, b_zero;     /* a zero point for each row, for each column */
	int32_t *out;
};

static void
left(const void *of, int64_t i, int64_t k0, int64_t k, float *to)
{
	const struct product *p = of;

	om_bytes_floats(&p->a, i * p->k + k0, k, om_byte_at(&p->a_zero, i), to);
}

static const float *
right(const void *of, int64_t k, int64_t n0, int64_t n, float *to)
{
	const struct product *p = of;

	om_bytes_floats(&p->b, k * p->n + n0, n, 0, to);
	for (int64_t j = 0; j < n; j++)
		to[j] -= (float)om_byte_at(&p->b_zero, n0 + j);
	return to;
}

static void
put(const void *of, int64_t i, int64_t j, int64_t n, const int32_t *sums)
{
	const struct product *p = of;

	memcpy(p->out + i * p->n + j, sums, (size_t)n * sizeof *sums);
}

static bool
is_product(const struct product *p)
{
	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++) {
			uint32_t sum = 0;
			for (int64_t k = 0; k < p->k; k++)
				sum += (uint32_t)((om_byte_at(&p->a, i * p->k + k) - om_byte_at(&p->a_zero, i))
					* (om_byte_at(&p->b, k * p->n + j) - om_byte_at(&p->b_zero, j)));
			if ((uint32_t)p->out[i * p->n + j] != sum)
				return false;
		}
	return true;
}

static void
try_product(uint32_t *seed, int64_t m, int64_t n, int64_t k, bool extreme)
{
	const bool left_signed = next(seed) % 2, right_signed = next(seed) % 2;
	struct product p = {.m = m, .n = n, .k = k};
	const uint64_t bytes = om_gemm_int8_workspace(m, n, k);
	unsigned char *room = malloc(bytes + 1);

	p.a = bytes_new(seed, left_signed, extreme, 2, (int64_t[]){m, k});
	p.b = bytes_new(seed, right_signed, extreme, 2, (int64_t[]){k, n});
	p.a_zero = bytes_new(seed, left_signed, extreme, 1, &m);
	p.b_zero = bytes_new(seed, right_signed, extreme, 1, &n);
	p.out = malloc((size_t)(m * n + 1) * sizeof *p.out);
	memset(room, 0xff, bytes + 1);
	om_gemm_int8(&(struct om_bytes){.m = m, .n = n, .k = k, .left = left, .right = right,
		.put = put, .of = &p}, room);
	CU_ASSERT(is_product(&p));
	CU_ASSERT_EQUAL(room[bytes], 0xff);
	free(room);
	free(p.out);
	free(p.a.data);
	free(p.b.data);
	free(p.a_zero.data);
	free(p.b_zero.data);
}

/* Sizes around those of blocks and pieces. */
static void
products_are_exact(void)
{
	static const int64_t k[] = {0, 1, 7, 255, 256, 257, 600}, m[] = {0, 1, 5, 64, 127, 129}, n[] = {0, 1, 33, 257};
	uint32_t seed = 1;

	for (int kk = 0; kk < 7; kk++)
		for (int mm = 0; mm < 6; mm++)
			for (int nn = 0; nn < 4; nn++)
				try_product(&seed, m[mm], n[nn], k[kk], (kk + mm + nn) % 2);
}

/* The largest sums of a piece, on every instruction set. */
static void
largest_sums_are_exact(void)
{
	enum { M = 7, N = 40 };
	const om_kernels *kernels;
	uint8_t most[OM_GEMM_K];
	float a[M * OM_GEMM_K], b[OM_GEMM_K * N], c[M * N];
	float *room = malloc(om_gemm_workspace(M, N, OM_GEMM_K));

	memset(most, 255, sizeof most);
	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		int32_t sums[M * N] = {0};
		for (int i = 0; i < M; i++)
			kernels->bytes(a + i * OM_GEMM_K, most, OM_GEMM_K, false, 0);
		for (int i = 0; i < OM_GEMM_K * N; i++)
			b[i] = i % N % 2 ? -255 : i < OM_GEMM_K * N - N ? 255 : 254;
		kernels->gemm(&(om_gemm){.m = M, .n = N, .k = OM_GEMM_K, .a = a, .a_row = OM_GEMM_K, .a_col = 1,
			.b = b, .b_row = N, .b_col = 1, .c = c, .c_row = N, .alpha = 1}, room);
		for (int i = 0; i < 200; i++)
			kernels->add_whole(sums, c, M * N);
		for (int i = 0; i < M * N; i++)
			CU_ASSERT_EQUAL((uint32_t)sums[i], 200 * (uint32_t)(i % N % 2 ? -255 * 255 * 256 : 255 * 255 * 256 - 255));
	}
	free(room);
}

/* ---- Convolutions: the product beside the plain way. ---- */

struct images {
	int32_t *out;
	int64_t volume;
};

static void
put_image(const void *of, int64_t i, int64_t at, int64_t n, const int32_t *sums)
{
	const struct images *p = of;

	memcpy(p->out + i * p->volume + at, sums, (size_t)n * sizeof *sums);
}

static struct om_conv
conv_of(uint32_t *seed)
{
	struct om_conv v = {.batch = 1 + next(seed) % 2, .group = 1 + next(seed) % 3, .kin = next(seed) % 40,
		.kout = 1 + next(seed) % 9};

	for (int k = 0; k < OM_WINDOW_AXES; k++) {
		struct om_window *w = &v.w;
		w->kernel[k] = 1 + next(seed) % 3;
		w->stride[k] = 1 + next(seed) % 2;
		w->dilation[k] = 1 + next(seed) % 2;
		w->begin[k] = next(seed) % 3;
		w->in[k] = 1 + next(seed) % (k ? 12 : 2);
		const int64_t room = w->in[k] + w->begin[k] + 2 - (w->kernel[k] - 1) * w->dilation[k] - 1;
		w->out[k] = room < 0 ? 1 : room / w->stride[k] + 1;
	}
	v.w.n = OM_WINDOW_AXES;
	v.cin = v.kin * v.group;
	v.cout = v.kout * v.group;
	return v;
}

static void
try_conv(uint32_t *seed, bool extreme)
{
	const struct om_conv v = conv_of(seed);
	const struct om_window *w = &v.w;
	const bool x_signed = next(seed) % 2, w_signed = next(seed) % 2;
	om_tensor x = bytes_new(seed, x_signed, extreme, 5, (int64_t[]){v.batch, v.cin, w->in[0], w->in[1], w->in[2]});
	om_tensor t = bytes_new(seed, w_signed, extreme, 5,
		(int64_t[]){v.cout, v.kin, w->kernel[0], w->kernel[1], w->kernel[2]});
	om_tensor x_zero = bytes_new(seed, x_signed, extreme, 0, NULL);
	om_tensor w_zero = bytes_new(seed, w_signed, extreme, 1, next(seed) % 2 ? &v.cout : (int64_t[]){1});
	const struct images out = {.volume = om_window_volume(w->out),
		.out = malloc((size_t)(v.batch * v.cout * om_window_volume(w->out)) * sizeof(int32_t))};
	int32_t *plain = malloc((size_t)out.volume * sizeof *plain);
	const struct om_byte_images p = {.x = &x, .w = &t, .x_zero = next(seed) % 4 ? &x_zero : NULL,
		.w_zero = next(seed) % 4 ? &w_zero : NULL, .put = put_image, .of = &out,
		.room = malloc(om_conv_int8_workspace(&v))};
	bool same = true;

	om_conv_int8(&v, &p);
	for (int64_t i = 0; i < v.batch * v.cout; i++) {
		om_conv_int8_channel(&v, &p, i, plain);
		same &= memcmp(plain, out.out + i * out.volume, (size_t)out.volume * sizeof *plain) == 0;
	}
	CU_ASSERT(same);
	free(p.room);
	free(plain);
	free(out.out);
	free(x.data);
	free(t.data);
	free(x_zero.data);
	free(w_zero.data);
}

static void
convolutions_are_exact(void)
{
	uint32_t seed = 2;

	for (int round = 0; round < 200; round++)
		try_conv(&seed, round % 2);
}

/* ---- MatMulInteger: batches and zero points of all shapes. ---- */

struct integers {
	int batch, m, n, k;
	int na, nb;                   /* matrices on each side */
	int nza, nzb;                 /* zero points: 1, one a row or column, or of every matrix */
};

static int32_t
zero_of(const om_tensor *t, int64_t per, int64_t matrix, int64_t i)
{
	const int64_t n = om_shape_count(&t->shape);

	return om_byte_at(t, n == 1 ? 0 : n == per ? i : matrix * per + i);
}

static bool
is_integers(const struct integers *d, const om_tensor in[4], const om_tensor *got)
{
	const int32_t *out = got->data;

	for (int64_t at = 0; at < (int64_t)d->batch * d->m * d->n; at++) {
		const int64_t q = at / d->n / d->m, i = at / d->n % d->m, j = at % d->n;
		const int32_t za = zero_of(&in[2], d->m, q, i), zb = zero_of(&in[3], d->n, q, j);
		uint32_t sum = 0;
		for (int64_t k = 0; k < d->k; k++)
			sum += (uint32_t)((om_byte_at(&in[0], ((d->na > 1 ? q : 0) * d->m + i) * d->k + k) - za)
				* (om_byte_at(&in[1], ((d->nb > 1 ? q : 0) * d->k + k) * d->n + j) - zb));
		if ((uint32_t)out[at] != sum)
			return false;
	}
	return true;
}

static void
try_integers(uint32_t *seed, const struct integers *d)
{
	static const char form[] = "program \"t\" ir 8 opset 17\n^main(%%a: int8[%d,%d,%d], %%b: uint8[%d,%d,%d], "
		"%%y: int8[%d,%d,1], %%z: uint8[%d,1,%d]) {\n\t%%c = MatMulInteger(%%a, %%b, %%y, %%z)\n\tret %%c\n}\n";
	const int ma = d->nza > d->m ? d->batch : 1, mb = d->nzb > d->n ? d->batch : 1;
	const int64_t dims[4][3] = {{d->na, d->m, d->k}, {d->nb, d->k, d->n}, {ma, d->nza / ma, 1}, {mb, 1, d->nzb / mb}};
	bench t = bench_open();
	om_tensor in[4];
	char text[512];
	bool good;

	snprintf(text, sizeof text, form, d->na, d->m, d->k, d->nb, d->k, d->n, ma, d->nza / ma, mb, d->nzb / mb);
	good = bench_plan(&t, text, "inline,shapes,fold") == OM_OK && bench_exec(&t, &ways[SEPARATE]) == OM_OK;
	for (uint32_t k = 0; k < 4; k++) {
		in[k] = bytes_new(seed, k % 2 == 0, next(seed) % 2, 3, dims[k]);
		good = good && om_exec_input(t.e, k, &in[k]) == OM_OK;
	}
	good = good && om_exec_run(t.e) == OM_OK && is_integers(d, in, om_exec_result(t.e, 0));
	CU_ASSERT(good);
	if (!good)
		printf("%s%s\n", text, om_message(t.s));
	bench_close(&t);
	for (int k = 0; k < 4; k++)
		free(in[k].data);
}

static void
integers_are_exact(void)
{
	static const struct integers all[] = {
		{1, 9, 33, 300, 1, 1, 1, 1}, {1, 9, 33, 300, 1, 1, 9, 33}, {3, 5, 7, 257, 3, 1, 1, 7},
		{3, 5, 7, 257, 3, 1, 5, 1}, {3, 5, 7, 257, 3, 1, 15, 7}, {3, 5, 7, 20, 3, 3, 15, 21},
		{3, 5, 7, 20, 1, 3, 5, 21}, {2, 3, 7, 20, 2, 2, 6, 14}, {3, 2, 7, 20, 3, 1, 6, 7},
		{1, 1, 300, 40, 1, 1, 1, 300}, {2, 140, 3, 0, 2, 1, 1, 1}, {2, 140, 3, 5, 2, 1, 280, 3},
	};
	uint32_t seed = 3;

	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
		for (int again = 0; again < 4; again++)
			try_integers(&seed, &all[k]);
}

static CU_TestInfo bytes_tests[] = {
	{"products are exact", products_are_exact},
	{"the largest sums are exact", largest_sums_are_exact},
	{"convolutions are exact", convolutions_are_exact},
	{"MatMulInteger is exact", integers_are_exact},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("bytes", bytes_tests);
