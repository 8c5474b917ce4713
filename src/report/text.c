/* SPDX-License-Identifier: Apache-2.0 */
/* A report as text and as CSV. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "base/clean_text.h"
#include "report/report.h"
#include "report/tiling.h"
#include "ir/enum_text.h"
#include "onnxmem/opdef.h"

const char *
om_bytes_text(uint64_t bytes, char out[32])
{
	static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double n = (double)bytes / 1024;
	size_t k = 0;

	if (bytes < 1024) {
		snprintf(out, 32, "%" PRIu64 " B", bytes);
		return out;
	}
	for (; n >= 1024 && k + 1 < sizeof unit / sizeof unit[0]; k++)
		n /= 1024;
	snprintf(out, 32, "%.*f %s", n < 10 ? 2 : n < 100 ? 1 : 0, n, unit[k]);
	return out;
}

const char *
om_clean_text(om_arena *mem, const char *s)
{
	char *out = om_strdup(mem, s);

	om_text_clean(out);
	return out;
}

size_t
om_letters(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static const char *
skip(const char *s, size_t n)
{
	for (; n; n--)
		for (s++; ((unsigned char)*s & 0xc0) == 0x80; s++)
			;
	return s;
}

/* Shorten in the middle: the end of a name is more specific. */
const char *
om_text_shorter(om_arena *mem, const char *s, size_t most)
{
	const size_t n = om_letters(s), left = (most - 1) / 2, right = most - 1 - left;

	return n <= most ? s : om_printf(mem, "%.*s…%s", (int)(skip(s, left) - s), s, skip(s, n - right));
}

const char *
om_report_name(const om_report *r, om_arena *mem, const char *name, unsigned before)
{
	name = om_clean_text(mem, name);
	return r->width > before + 8 ? om_text_shorter(mem, name, r->width - before) : name;
}

/* A name in the last column of a table. */
static const char *
name_text(const om_report *r, om_arena *mem, const char *name)
{
	return om_report_name(r, mem, name, 51);
}

/* Lines may be broken at white space in `text`; paragraphs are separated by the caller. */
void
om_wrap(FILE *to, const char *text, unsigned at, unsigned indent, unsigned width)
{
	for (bool first = true; *(text += strspn(text, " \n")); first = false) {
		const size_t n = strcspn(text, " \n");
		if (!first && at + 1 + n > width) {
			fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			putc(' ', to);
			at++;
		}
		fwrite(text, 1, n, to);
		at += (unsigned)n;
		text += n;
	}
	putc('\n', to);
}

static void
line(FILE *to, const char *what, uint64_t bytes, const char *note)
{
	char text[32];
	fprintf(to, "  %-20s %14" PRIu64 "  %10s  %s\n", what, bytes, om_bytes_text(bytes, text), note);
}

static void
inputs(const om_prog *p, FILE *to, om_arena *mem)
{
	char shape[256];
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->first->nparam; k++) {
		const om_value *v = p->first->param[k];
		if (v->is_overridable)
			continue;
		fprintf(to, "%s%s %s%s%s", n++ ? ", " : "", om_clean_text(mem, v->name),
			v->type.kind == OM_TENSOR ? om_dtype_text(v->type.elem) : "no tensor",
			v->type.kind == OM_TENSOR ? om_shape_text(&v->shape, shape, sizeof shape) : "",
			v->is_const ? " (constant)" : "");
	}
	fputs(n ? "\n" : "none\n", to);
}

void
om_report_op_rules(const om_prog *p, om_arena *mem, FILE *to)
{
	const char *text;
	uint32_t nop;

	for (size_t k = 0; (text = om_prog_op_rule_text(p, k, &nop)); k++)
		fprintf(to, "assumed: %s, for %" PRIu32 " op%s\n", om_clean_text(mem, text), nop, nop == 1 ? "" : "s");
}

