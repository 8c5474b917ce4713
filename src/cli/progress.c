/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a long search: a line on a terminal that is rewritten repeatedly, and erased
 * before any other output. */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "report/report.h"

enum { QUIET_MS = 400, AGAIN_MS = 100 };

bool
om_cli_may_show(const om_cli *c)
{
	const char *plain = getenv("NO_COLOR");
	return !c->quiet && !(plain && *plain) && isatty(STDERR_FILENO);
}

/* A trial that is worse than what was reached for the same bound is not progress. */
static bool
is_worse(om_cli *c, const char *what, uint64_t best, uint64_t bound)
{
	if (c->progress_what && strcmp(c->progress_what, what) == 0 && bound <= c->progress_bound && best > c->progress_best)
		return true;
	c->progress_what = what;
	c->progress_best = best;
	c->progress_bound = bound;
	return false;
}

/* Short searches display nothing. */
static void
show(void *arg, const char *what, uint64_t best, uint64_t bound)
{
	om_cli *c = arg;
	char a[32], b[32];
	const double now = om_now_ms();

	if (c->progress_ms == 0)
		c->progress_ms = now + QUIET_MS;
	if (is_worse(c, what, best, bound) || now < c->progress_ms)
		return;
	c->progress_ms = now + AGAIN_MS;
	c->progress_shown = true;
	fprintf(stderr, "\r\033[K%s: best %s, bound %s, gap %.2f %%", what, om_bytes_text(best, a), om_bytes_text(bound, b),
		100 * om_report_gap(best > bound ? best : bound, bound));
	fflush(stderr);
}

void
om_cli_bar(om_cli *c, const char *what, uint64_t done, uint64_t all, const char *note)
{
	enum { CELLS = 24 };
	char bar[CELLS + 1];
	const double now = om_now_ms();

	if (!om_cli_may_show(c) || (c->progress_ms > 0 && now < c->progress_ms))
		return;
	c->progress_ms = now + AGAIN_MS;
	c->progress_shown = true;
	for (unsigned k = 0; k < CELLS; k++)
		bar[k] = all && k * all < done * CELLS ? '#' : '.';
	bar[CELLS] = '\0';
	fprintf(stderr, "\r\033[K%s [%s] %llu/%llu %s", what, bar, (unsigned long long)done, (unsigned long long)all, note);
	fflush(stderr);
}

void
om_cli_progress(om_cli *c)
{
	if (om_cli_may_show(c))
		om_session_progress(c->session, show, c);
}

void
om_cli_progress_end(om_cli *c)
{
	if (c->progress_shown)
		fputs("\r\033[K", stderr);
	c->progress_shown = false;
	c->progress_what = NULL;
	c->progress_ms = 0;
}
