/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that run the same command, and get to their job in that way; see process.h. */
#include <config.h>

#include <errno.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "cli/process.h"

/* Number of a job, and the handle of the pipe that it writes to. */
static const char JOB[] = "ONNXMEM_JOB";

bool
om_process_is_job(size_t *k, int *to)
{
	const char *set = getenv(JOB);
	unsigned long long job, handle;

	if (!set || sscanf(set, "%llu:%llu", &job, &handle) != 2)
		return false;
	*k = (size_t)job;
	*to = _open_osfhandle((intptr_t)handle, _O_BINARY | _O_WRONLY);
	return *to >= 0;
}

/* The process gets the handles that can be inherited, which are these alone. */
static bool
start_command(PROCESS_INFORMATION *made, HANDLE null)
{
	STARTUPINFOW how = {.cb = sizeof how, .dwFlags = STARTF_USESTDHANDLES, .hStdInput = null, .hStdOutput = null,
		.hStdError = GetStdHandle(STD_ERROR_HANDLE)};
	wchar_t program[4096];

	return GetModuleFileNameW(NULL, program, sizeof program / sizeof *program)
	    && CreateProcessW(program, GetCommandLineW(), NULL, NULL, TRUE, 0, NULL, NULL, &how, made);
}

static bool
start_with_pipe(PROCESS_INFORMATION *made, size_t k, HANDLE to)
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
	const HANDLE null = CreateFileA("NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, NULL);
	char job[64];

	snprintf(job, sizeof job, "%zu:%llu", k, (unsigned long long)(uintptr_t)to);
	SetEnvironmentVariableA(JOB, job);
	const bool is_started = null != INVALID_HANDLE_VALUE && start_command(made, null);
	SetEnvironmentVariableA(JOB, NULL);
	if (null != INVALID_HANDLE_VALUE)
		CloseHandle(null);
	return is_started;
}

bool
om_process_start(struct om_process *p, size_t k, void (*run)(void *arg, int to), void *arg, const struct om_process *other, size_t n)
{
	PROCESS_INFORMATION made;
	HANDLE from, to;

	(void)run;
	(void)arg;
	(void)other;
	(void)n;
	errno = EAGAIN;
	if (!CreatePipe(&from, &to, NULL, 0))
		return false;
	SetHandleInformation(to, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
	const bool is_started = start_with_pipe(&made, k, to);
	CloseHandle(to);
	if (!is_started) {
		CloseHandle(from);
		return false;
	}
	CloseHandle(made.hThread);
	*p = (struct om_process){(intptr_t)made.hProcess, _open_osfhandle((intptr_t)from, _O_BINARY | _O_RDONLY)};
	return true;
}

/* There is something to read, or nothing ever will be. */
static bool
is_ready(const struct om_process *p)
{
	DWORD n = 0;

	return !PeekNamedPipe((HANDLE)_get_osfhandle(p->from), NULL, 0, NULL, &n, NULL) || n;
}

/* A pipe cannot be waited for together with others. */
bool
om_process_wait(const struct om_process *p, size_t n, int ms, bool *ready)
{
	enum { PAUSE = 5 };
	bool some = false;

	for (int waited = 0;; waited += PAUSE) {
		for (size_t k = 0; k < n; k++)
			some |= ready[k] = is_ready(&p[k]);
		if (some || (ms >= 0 && waited >= ms))
			return some;
		Sleep(PAUSE);
	}
}

void
om_process_kill(const struct om_process *p)
{
	TerminateProcess((HANDLE)p->id, 1);
}

/* What ends a process by an exception is an error of the system, in the highest bits. */
const char *
om_process_end(const struct om_process *p, om_arena *mem)
{
	const HANDLE process = (HANDLE)p->id;
	DWORD status = 1;

	_close(p->from);
	WaitForSingleObject(process, INFINITE);
	GetExitCodeProcess(process, &status);
	CloseHandle(process);
	if (status >> 28 == 0xc)
		return om_printf(mem, "crashed: exception %08lx", (unsigned long)status);
	return status ? om_printf(mem, "ended with status %lu", (unsigned long)status) : NULL;
}