/* The order of the ops, and whether it is proven optimal. */
static void
schedule(const om_schedule *s, FILE *to)
{
	if (!s->method || strcmp(s->method, "original") == 0)
		return;
	const char *what = s->is_original ? "original order" : "differs from the original order";
	const char *proof = "";
	if (strcmp(s->method, "min-memory") == 0) {
		what = s->is_original ? "original order" : "lower peak than the original order";
		proof = s->is_proven ? ", proven minimal" : s->is_limited ? ", not proven: the search ended at its limit"
			: ", not proven minimal";
	}
	fprintf(to, "  %-20s %14s  %10s  %s%s\n", "schedule", s->method, "", what, proof);
}

/* Of workers that run ops side by side. */
static void
streams(const om_worker_streams *s, FILE *to)
{
	if (!s)
		return;
	fprintf(to, "  %-20s %14" PRIu32 "  %10s  %" PRIu32 " wait%s", "streams", s->n, "", s->nwait, s->nwait == 1 ? "" : "s");
	if (om_streams_speedup(s) > 0)
		fprintf(to, "; %.2f times as fast as one worker, by a model of times", om_streams_speedup(s));
	putc('\n', to);
}

/* One line for each arena if there are several or a limit. */
static void
arenas(const om_plan *plan, FILE *to, om_arena *mem)
{
	char limit[32], name[64];

	for (uint32_t k = 0; k < plan->narena && (plan->narena > 1 || plan->arena->limit); k++) {
		const om_plan_arena *a = &plan->arena[k];
		snprintf(name, sizeof name, "  %s", plan->narena > 1 ? om_clean_text(mem, a->name) : "limit");
		const char *of = !a->limit ? "without limit" : om_printf(mem, "of %s", om_bytes_text(a->limit, limit));
		if (plan->narena > 1)
			line(to, name, a->bytes, om_printf(mem, "%s, lower bound %" PRIu64 ", %s", of, a->lower_bound,
				om_plan_arena_status(a)));
		else
			line(to, name, a->limit, "of the arena");
	}
}

static const char *
claim(const om_report *r, om_arena *mem)
{
	if (r->ours && r->arena_bytes < r->lower_bound_bytes)
		return "of these lifetimes, and larger than the arena";
	if (r->arena_bytes == 0 && r->prog->plan->nunplanned)
		return "no claim: nothing has a place in the arena";
	if (r->status != OM_PACK_OPTIMAL)
		return om_printf(mem, "feasible: the gap is %.2f %%%s", 100 * r->gap,
			r->is_limited ? ", the search ended at its limit" : "");
	if (r->prog->plan->narena > 1)
		return "optimal packing for the values of each arena";
	return om_report_scope(r);
}

static const char *
bound_note(const om_report *r, om_arena *mem)
{
	const uint32_t n = r->prog->plan->nunplanned;
	const char *text = claim(r, mem);

	if (r->bounded)
		text = om_printf(mem, "%s; %s", text, om_bounded_text(mem, r->bounded));
	return n ? om_printf(mem, "%s; %u value%s outside of the plan", text, n, n == 1 ? "" : "s") : text;
}

/* What the total leaves out: a few of them by name. */
static const char *
total_note(const om_report *r, om_arena *mem)
{
	enum { NAMED = 3 };
	const char *text = r->prog->plan->nunplanned ? "all of these, without the values outside of the plan" : "all of these";

	for (uint32_t k = 0; k < r->nunsized && k < NAMED; k++)
		text = om_printf(mem, "%s%s%s", text, k ? ", " : r->prog->plan->nunplanned ? ", and without " : ", without ",
			om_clean_text(mem, r->unsized[k]->name));
	if (r->nunsized > NAMED)
		text = om_printf(mem, "%s and %" PRIu32 " more", text, r->nunsized - NAMED);
	return r->nunsized ? om_printf(mem, "%s, whose size a run decides", text) : text;
}

