/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that were forked: there are none on Windows.  See ../system.h. */
#ifndef OM_WINDOWS_WAIT_H
#define OM_WINDOWS_WAIT_H

#include <errno.h>

#define fork() (errno = ENOSYS, (pid_t)-1)
#define waitpid(pid, status, how) ((void)(pid), *(status) = 0, errno = ECHILD, -1)
#define WIFEXITED(status) ((void)(status), 1)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) ((void)(status), 0)
#define WTERMSIG(status) (status)

#endif
