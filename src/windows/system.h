/* SPDX-License-Identifier: Apache-2.0 */
/* What sources take from POSIX, for Windows: config.h includes this file there, so that it is before all others.
 *
 * The names are those of POSIX, and stand for the functions of system.c: files are opened so that they may be renamed and removed
 * while they are open, their names are in the code page of the process, their contents are bytes and not lines, and they
 * have a number each.  Headers that Windows lacks are in this folder, under their names: dlfcn.h, poll.h, sys/mman.h and so on.
 */
#ifndef OM_WINDOWS_SYSTEM_H
#define OM_WINDOWS_SYSTEM_H

#include <direct.h>
#include <dirent.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ---- Files. ---- */

struct om_windows_stat {
	uint64_t st_dev, st_ino;
	unsigned st_mode, st_nlink;
	int64_t st_size;
	struct timespec st_mtim, st_ctim;
};

int om_windows_stat(const char *path, struct om_windows_stat *st);
int om_windows_fstat(int fd, struct om_windows_stat *st);
int om_windows_open(const char *path, int flags, ...);
FILE *om_windows_fopen(const char *path, const char *mode);
FILE *om_windows_freopen(const char *path, const char *mode, FILE *file);
int om_windows_rename(const char *from, const char *to);
int om_windows_remove(const char *path);
int om_windows_access(const char *path, int mode);
int om_windows_flock(int fd, int how);
int64_t om_windows_pread(int fd, void *data, size_t n, int64_t at);
int64_t om_windows_pwrite(int fd, const void *data, size_t n, int64_t at);
char *om_windows_realpath(const char *path);
int64_t om_windows_getline(char **line, size_t *cap, FILE *in);
char *om_windows_mkdtemp(char *name);
int om_windows_fcntl(int fd, int what, ...);
char *om_windows_strndup(const char *text, size_t n);

#undef stat
#undef fstat
#undef lstat
#define stat om_windows_stat
#define fstat om_windows_fstat
#define lstat om_windows_stat     /* links are followed, and none leads nowhere */
#define open om_windows_open
#define fopen om_windows_fopen
#define freopen om_windows_freopen
#define rename om_windows_rename
#define remove om_windows_remove
#define access om_windows_access
#define flock om_windows_flock
#define pread om_windows_pread
#define pwrite om_windows_pwrite
#define realpath(path, out) om_windows_realpath(path)
#define getline om_windows_getline
#define mkdtemp om_windows_mkdtemp
#define mkdir(path, mode) _mkdir(path)
#define fsync _commit
#define fchmod(fd, mode) 0        /* a file is replaced by one that is as new ones are */
#define fcntl om_windows_fcntl
#define strndup om_windows_strndup
#define dev_t uint64_t
#define ino_t uint64_t

enum { F_GETFL, F_SETFL, F_SETFD, FD_CLOEXEC };

/* What is so anyway, or has no meaning. */
#define O_CLOEXEC 0
#define O_NOFOLLOW 0
#define O_NONBLOCK 0
#define O_NOCTTY 0
#define O_DIRECTORY 0

#ifndef S_ISBLK
#define S_ISBLK(mode) 0
#endif
#define S_ISSOCK(mode) ((void)(mode), 0)

/* ---- The machine. ---- */

enum { _SC_PAGESIZE = 1, _SC_PHYS_PAGES, _SC_NPROCESSORS_ONLN };

long om_windows_sysconf(int name);

#define sysconf om_windows_sysconf

/* Signals are not for threads here. */
#define sigset_t int
#define sigfillset(set) (*(set) = 0)
#undef pthread_sigmask
#define pthread_sigmask om_windows_sigmask

int om_windows_sigmask(int how, const int *set, int *was);

#endif