static void
sizes(const om_report *r, FILE *to, om_arena *mem)
{
	const double share = r->naive_bytes ? 100 * (double)r->arena_bytes / (double)r->naive_bytes : 100;

	line(to, "naive", r->naive_bytes, "every value on its own");
	line(to, "original order", r->original_order_bytes, "peak live, nothing in place, no views");
	line(to, r->prog->plan->narena > 1 ? "arenas" : "arena", r->arena_bytes,
		om_printf(mem, "%.1f %% of naive%s", share, r->parallel_safe ? om_printf(mem, ", %s", om_report_orders(r, mem)) : ""));
	arenas(r->prog->plan, to, mem);
	if (r->scratch_bytes)
		line(to, "  kernel scratch", r->scratch_bytes, "at most, inside the arena");
	line(to, "lower bound", r->lower_bound_bytes, bound_note(r, mem));
	schedule(r->prog->plan->schedule, to);
	streams(r->prog->plan->streams, to);
	if (r->rematerialized)
		fprintf(to, "  %-20s %14" PRIu32 "  %10s  op%s again to lower the peak: %.1f %% more work\n",
			"rematerialized", r->rematerialized,
			"", r->rematerialized == 1 ? " runs" : "s run", r->flops > 0
				? 100 * r->rematerialized_flops / r->flops : 0);
	if (r->arena_io_bytes)
		line(to, "  inputs and outputs", r->arena_io_bytes, "inside the arena");
	line(to, "weights", r->weights_bytes, "outside the arena");
	if (r->io_bytes || !r->arena_io_bytes)
		line(to, "inputs and outputs", r->io_bytes, "outside the arena, owned by the caller");
	if (r->io_alias_bytes)
		line(to, "  in place", r->io_alias_bytes, "outputs that update their inputs in place");
	if (r->nstate) {
		line(to, "  states", r->state_bytes, "inputs that outputs replace in the next run");
		line(to, "  copied per run", r->state_copied_bytes, "bytes of states that a run writes again");
	}
	line(to, "total", r->total_bytes, total_note(r, mem));
}

static void
traffic_line(FILE *to, const char *what, const om_traffic *t)
{
	char read[32], written[32];

	if (t->read || t->written)
		fprintf(to, "  %-20s %14" PRIu64 "  %10s read, %" PRIu64 " (%s) written\n", what, t->read, om_bytes_text(t->read, read),
			t->written, om_bytes_text(t->written, written));
}

/* Of each memory, if there are several arenas. */
static void
traffic(const om_report *r, FILE *to, om_arena *mem)
{
	static const char *const others[] = {[OM_TRAFFIC_WEIGHTS] = "weights", [OM_TRAFFIC_CALLER] = "inputs and outputs",
		[OM_TRAFFIC_UNPLANNED] = "outside of the plan"};
	const om_plan *plan = r->prog->plan;

	if (plan->narena < 2)
		return;
	fputs("\ntraffic of a run:\n", to);
	for (uint32_t k = 0; k < plan->narena; k++)
		traffic_line(to, om_clean_text(mem, plan->arena[k].name), &r->traffic[k]);
	for (uint32_t k = 0; k < OM_TRAFFIC_OTHERS; k++)
		traffic_line(to, others[k], &r->traffic[plan->narena + k]);
}

/* A plan of the same model that was made now, beside that of another planner. */
static void
ours(const om_report *r, FILE *to, om_arena *mem)
{
	char change[40] = "";

	if (!r->ours)
		return;
	if (r->prog->plan->nunplanned)
		snprintf(change, sizeof change, "with a place for all values, ");
	else if (r->arena_bytes)
		snprintf(change, sizeof change, "%+.2f %%, ", 100 * ((double)r->ours->arena_bytes - (double)r->arena_bytes)
			/ (double)r->arena_bytes);
	fputs("\nplanned by onnxmem, with the same inputs and outputs in the arena, without alignment:\n", to);
	line(to, "arena", r->ours->arena_bytes, om_printf(mem, "%s%s", change, r->ours->status));
	line(to, "lower bound", r->ours->lower_bound_bytes, "for its lifetimes, views and in-place choices");
	line(to, "total", r->ours->total_bytes, "with weights, inputs and outputs");
}

