/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in the syntax of RE2, for RegexFullMatch.
 *
 * A pattern is parsed into a tree, the tree compiled into a program of a nondeterministic
 * automaton, which is simulated over all of its states at once (Thompson, 1968; Pike).  Each
 * character is read once, so matching takes O(text * program) for any pattern: there is no
 * backtracking.  As in RE2, backreferences and lookaround are refused.  Because the whole text has
 * to match, greediness makes no difference. */
#include <config.h>

#include <ctype.h>

#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"

enum { MOST_REPEATS = 1000, MOST_CODE = 100000, MOST_DEPTH = 200, MOST_TEXT = 10000, END = -1 };

typedef enum kind { NOTHING, SET, CAT, ALT, REPEAT, ASSERT } kind;
typedef enum place { BEGIN_TEXT, END_TEXT, BEGIN_LINE, END_LINE, WORD, NO_WORD } place;

struct range {
	int32_t low, high;
};

struct set {
	struct range *range;
	size_t n, cap;
	bool negated;
};

struct tree {
	kind kind;
	struct tree *a, *b;
	struct set *set;
	int64_t min, max;        /* of a REPEAT; max -1: any number */
	place place;
};

struct flags {
	bool any_case, lines, dot_all;
};

struct parser {
	const om_op_context *c;
	const unsigned char *at, *end;
	struct flags f;
	int depth;
};

static om_status
bad(const struct parser *p, const char *what)
{
	return om_op_fail(p->c->session, OM_INVALID, p->c->op, "pattern: %s", what);
}

/* ---- Characters. ---- */

/* Decode the next UTF-8 character; an invalid byte is taken as itself. */
static int32_t
next_char(const unsigned char **at, const unsigned char *end)
{
	const unsigned char first = *(*at)++;
	const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
	int32_t c = more == 3 ? first & 7 : more == 2 ? first & 15 : more == 1 ? first & 31 : first;

	if (end - *at < more)
		return first;
	for (int k = 0; k < more; k++)
		if (((*at)[k] & 0xc0) != 0x80)
			return first;
	for (int k = 0; k < more; k++)
		c = c << 6 | (*(*at)++ & 0x3f);
	return c;
}

static void
add_range(const struct parser *p, struct set *s, int32_t low, int32_t high)
{
	OM_PUSH(p->c->mem, s->range, s->n, s->cap, ((struct range){low, high}));
	if (!p->f.any_case)
		return;
	for (int32_t k = low < 'A' ? 'A' : low; k <= high && k <= 'z'; k++)
		if (isalpha(k))
			OM_PUSH(p->c->mem, s->range, s->n, s->cap, ((struct range){k ^ 32, k ^ 32}));
}

static bool
in_set(const struct set *s, int32_t c)
{
	for (size_t k = 0; k < s->n; k++)
		if (c >= s->range[k].low && c <= s->range[k].high)
			return !s->negated;
	return s->negated;
}

