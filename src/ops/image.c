/* ImageDecoder: files of images as pixels.
 *
 * What is written without loss and without a library's worth of code is read: BMP,
 * PNM, PNG (inflated as RFC 1951 says).  JPEG, JPEG 2000, TIFF and WebP are
 * refused with a sentence.  Every read is bounded by what the file has, every
 * size by what its header may ask for. */
#include <config.h>

#include "ops/copy.h"
#include "ops/family.h"

enum { MOST_PIXELS = 1 << 28 };

struct file {
	const om_call *c;
	const uint8_t *data;
	size_t n;
};

/* Red, green, blue, row by row from the top. */
struct image {
	size_t w, h;
	uint8_t *rgb;
};

static om_status
bad(const struct file *f, const char *what)
{
	return om_op_fail(f->c->session, OM_RUN, f->c->op, "%s", what);
}

static om_status
unsupported(const struct file *f, const char *what)
{
	return om_op_fail(f->c->session, OM_UNSUPPORTED, f->c->op, "%s cannot be read", what);
}

/* Little-endian; what lies behind the end is zero. */
static uint32_t
little(const struct file *f, size_t at, int bytes)
{
	uint32_t v = 0;

	for (int k = bytes; k-- > 0;)
		v = v << 8 | (at + (size_t)k < f->n ? f->data[at + (size_t)k] : 0);
	return v;
}