/* What ended early, and how to let it go on. */
static void
limits(const om_prog *p, FILE *to, om_arena *mem)
{
	if (p->nlimit)
		fputs("\nended at a limit:\n", to);
	for (uint32_t k = 0; k < p->nlimit; k++) {
		const om_limit *l = &p->limits[k];
		fprintf(to, "  %s: %s%s\n", om_clean_text(mem, l->pass), om_clean_text(mem, l->what),
			l->option ? om_printf(mem, "; raised by %s:%s=N in --passes", l->pass, l->option) : "");
	}
}

static void
peak(const om_report *r, FILE *to, om_arena *mem)
{
	enum { SHOWN = 12 };
	char text[32];

	if (r->nlive == 0)
		return;
	if (r->parallel_safe)
		fputs("\npeak: in some order, ", to);
	else
		fprintf(to, "\npeak at step %" PRIu32 " of %" PRIu32 ", ", r->peak_step, r->steps);
	if (r->parallel_safe)
		fputs("all of these are live", to);
	else if (!r->peak_op)
		fputs("at the end of the graph", to);
	else
		fputs(om_clean_text(mem, om_op_where(r->peak_op, mem)), to);
	fputs(r->parallel_safe ? " at once:\n" : "; live at the peak:\n", to);
	for (uint32_t k = 0; k < r->nlive && k < SHOWN; k++)
		line(to, "", r->live[k].bytes, name_text(r, mem, r->live[k].name));
	if (r->nlive > SHOWN) {
		uint64_t rest = 0;
		for (uint32_t k = SHOWN; k < r->nlive; k++)
			rest += r->live[k].bytes;
		fprintf(to, "  %-20s %14" PRIu64 "  %10s  %" PRIu32 " more\n", "", rest,
			om_bytes_text(rest, text), r->nlive - SHOWN);
	}
}

/* The peak of each phase of a training step. */
static void
phases(const om_report *r, FILE *to, om_arena *mem)
{
	if (r->nphase)
		fputs("\npeak by phase of the training step:\n", to);
	for (uint32_t k = 0; k < r->nphase; k++) {
		const om_report_phase *x = &r->phase[k];
		line(to, om_phase_text(x->phase), x->bytes, om_printf(mem, "at step %" PRIu32 ", %s; %" PRIu32 " op%s",
			x->step, om_clean_text(mem, om_op_where(x->op, mem)), x->ops, x->ops == 1 ? "" : "s"));
	}
}

/* ---- All strategies. ---- */

static const char *
schedule_text(const char *schedule)
{
	static const struct { const char *schedule, *text; } texts[] = {
		{"original", "original order"}, {"bfs", "schedule bfs"}, {"min-memory", "schedule min-memory"},
		{"parallel-safe", "parallel-safe"},
	};

	for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
		if (strcmp(texts[k].schedule, schedule) == 0)
			return texts[k].text;
	return schedule;
}

/* The strategies, grouped by order; the last line of a group is their common bound. */
static void
strategies(const om_report *r, FILE *to)
{
	char bytes[32];

	for (uint32_t k = 0; k < r->nstrategy; k++) {
		const om_report_strategy *s = &r->strategy[k];
		const bool first = k == 0 || strcmp(s->schedule, s[-1].schedule) != 0;
		const bool last = k + 1 == r->nstrategy || strcmp(s->schedule, s[1].schedule) != 0;
		if (first)
			fprintf(to, "\n%-24s %14s  %10s  %8s  %-8s  %8s\n", schedule_text(s->schedule), "bytes", "", "gap",
				"status", "ms");
		fprintf(to, "  %-22s %14" PRIu64 "  %10s  %7.2f%%  %-8s  %8.2f\n", s->name, s->bytes,
			om_bytes_text(s->bytes, bytes), 100 * om_report_gap(s->bytes, s->bound),
			s->status == OM_PACK_OPTIMAL ? "optimal" : s->is_limited ? "limited" : "feasible", s->ms);
		if (last)
			fprintf(to, "  %-22s %14" PRIu64 "  %10s  %8s  %-8s  %8.2f\n", "lower bound", s->bound,
				om_bytes_text(s->bound, bytes), "", "", s->schedule_ms);
	}
}

