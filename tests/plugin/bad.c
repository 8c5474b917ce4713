/* SPDX-License-Identifier: Apache-2.0 */
/* bad: a pass that does what no pass may do.  See tests/regress.test. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <onnxmem/pass.h>

static void
sleep_for(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	nanosleep(&t, NULL);
}

static om_status
run(om_run *r, om_prog *p)
{
	const char *how = om_option(r, "how");

	(void)p;
	if (strcmp(how, "crash") == 0)
		kill(getpid(), SIGSEGV);
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "hang") == 0)
		sleep_for(1000);
	if (strcmp(how, "exit") == 0)
		_exit(7);
	if (strcmp(how, "slow") == 0)
		sleep_for(1);
	if (strcmp(how, "shout") == 0) {
		puts("not ok 1 - nobody asked me");
		fflush(stdout);
	}
	if (strcmp(how, "fail") == 0)
		return om_fail(r->session, OM_INVALID, "it was meant to fail");
	return OM_OK;
}

static const om_pass_option options[] = {{"how", "", "what to do"}, {0}};

OM_PASS(
	.name = "bad",
	.brief = "do what no pass may do",
	.keeps = OM_HAS_ALL,
	.options = options,
	.run = run)