static uint32_t
big(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static om_status
new_image(const struct file *f, struct image *i, uint64_t w, uint64_t h)
{
	if (w == 0 || h == 0 || w > MOST_PIXELS || h > MOST_PIXELS || w * h > MOST_PIXELS)
		return bad(f, "the image has no size, or is too large");
	i->w = (size_t)w;
	i->h = (size_t)h;
	i->rgb = om_alloc_try(f->c->mem, i->w * i->h * 3);
	return i->rgb ? OM_OK : om_op_fail(f->c->session, OM_MEMORY, f->c->op, "there is no memory for the image");
}

/* ---- BMP. ---- */

static om_status
read_bmp(const struct file *f, struct image *i)
{
	const size_t start = little(f, 10, 4), palette = 14 + little(f, 14, 4), bits = little(f, 28, 2);
	const int32_t w = (int32_t)little(f, 18, 4), h = (int32_t)little(f, 22, 4);
	const bool from_top = h < 0;

	if (little(f, 30, 4) != 0 || (bits != 8 && bits != 24 && bits != 32))
		return unsupported(f, "a BMP file that is compressed, or of few colours,");
	OM_TRY(new_image(f, i, w > 0 ? (uint64_t)w : 0, from_top ? (uint64_t)-(int64_t)h : (uint64_t)h));
	const size_t row = (i->w * bits + 31) / 32 * 4;
	if (start > f->n || (f->n - start) / row < i->h)
		return bad(f, "the BMP file is cut");
	for (size_t y = 0; y < i->h; y++)
		for (size_t x = 0; x < i->w; x++) {
			const uint8_t *line = f->data + start + (from_top ? y : i->h - 1 - y) * row;
			uint32_t bgr;
			if (bits == 8)
				bgr = little(f, palette + 4 * (size_t)line[x], 3);
			else
				bgr = line[x * bits / 8] | (uint32_t)line[x * bits / 8 + 1] << 8 | (uint32_t)line[x * bits / 8 + 2] << 16;
			uint8_t *to = i->rgb + (y * i->w + x) * 3;
			to[0] = (uint8_t)(bgr >> 16);
			to[1] = (uint8_t)(bgr >> 8);
			to[2] = (uint8_t)bgr;
		}
	return OM_OK;
}

/* ---- PNM. ---- */

/* A number of the header, behind blanks and comments. */
static bool
number(const struct file *f, size_t *at, uint64_t *v)
{
	for (;; ++*at) {
		if (*at < f->n && f->data[*at] == '#')
			while (*at < f->n && f->data[*at] != '\n')
				++*at;
		if (*at >= f->n || !strchr(" \t\r\n", f->data[*at]) || f->data[*at] == 0)
			break;
	}
	const size_t start = *at;
	for (*v = 0; *at < f->n && f->data[*at] >= '0' && f->data[*at] <= '9' && *v <= MOST_PIXELS; ++*at)
		*v = 10 * *v + (uint64_t)(f->data[*at] - '0');
	return *at > start;
}

static om_status
read_pnm(const struct file *f, struct image *i)
{
	const size_t channels = f->data[1] == '6' ? 3 : 1;
	uint64_t w, h, most;
	size_t at = 2;

	if (!number(f, &at, &w) || !number(f, &at, &h) || !number(f, &at, &most))
		return bad(f, "the header of the PNM file is damaged");
	if (most != 255)
		return unsupported(f, "a PNM file of other than 8 bits");
	OM_TRY(new_image(f, i, w, h));
	at++;
	if (at > f->n || f->n - at < i->w * i->h * channels)
		return bad(f, "the PNM file is cut");
	for (size_t k = 0; k < i->w * i->h * 3; k++)
		i->rgb[k] = f->data[at + (channels == 3 ? k : k / 3)];
	return OM_OK;
}

/* ---- Inflating. ---- */

enum { MOST_BITS = 15, MOST_CODES = 288 };

struct bits {
	const uint8_t *in;
	size_t n, at;
	uint32_t held, count;
	uint8_t *out;
	size_t cap, done;
	bool failed;             /* the input ended, or the output is full */
};

static uint32_t
take(struct bits *b, uint32_t n)
{
	while (b->count < n) {
		b->failed |= b->at >= b->n;
		b->held |= (uint32_t)(b->at < b->n ? b->in[b->at] : 0) << b->count;
		b->at++;
		b->count += 8;
	}
	const uint32_t v = b->held & ((UINT32_C(1) << n) - 1);
	b->held >>= n;
	b->count -= n;
	return v;
}

static void
put(struct bits *b, uint8_t byte)
{
	if (b->done < b->cap)
		b->out[b->done++] = byte;
	else
		b->failed = true;
}

/* Codes of each length are numbers in a row, as are the symbols they stand for. */
struct huffman {
	uint16_t count[MOST_BITS + 1], symbol[MOST_CODES];
};

static void
huffman_new(struct huffman *h, const uint8_t *length, int n)
{
	uint16_t at[MOST_BITS + 2] = {0};

	memset(h->count, 0, sizeof h->count);
	for (int k = 0; k < n; k++)
		h->count[length[k]]++;
	h->count[0] = 0;
	for (int k = 1; k <= MOST_BITS; k++)
		at[k + 1] = (uint16_t)(at[k] + h->count[k]);
	for (int k = 0; k < n; k++)
		if (length[k])
			h->symbol[at[length[k]]++] = (uint16_t)k;
}

static int
symbol(struct bits *b, const struct huffman *h)
{
	int code = 0, first = 0, at = 0;

	for (int length = 1; length <= MOST_BITS; length++) {
		code |= (int)take(b, 1);
		const int count = h->count[length];
		if (code - first < count)
			return h->symbol[at + code - first];
		at += count;
		first = (first + count) << 1;
		code <<= 1;
	}
	b->failed = true;
	return 256;
}

static void
copy_back(struct bits *b, size_t length, size_t distance)
{
	if (distance > b->done) {
		b->failed = true;
		return;
	}
	for (; length && !b->failed; length--)
		put(b, b->out[b->done - distance]);
}

static void
inflate_codes(struct bits *b, const struct huffman *text, const struct huffman *far)
{
	static const uint16_t length[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67,
		83, 99, 115, 131, 163, 195, 227, 258};
	static const uint8_t more[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

	while (!b->failed) {
		const int s = symbol(b, text);
		if (s == 256)
			return;
		if (s < 256) {
			put(b, (uint8_t)s);
			continue;
		}
		if (s > 285) {
			b->failed = true;
			return;
		}
		const size_t n = (size_t)length[s - 257] + take(b, more[s - 257]);
		const int d = symbol(b, far);
		if (d > 29) {
			b->failed = true;
			return;
		}
		const uint32_t extra = d < 4 ? 0 : (uint32_t)(d / 2 - 1);
		const size_t base = d < 4 ? (size_t)d + 1 : ((size_t)(2 + d % 2) << extra) + 1;
		copy_back(b, n, base + take(b, extra));
	}
}

static void
inflate_fixed(struct bits *b)
{
	struct huffman text, far;
	uint8_t length[MOST_CODES];

	for (int k = 0; k < MOST_CODES; k++)
		length[k] = k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8;
	huffman_new(&text, length, MOST_CODES);
	memset(length, 5, 30);
	huffman_new(&far, length, 30);
	inflate_codes(b, &text, &far);
}

/* The lengths of codes are themselves coded. */
static void
inflate_dynamic(struct bits *b)
{
	static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
	const int ntext = 257 + (int)take(b, 5), nfar = 1 + (int)take(b, 5), ncode = 4 + (int)take(b, 4);
	struct huffman lengths, text, far;
	uint8_t length[MOST_CODES + 32] = {0};
	int n = 0;

	for (int k = 0; k < ncode; k++)
		length[order[k]] = (uint8_t)take(b, 3);
	huffman_new(&lengths, length, 19);
	memset(length, 0, sizeof length);
	if (ntext > MOST_CODES - 2)
		b->failed = true;
	while (n < ntext + nfar && !b->failed) {
		const int s = symbol(b, &lengths);
		const uint8_t again = s == 16 && n ? length[n - 1] : 0;
		int times = s < 16 ? 1 : s == 16 ? 3 + (int)take(b, 2) : s == 17 ? 3 + (int)take(b, 3) : 11 + (int)take(b, 7);
		if (s > 18 || n + times > ntext + nfar) {
			b->failed = true;
			return;
		}
		for (; times; times--)
			length[n++] = s < 16 ? (uint8_t)s : again;
	}
	if (b->failed)
		return;
	huffman_new(&text, length, ntext);
	huffman_new(&far, length + ntext, nfar);
	inflate_codes(b, &text, &far);
}

static void
inflate_stored(struct bits *b)
{
	b->held = b->count = 0;
	if (b->n - b->at < 4) {
		b->failed = true;
		return;
	}
	size_t n = b->in[b->at] | (size_t)b->in[b->at + 1] << 8;
	for (b->at += 4; n && !b->failed; n--) {
		b->failed |= b->at >= b->n;
		put(b, b->at < b->n ? b->in[b->at] : 0);
		b->at++;
	}
}

/* A zlib stream; false when it is damaged or gives other than `cap` bytes. */
static bool
inflate_all(struct bits *b)
{
	bool last = false;

	b->at = 2;
	while (!last && !b->failed && b->at <= b->n) {
		last = take(b, 1);
		switch (take(b, 2)) {
		case 0: inflate_stored(b); break;
		case 1: inflate_fixed(b); break;
		case 2: inflate_dynamic(b); break;
		default: b->failed = true;
		}
	}
	return last && !b->failed && b->done == b->cap;
}

/* ---- PNG. ---- */

struct png {
	uint64_t w, h;
	int kind;                /* 0 grey, 2 colours, 3 palette, 4 and 6 with alpha */
	const uint8_t *palette;
	size_t npalette, nzip;
	uint8_t *zip;
};

static om_status
read_chunks(const struct file *f, struct png *p)
{
	p->zip = om_alloc(f->c->mem, f->n);
	for (size_t at = 8; f->n - at >= 12;) {
		const size_t n = big(f->data + at);
		const uint8_t *kind = f->data + at + 4, *data = kind + 4;
		if (n > f->n - at - 12)
			return bad(f, "the PNG file is cut");
		if (memcmp(kind, "IHDR", 4) == 0 && n >= 13) {
			p->w = big(data);
			p->h = big(data + 4);
			p->kind = data[9];
			if (data[8] != 8 || data[12] != 0)
				return unsupported(f, "a PNG file of other than 8 bits, or interlaced,");
		} else if (memcmp(kind, "PLTE", 4) == 0) {
			p->palette = data;
			p->npalette = n / 3;
		} else if (memcmp(kind, "IDAT", 4) == 0 && n) {
			memcpy(p->zip + p->nzip, data, n);
			p->nzip += n;
		}
		at += n + 12;
	}
	return OM_OK;
}

static uint8_t
paeth(int a, int b, int c)
{
	const int pa = b > c ? b - c : c - b, pb = a > c ? a - c : c - a;
	const int pc = a + b > 2 * c ? a + b - 2 * c : 2 * c - a - b;

	return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* A row, of which each byte is a difference; `up` is the row above. */
static bool
undo_filter(uint8_t *row, const uint8_t *up, size_t n, size_t step, int filter)
{
	for (size_t k = 0; k < n; k++) {
		const int a = k >= step ? row[k - step] : 0, b = up ? up[k] : 0, c = up && k >= step ? up[k - step] : 0;
		switch (filter) {
		case 0: break;
		case 1: row[k] = (uint8_t)(row[k] + a); break;
		case 2: row[k] = (uint8_t)(row[k] + b); break;
		case 3: row[k] = (uint8_t)(row[k] + (a + b) / 2); break;
		case 4: row[k] = (uint8_t)(row[k] + paeth(a, b, c)); break;
		default: return false;
		}
	}
	return true;
}

static om_status
read_png(const struct file *f, struct image *i)
{
	static const uint8_t step_of[] = {1, 0, 3, 1, 2, 0, 4};
	struct png p = {.kind = -1};

	OM_TRY(read_chunks(f, &p));
	if (p.kind < 0 || p.kind > 6 || step_of[p.kind] == 0 || (p.kind == 3 && p.npalette == 0))
		return bad(f, "the header of the PNG file is damaged");
	OM_TRY(new_image(f, i, p.w, p.h));
	const size_t step = step_of[p.kind], row = i->w * step;
	struct bits b = {.in = p.zip, .n = p.nzip, .cap = (row + 1) * i->h};
	b.out = om_alloc_try(f->c->mem, b.cap);
	if (!b.out || p.nzip < 2 || !inflate_all(&b))
		return bad(f, "the pixels of the PNG file are damaged");
	for (size_t y = 0; y < i->h; y++) {
		uint8_t *line = b.out + y * (row + 1) + 1;
		if (!undo_filter(line, y ? line - row - 1 : NULL, row, step, line[-1]))
			return bad(f, "a filter of the PNG file is not known");
		for (size_t x = 0; x < i->w; x++) {
			const uint8_t *from = line + x * step;
			if (p.kind == 3)
				from = p.palette + 3 * (*from < p.npalette ? *from : 0);
			const bool grey = p.kind == 0 || p.kind == 4;
			for (size_t k = 0; k < 3; k++)
				i->rgb[(y * i->w + x) * 3 + k] = from[grey ? 0 : k];
		}
	}
	return OM_OK;
}

/* ---- ImageDecoder. ---- */

static om_status
read_image(const struct file *f, struct image *i)
{
	if (f->n > 30 && memcmp(f->data, "BM", 2) == 0)
		return read_bmp(f, i);
	if (f->n > 8 && f->data[0] == 'P' && (f->data[1] == '5' || f->data[1] == '6'))
		return read_pnm(f, i);
	if (f->n > 8 && memcmp(f->data, "\x89PNG\r\n\x1a\n", 8) == 0)
		return read_png(f, i);
	return unsupported(f, "an image that is no BMP, PNM or PNG file");
}

static bool
is_grey(const om_call *c)
{
	return om_attr_is(c->op, "pixel_format", "Grayscale");
}

static om_status
decode_infer(om_call *c)
{
	if (c->in[0].type != OM_UINT8 && c->in[0].type != OM_UNDEFINED)
		return om_op_fail(c->session, OM_SHAPE, c->op, "its input is %s, not uint8", om_dtype_text(c->in[0].type));
	if (!is_grey(c) && !om_attr_is(c->op, "pixel_format", "RGB") && !om_attr_is(c->op, "pixel_format", "BGR"))
		return om_op_fail(c->session, OM_INVALID, c->op, "its pixel_format is not known");
	c->out[0].type = OM_UINT8;
	c->out[0].shape = om_shape_open(3);
	c->out[0].shape.dim[2] = is_grey(c) ? 1 : 3;
	return OM_OK;
}

static om_status
decode_cpu(om_call *c)
{
	const struct file f = {c, c->in[0].data, (size_t)om_shape_count(&c->in[0].shape)};
	const bool swapped = om_attr_is(c->op, "pixel_format", "BGR");
	struct image i;

	OM_TRY(read_image(&f, &i));
	const om_shape shape = om_shape_of(3, (const int64_t[]){(int64_t)i.h, (int64_t)i.w, is_grey(c) ? 1 : 3});
	OM_TRY(c->alloc(c, 0, &shape));
	uint8_t *to = c->out[0].data;
	for (size_t k = 0; k < i.w * i.h; k++) {
		const uint8_t *p = i.rgb + 3 * k;
		if (is_grey(c)) {  /* ITU-R 601 */
			*to++ = (uint8_t)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
			continue;
		}
		for (int b = 0; b < 3; b++)
			*to++ = p[swapped ? 2 - b : b];
	}
	return OM_OK;
}

static const om_attr_spec decode_attrs[] = {{"pixel_format", OM_ATTR_STRING, .s = "RGB"}, {0}};

const om_row om_ops_image[] = {
	{.name = "ImageDecoder", .brief = "the pixels of a file of an image", .since = 20, .min_in = 1, .max_in = 1,
	 .min_out = 1, .max_out = 1, .flags = OM_DATA_SIZED, .attrs = decode_attrs, .infer = decode_infer,
	 .cpu = decode_cpu},
	{0}
};