/* The arenas of plans for numbers of workers, the first of which is for one. */
static void
all_streams(const om_report *r, FILE *to)
{
	char bytes[32];

	if (r->nstreams)
		fprintf(to, "\n%-24s %14s  %10s  %8s  %6s  %8s\n", "workers", "bytes", "", "of one", "waits", "model");
	for (uint32_t k = 0; k < r->nstreams; k++) {
		const om_report_streams *s = &r->streams[k];
		fprintf(to, "  %-22" PRIu32 " %14" PRIu64 "  %10s  %8.2f  %6" PRIu32 "  %7.2fx\n", s->workers, s->bytes, om_bytes_text(s->bytes, bytes),
			r->streams->bytes ? (double)s->bytes / (double)r->streams->bytes : 1, s->waits, s->speedup);
	}
}

/* Values that rotate buffers, or are slices. */
static void
moving(const om_report *r, FILE *to, om_arena *mem)
{
	enum { SHOWN = 12 };
	const om_plan *plan = r->prog->plan;

	if (plan->nview)
		fputs("\nrotate buffers in a loop:\n", to);
	for (uint32_t k = 0; k < plan->nview && k < SHOWN; k++)
		fprintf(to, "  %s: %s\n", om_clean_text(mem, r->prog->values[plan->view[k].value]->name),
			om_report_moving(r->prog, &plan->view[k], mem));
	if (plan->nview > SHOWN)
		fprintf(to, "  and %" PRIu32 " more\n", plan->nview - SHOWN);
}

static void
unplanned(const om_plan *plan, om_value *const *values, FILE *to, om_arena *mem)
{
	enum { SHOWN = 12 };

	if (plan->nunplanned)
		fputs("\nnot in the arena, allocated at run time:\n", to);
	for (uint32_t k = 0; k < plan->nunplanned && k < SHOWN; k++)
		fprintf(to, "  %s: %s\n", om_clean_text(mem, values[plan->unplanned[k].value]->name), plan->unplanned[k].why);
	if (plan->nunplanned > SHOWN)
		fprintf(to, "  and %" PRIu32 " more, which --json lists\n", plan->nunplanned - SHOWN);
}

/* States that are copied, and why. */
static void
states(const om_report *r, FILE *to, om_arena *mem)
{
	const char *head = "\nstates that are copied in each run:\n";

	for (uint32_t k = 0; k < r->nstate; k++) {
		const om_report_state *t = &r->state[k];
		if (!t->reason && !t->copied_bytes)
			continue;
		fprintf(to, "%s  %s to %s: %s\n", head, om_clean_text(mem, t->input->name), om_clean_text(mem, t->output->name),
			t->reason ? t->reason : om_printf(mem, "%" PRIu64 " bytes of rows, for ops that read them one after the other",
			t->copied_bytes));
		head = "";
	}
}

/* Where the plan comes from. */
static void
origin(const om_report *r, FILE *to, om_arena *mem)
{
	if (!r->origin)
		fprintf(to, "\nplanned in %.1f ms\n", r->plan_ms);
	else if (r->fault)
		fprintf(to, "\nthe plan, %s, IS NOT VALID: %s\n", om_clean_text(mem, r->origin), om_clean_text(mem, r->fault));
	else if (r->ours)
		fprintf(to, "\nthe plan is %s; it is valid%s\n", om_clean_text(mem, r->origin), r->prog->plan->nunplanned
			? " for the values that it has a place for" : "");
	else
		fprintf(to, "\nthe plan is %s; it is valid, the bounds are those that it states\n", om_clean_text(mem, r->origin));
}

