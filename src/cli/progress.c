/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a long search: a line on a terminal that is rewritten repeatedly, and erased
 * before any other output. */
#include <config.h>

#include <stdlib.h>
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

/* A plan takes several searches, for orders, for lifetimes, for places.  What one of them tries is not taken for what was reached: that
 * is the best of all. */
static uint64_t
best_of_all(om_cli *c, uint64_t best)
{
	if (c->progress_best == 0 || best < c->progress_best)
		c->progress_best = best;
	return c->progress_best;
}

/* Short searches display nothing. */
static void
show(void *arg, const char *what, uint64_t best, uint64_t bound)
{
	om_cli *c = arg;
	char a[32], b[32];
	const double now = om_now_ms();
	const uint64_t least = best_of_all(c, best);

	if (c->progress_ms == 0)
		c->progress_ms = now + QUIET_MS;
	if (now < c->progress_ms)
		return;
	c->progress_ms = now + AGAIN_MS;
	c->progress_shown = true;
	fprintf(stderr, "\r\033[K%s: best so far %s", what, om_bytes_text(least, a));
	if (bound <= least)      /* a search for less than what it may reach is a trial */
		fprintf(stderr, ", bound of this search %s", om_bytes_text(bound, b));
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
	c->progress_best = 0;
	c->progress_ms = 0;
}