/* \d, \w, \s and their complements, as ranges. */
static bool
add_class(const struct parser *p, struct set *s, int name)
{
	static const struct range digit[] = {{'0', '9'}}, space[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
		word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
	const int lower = name | 32;
	const struct range *r = lower == 'd' ? digit : lower == 's' ? space : word;
	const size_t n = lower == 'd' ? 1 : lower == 's' ? 3 : 4;
	int32_t from = 0;

	if (lower != 'd' && lower != 's' && lower != 'w')
		return false;
	for (size_t k = 0; k < n; k++) {
		if (name == lower)
			add_range(p, s, r[k].low, r[k].high);
		else if (r[k].low > from)
			add_range(p, s, from, r[k].low - 1);
		from = r[k].high + 1;
	}
	if (name != lower)
		add_range(p, s, from, 0x10ffff);
	return true;
}

static om_status
hex(struct parser *p, int32_t *c)
{
	const bool braces = p->at < p->end && *p->at == '{';
	int n = 0;

	*c = 0;
	p->at += braces;
	for (; p->at < p->end && isxdigit(*p->at) && n < (braces ? 6 : 2); n++, p->at++)
		*c = *c << 4 | (isdigit(*p->at) ? *p->at - '0' : (*p->at | 32) - 'a' + 10);
	if (n == 0 || (!braces && n != 2) || (braces && (p->at == p->end || *p->at++ != '}')))
		return bad(p, "\\x is not followed by a hexadecimal number");
	return OM_OK;
}

/* A literal character after a backslash. */
static om_status
escaped(struct parser *p, int32_t *c)
{
	static const char names[] = "aftnrv", values[] = "\a\f\t\n\r\v";

	*c = next_char(&p->at, p->end);
	const char *known = *c < 128 ? strchr(names, (int)*c) : NULL;
	if (*c == 'x')
		return hex(p, c);
	if (known && *c)
		*c = values[known - names];
	else if (*c < 128 && isalnum((int)*c))
		return bad(p, "unknown escape sequence");
	return OM_OK;
}

/* ---- Parsing. ---- */

static struct tree *
node(struct parser *p, kind k, struct tree *a, struct tree *b)
{
	struct tree *t = OM_NEW(p->c->mem, struct tree);

	t->kind = k;
	t->a = a;
	t->b = b;
	return t;
}

static struct tree *
set_node(struct parser *p)
{
	struct tree *t = node(p, SET, NULL, NULL);

	t->set = OM_NEW(p->c->mem, struct set);
	return t;
}

static struct tree *
place_node(struct parser *p, place where)
{
	struct tree *t = node(p, ASSERT, NULL, NULL);

	t->place = where;
	return t;
}

/* One end of a range in brackets; `*done` when it was a class. */
static om_status
bracket_item(struct parser *p, struct set *s, int32_t *c, bool *done)
{
	*done = false;
	if (*p->at != '\\') {
		*c = next_char(&p->at, p->end);
		return OM_OK;
	}
	if (++p->at == p->end)
		return bad(p, "trailing backslash");
	*done = add_class(p, s, *p->at);
	p->at += *done;
	return *done ? OM_OK : escaped(p, c);
}

/* [:alpha:] and other POSIX classes; false if it is none. */
static bool
named_class(struct parser *p, struct set *s)
{
	static const struct { const char *name; int (*is)(int); } classes[] = {
		{"[:alnum:]", isalnum}, {"[:alpha:]", isalpha}, {"[:digit:]", isdigit}, {"[:lower:]", islower},
		{"[:upper:]", isupper}, {"[:space:]", isspace}, {"[:punct:]", ispunct}, {"[:xdigit:]", isxdigit},
	};

	for (size_t k = 0; k < sizeof classes / sizeof classes[0]; k++) {
		const size_t n = strlen(classes[k].name);
		if ((size_t)(p->end - p->at) < n || memcmp(p->at, classes[k].name, n) != 0)
			continue;
		for (int c = 0; c < 128; c++)
			if (classes[k].is(c))
				add_range(p, s, c, c);
		p->at += n;
		return true;
	}
	return false;
}

static om_status
brackets(struct parser *p, struct tree **out)
{
	struct tree *t = *out = set_node(p);
	bool done;
	int32_t low = 0, high = 0;

	if (p->at < p->end && *p->at == '^') {
		t->set->negated = true;
		p->at++;
	}
	for (bool first = true; p->at < p->end && (first || *p->at != ']'); first = false) {
		if (named_class(p, t->set))
			continue;
		OM_TRY(bracket_item(p, t->set, &low, &done));
		high = low;
		if (!done && p->end - p->at > 1 && p->at[0] == '-' && p->at[1] != ']') {
			p->at++;
			OM_TRY(bracket_item(p, t->set, &high, &done));
			if (done || high < low)
				return bad(p, "a range in brackets is out of order");
		}
		if (!done)
			add_range(p, t->set, low, high);
	}
	if (p->at == p->end)
		return bad(p, "missing closing bracket");
	p->at++;
	return OM_OK;
}

static om_status parse_choice(struct parser *p, struct tree **out);

/* (?flags), (?flags:...), (?P<name>...): the prefix of a group. `*group` is false for flags alone. */
static om_status
group_head(struct parser *p, bool *group)
{
	bool on = true;

	*group = true;
	p->at++;
	if (p->at < p->end && (*p->at == 'P' || *p->at == '<')) {
		while (p->at < p->end && *p->at != '>')
			p->at++;
		return p->at++ < p->end ? OM_OK : bad(p, "missing > after the name of a group");
	}
	for (; p->at < p->end && *p->at != ':' && *p->at != ')'; p->at++)
		switch (*p->at) {
		case '-': on = false; break;
		case 'i': p->f.any_case = on; break;
		case 'm': p->f.lines = on; break;
		case 's': p->f.dot_all = on; break;
		case 'U': break;
		default: return bad(p, "lookaround, which RE2 does not support, or an unknown flag");
		}
	if (p->at == p->end)
		return bad(p, "missing closing parenthesis");
	*group = *p->at++ == ':';
	return OM_OK;
}

static om_status
group(struct parser *p, struct tree **out)
{
	const struct flags before = p->f;
	bool is_group = true;

	if (++p->depth > MOST_DEPTH)
		return bad(p, "groups are nested too deep");
	if (p->at < p->end && *p->at == '?')
		OM_TRY(group_head(p, &is_group));
	*out = node(p, NOTHING, NULL, NULL);
	if (is_group) {
		OM_TRY(parse_choice(p, out));
		if (p->at == p->end || *p->at++ != ')')
			return bad(p, "missing closing parenthesis");
		p->f = before;
	}
	p->depth--;
	return OM_OK;
}

static om_status
escape(struct parser *p, struct tree **out)
{
	int32_t c;

	if (p->at == p->end)
		return bad(p, "trailing backslash");
	switch (*p->at) {
	case 'A': p->at++; *out = place_node(p, BEGIN_TEXT); return OM_OK;
	case 'z': p->at++; *out = place_node(p, END_TEXT); return OM_OK;
	case 'b': p->at++; *out = place_node(p, WORD); return OM_OK;
	case 'B': p->at++; *out = place_node(p, NO_WORD); return OM_OK;
	default: *out = set_node(p);
	}
	if (add_class(p, (*out)->set, *p->at)) {
		p->at++;
		return OM_OK;
	}
	OM_TRY(escaped(p, &c));
	add_range(p, (*out)->set, c, c);
	return OM_OK;
}

static om_status
parse_atom(struct parser *p, struct tree **out)
{
	const int32_t c = next_char(&p->at, p->end);

	switch (c) {
	case '(': return group(p, out);
	case '[': return brackets(p, out);
	case '\\': return escape(p, out);
	case '^': *out = place_node(p, p->f.lines ? BEGIN_LINE : BEGIN_TEXT); return OM_OK;
	case '$': *out = place_node(p, p->f.lines ? END_LINE : END_TEXT); return OM_OK;
	case '*': case '+': case '?': return bad(p, "a repetition operator has no argument");
	case '.':
		*out = set_node(p);
		(*out)->set->negated = true;
		if (!p->f.dot_all)
			add_range(p, (*out)->set, '\n', '\n');
		return OM_OK;
	default:
		*out = set_node(p);
		add_range(p, (*out)->set, c, c);
		return OM_OK;
	}
}

static bool
count(const unsigned char **at, const unsigned char *end, int64_t *n)
{
	const unsigned char *start = *at;

	for (*n = 0; *at < end && isdigit(**at) && *n <= MOST_REPEATS; ++*at)
		*n = 10 * *n + (**at - '0');
	return *at > start;
}

/* {n}, {n,} or {n,m}; any other text in braces is literal. */
static bool
braces(struct parser *p, int64_t *min, int64_t *max)
{
	const unsigned char *at = p->at + 1;

	if (p->at == p->end || *p->at != '{' || !count(&at, p->end, min))
		return false;
	*max = *min;
	if (at < p->end && *at == ',') {
		at++;
		if (!count(&at, p->end, max))
			*max = -1;
	}
	if (at == p->end || *at != '}')
		return false;
	p->at = at + 1;
	return true;
}

static om_status
parse_repeat(struct parser *p, struct tree **out)
{
	int64_t min, max;

	OM_TRY(parse_atom(p, out));
	while (p->at < p->end) {
		if (*p->at == '*' || *p->at == '+' || *p->at == '?') {
			min = *p->at == '+';
			max = *p->at++ == '?' ? 1 : -1;
		} else if (!braces(p, &min, &max)) {
			break;
		}
		if (min > MOST_REPEATS || max > MOST_REPEATS || (max >= 0 && max < min))
			return bad(p, "invalid repetition count");
		if (p->at < p->end && *p->at == '?')
			p->at++;
		*out = node(p, REPEAT, *out, NULL);
		(*out)->min = min;
		(*out)->max = max;
	}
	return OM_OK;
}

static om_status
parse_row(struct parser *p, struct tree **out)
{
	struct tree *next;

	*out = node(p, NOTHING, NULL, NULL);
	while (p->at < p->end && *p->at != '|' && *p->at != ')') {
		OM_TRY(parse_repeat(p, &next));
		*out = (*out)->kind == NOTHING ? next : node(p, CAT, *out, next);
	}
	return OM_OK;
}

static om_status
parse_choice(struct parser *p, struct tree **out)
{
	struct tree *next;

	OM_TRY(parse_row(p, out));
	while (p->at < p->end && *p->at == '|') {
		p->at++;
		OM_TRY(parse_row(p, &next));
		*out = node(p, ALT, *out, next);
	}
	return OM_OK;
}

/* ---- Compilation. ---- */

typedef enum act { TAKE, FORK, JUMP, CHECK, DONE } act;

struct code {
	act act;
	uint32_t to, other;
	const struct set *set;
	place place;
};

struct program {
	struct code *code;
	size_t n, cap, visits;   /* tree nodes visited: an empty expression may be repeated many times */
	om_arena *mem;
};

static uint32_t
emit(struct program *g, struct code code)
{
	OM_PUSH(g->mem, g->code, g->n, g->cap, code);
	return (uint32_t)g->n - 1;
}

static bool write_tree(struct program *g, const struct tree *t);

static bool
write_repeat(struct program *g, const struct tree *t)
{
	bool ok = true;

	for (int64_t k = 0; k < t->min && ok; k++)
		ok = write_tree(g, t->a);
	if (t->max < 0) {
		const uint32_t fork = emit(g, (struct code){.act = FORK});
		g->code[fork].to = fork + 1;
		ok = ok && write_tree(g, t->a);
		emit(g, (struct code){.act = JUMP, .to = fork});
		g->code[fork].other = (uint32_t)g->n;
		return ok;
	}
	for (int64_t k = t->min; k < t->max && ok; k++) {
		const uint32_t fork = emit(g, (struct code){.act = FORK});
		g->code[fork].to = fork + 1;
		ok = write_tree(g, t->a);
		g->code[fork].other = (uint32_t)g->n;
	}
	return ok;
}

/* False if the program becomes too long. */
static bool
write_tree(struct program *g, const struct tree *t)
{
	uint32_t fork, jump;

	if (g->n > MOST_CODE || g->visits++ > MOST_CODE)
		return false;
	switch (t->kind) {
	case NOTHING: return true;
	case SET: emit(g, (struct code){.act = TAKE, .set = t->set}); return true;
	case ASSERT: emit(g, (struct code){.act = CHECK, .place = t->place}); return true;
	case CAT: return write_tree(g, t->a) && write_tree(g, t->b);
	case REPEAT: return write_repeat(g, t);
	case ALT: break;
	}
	fork = emit(g, (struct code){.act = FORK});
	g->code[fork].to = fork + 1;
	if (!write_tree(g, t->a))
		return false;
	jump = emit(g, (struct code){.act = JUMP});
	g->code[fork].other = (uint32_t)g->n;
	const bool ok = write_tree(g, t->b);
	g->code[jump].to = (uint32_t)g->n;
	return ok;
}

/* ---- Matching. ---- */

/* The active states: each position of the program at most once. */
struct places {
	uint32_t *at;
	uint64_t *mark;          /* per position, the step in which it was added */
	size_t n;
};

struct machine {
	const struct program *g;
	struct places now, next;
	uint32_t *stack;
	uint64_t step;           /* characters so far, of all texts */
};

static bool
is_word(int32_t c)
{
	return c == '_' || (c >= 0 && c < 128 && isalnum((int)c));
}

/* Does the assertion hold between two characters?  END is either end of the text. */
static bool
is_at(place p, int32_t before, int32_t after)
{
	switch (p) {
	case BEGIN_TEXT: return before == END;
	case END_TEXT: return after == END;
	case BEGIN_LINE: return before == END || before == '\n';
	case END_LINE: return after == END || after == '\n';
	case WORD: return is_word(before) != is_word(after);
	default: return is_word(before) == is_word(after);
	}
}

/* Add a position and every position reachable from it without consuming a character. */
static void
enter(struct machine *m, struct places *to, uint32_t at, int32_t before, int32_t after)
{
	size_t n = 0;

	m->stack[n++] = at;
	while (n) {
		const uint32_t k = m->stack[--n];
		const struct code *c = &m->g->code[k];
		if (to->mark[k] == m->step)
			continue;
		to->mark[k] = m->step;
		if (c->act == FORK)
			m->stack[n++] = c->other;
		if (c->act == FORK || c->act == JUMP)
			m->stack[n++] = c->to;
		else if (c->act != CHECK)
			to->at[to->n++] = k;
		else if (is_at(c->place, before, after))
			m->stack[n++] = k + 1;
	}
}

static bool
matches(struct machine *m, const om_string *s)
{
	const unsigned char *at = (const unsigned char *)s->data, *end = s->size ? at + s->size : at;
	int32_t before = END, c = at < end ? next_char(&at, end) : END;

	m->now.n = 0;
	m->step++;
	enter(m, &m->now, 0, before, c);
	while (c != END && m->now.n) {
		const int32_t after = at < end ? next_char(&at, end) : END;
		m->next.n = 0;
		m->step++;
		for (size_t k = 0; k < m->now.n; k++) {
			const struct code *code = &m->g->code[m->now.at[k]];
			if (code->act == TAKE && in_set(code->set, c))
				enter(m, &m->next, m->now.at[k] + 1, c, after);
		}
		const struct places other = m->now;
		m->now = m->next;
		m->next = other;
		before = c;
		c = after;
	}
	for (size_t k = 0; k < m->now.n && c == END; k++)
		if (m->g->code[m->now.at[k]].act == DONE)
			return true;
	return false;
}

static struct machine
machine_new(om_arena *mem, const struct program *g)
{
	struct machine m = {.g = g};

	m.now = (struct places){OM_NEWN(mem, uint32_t, g->n), OM_NEWN(mem, uint64_t, g->n), 0};
	m.next = (struct places){OM_NEWN(mem, uint32_t, g->n), OM_NEWN(mem, uint64_t, g->n), 0};
	m.stack = OM_NEWN(mem, uint32_t, 2 * g->n + 2);
	return m;
}

/* ---- RegexFullMatch. ---- */

static om_status
compile(om_op_context *c, struct program *g)
{
	const om_string s = om_attr_string(c->op, "pattern");
	const unsigned char *text = (const unsigned char *)(s.size ? s.data : "");
	struct parser p = {.c = c, .at = text, .end = text + s.size};
	struct tree *t;

	*g = (struct program){.mem = c->mem};
	if (s.size > MOST_TEXT)
		return bad(&p, "the pattern is too long");
	OM_TRY(parse_choice(&p, &t));
	if (p.at < p.end)
		return bad(&p, "unmatched closing parenthesis");
	if (!write_tree(g, t))
		return bad(&p, "the compiled pattern is too large");
	emit(g, (struct code){.act = DONE});
	return OM_OK;
}

static om_status
match_infer(om_op_context *c)
{
	struct program g;

	if (c->in[0].type != OM_STRING && c->in[0].type != OM_UNDEFINED)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the input is %s, expected string", om_dtype_text(c->in[0].type));
	OM_TRY(compile(c, &g));
	c->out[0].type = OM_BOOL;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
match_prepare(om_op_context *c, void **state)
{
	struct program *g = OM_NEW(c->mem, struct program);

	OM_TRY(compile(c, g));
	*(struct machine *)*state = machine_new(c->mem, g);
	return OM_OK;
}

static om_status
match_cpu(om_op_context *c)
{
	for (int64_t k = 0; k < om_shape_count(&c->in[0].shape); k++)
		((bool *)c->out[0].data)[k] = matches(c->state, (const om_string *)c->in[0].data + k);
	return OM_OK;
}

static const om_attr_spec match_attrs[] = {{"pattern", OM_ATTR_STRING}, {0}};

const om_opdef om_ops_regex[] = {
	{.name = "RegexFullMatch", .brief = "whether a string fully matches a regular expression", .since = 20,
	 .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attrs = match_attrs, .infer = match_infer, .slice = om_slice_first,
	 .cpu = match_cpu,
	 .input_types = {OF(STRING)}},
	{0}
};

const om_kernel om_kernels_regex[] = {
	{.name = "RegexFullMatch", .state_bytes = sizeof(struct machine), .prepare = match_prepare, .run = match_cpu},
	{0}
};