static void
tiling(const om_report *r, FILE *to, om_arena *mem)
{
	const om_tiling *t = r->prog->tiling;

	if (!t)
		return;
	fprintf(to, "\ntiled: %" PRIu32 " region%s; untiled, the arena is %" PRIu64 " bytes; %" PRIu32 " ops, was %" PRIu32
		"; work %+.1f %%\n", t->n, t->n == 1 ? "" : "s", t->before, t->ops_after, t->ops_before, om_tiling_added_work(t));
	om_tiling_text(t, r->arena_bytes, mem, to);
}

void
om_report_text(const om_report *r, FILE *to)
{
	const om_prog *p = r->prog;
	om_arena *mem = om_arena_new();

	fprintf(to, "%s: %" PRIu32 " op%s, %" PRIu32 " value%s, %" PRIu32 " buffer%s\ninputs: ",
		strcmp(r->model, "-") == 0 ? "standard input" : om_clean_text(mem, r->model), r->ops, r->ops == 1 ? "" : "s", r->values,
		r->values == 1 ? "" : "s", r->nbuffer, r->nbuffer == 1 ? "" : "s");
	inputs(p, to, mem);
	om_report_op_rules(p, mem, to);
	fputs("\n", to);
	sizes(r, to, mem);
	om_report_formulas(r, mem, to);
	ours(r, to, mem);
	limits(r->prog, to, mem);
	traffic(r, to, mem);
	peak(r, to, mem);
	moving(r, to, mem);
	phases(r, to, mem);
	tiling(r, to, mem);
	states(r, to, mem);
	unplanned(p->plan, p->values, to, mem);
	all_streams(r, to);
	strategies(r, to);
	origin(r, to, mem);
	om_arena_free(mem);
}

/* ---- CSV. ---- */

static void
csv_text(FILE *to, const char *s)
{
	if (!strpbrk(s, ",\"\n\r")) {
		fputs(s, to);
		return;
	}
	putc('"', to);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', to);
		putc(*s, to);
	}
	putc('"', to);
}

/* Intervals in which the buffer is free, or only some of its bytes are in use: "4-7
 * 9-12@0:64", both ends exclusive. */
static void
csv_gaps(FILE *to, const om_report_buffer *b)
{
	const char *space = "";

	for (uint32_t k = 0; k < b->nlive; k++) {
		const om_interval *live = &b->live[k];
		if (k && live[-1].upper < live->lower) {
			fprintf(to, "%s%" PRIu32 "-%" PRIu32, space, live[-1].upper, live->lower);
			space = " ";
		}
		if (live->to - live->from == b->bytes)
			continue;
		fprintf(to, "%s%" PRIu32 "-%" PRIu32 "@%" PRIu64 ":%" PRIu64, space, live->lower, live->upper,
			live->from, live->to);
		space = " ";
	}
}

void
om_report_csv(const om_report *r, FILE *to)
{
	const om_plan *plan = r->prog->plan;

	fprintf(to, "id,lower,upper,size,offset,name,gaps%s\n", plan->narena > 1 ? ",pool" : "");
	for (uint32_t k = 0; k < r->nbuffer; k++) {
		const om_report_buffer *b = &r->buffer[k];
		if (b->nlive == 0)
			continue;
		fprintf(to, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",", k, b->live[0].lower,
			b->live[b->nlive - 1].upper, b->bytes, b->offset);
		csv_text(to, b->name);
		putc(',', to);
		csv_gaps(to, b);
		if (plan->narena > 1) {
			putc(',', to);
			csv_text(to, plan->arena[b->arena].name);
		}
		putc('\n', to);
	}
}
