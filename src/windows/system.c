/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of Windows, under the names of POSIX; see system.h. */
#include <config.h>

#undef open
#undef fopen
#undef freopen
#undef rename
#undef access
#undef sysconf

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "base/system.h"
#include "windows/dlfcn.h"
#include "windows/sys/file.h"
#include "windows/sys/ioctl.h"
#include "windows/sys/mman.h"

enum { PATH = 4096 };

static int
failed(DWORD error)
{
	static const struct { DWORD error; int is; } known[] = {
		{ERROR_FILE_NOT_FOUND, ENOENT}, {ERROR_PATH_NOT_FOUND, ENOENT}, {ERROR_INVALID_NAME, ENOENT}, {ERROR_BAD_NETPATH, ENOENT},
		{ERROR_INVALID_DRIVE, ENOENT}, {ERROR_ACCESS_DENIED, EACCES}, {ERROR_USER_MAPPED_FILE, EACCES}, {ERROR_SHARING_VIOLATION, EACCES}, {ERROR_WRITE_PROTECT, EROFS},
		{ERROR_LOCK_VIOLATION, EWOULDBLOCK}, {ERROR_IO_PENDING, EWOULDBLOCK}, {ERROR_FILE_EXISTS, EEXIST}, {ERROR_ALREADY_EXISTS, EEXIST},
		{ERROR_DISK_FULL, ENOSPC}, {ERROR_HANDLE_DISK_FULL, ENOSPC}, {ERROR_NOT_ENOUGH_MEMORY, ENOMEM}, {ERROR_COMMITMENT_LIMIT, ENOMEM},
		{ERROR_INVALID_HANDLE, EBADF}, {ERROR_TOO_MANY_OPEN_FILES, EMFILE}, {ERROR_DIRECTORY, ENOTDIR},
	};

	errno = EIO;
	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
		if (known[k].error == error)
			errno = known[k].is;
	return -1;
}

static HANDLE
handle_of(int fd)
{
	return (HANDLE)_get_osfhandle(fd);
}

/* ---- What a file is. ---- */

static struct timespec
time_of(FILETIME t)
{
	const int64_t ticks = (int64_t)((uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime);   /* of 100 ns, since 1601 */

	return (struct timespec){(time_t)(ticks / 10000000 - 11644473600), (long)(ticks % 10000000 * 100)};
}

static void
describe(const BY_HANDLE_FILE_INFORMATION *i, struct om_windows_stat *st)
{
	*st = (struct om_windows_stat){
		.st_dev = i->dwVolumeSerialNumber, .st_ino = (uint64_t)i->nFileIndexHigh << 32 | i->nFileIndexLow,
		.st_mode = (i->dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? S_IFDIR | 0777 : S_IFREG | 0666),
		.st_nlink = i->nNumberOfLinks, .st_size = (int64_t)((uint64_t)i->nFileSizeHigh << 32 | i->nFileSizeLow),
		.st_mtim = time_of(i->ftLastWriteTime), .st_ctim = time_of(i->ftLastWriteTime),
	};
}

/* Terminals and pipes have no number but that of their handle. */
static int
describe_handle(HANDLE h, struct om_windows_stat *st)
{
	BY_HANDLE_FILE_INFORMATION i;

	if (h == INVALID_HANDLE_VALUE)
		return failed(ERROR_INVALID_HANDLE);
	const DWORD type = GetFileType(h);
	if (type == FILE_TYPE_DISK) {
		if (!GetFileInformationByHandle(h, &i))
			return failed(GetLastError());
		describe(&i, st);
	} else {
		*st = (struct om_windows_stat){.st_dev = UINT64_MAX, .st_ino = (uint64_t)(uintptr_t)h, .st_nlink = 1,
			.st_mode = (type == FILE_TYPE_PIPE ? S_IFIFO : S_IFCHR) | 0666};
	}
	return 0;
}

int
om_windows_fstat(int fd, struct om_windows_stat *st)
{
	return describe_handle(handle_of(fd), st);
}

int
om_windows_stat(const char *path, struct om_windows_stat *st)
{
	const HANDLE h = CreateFileA(path, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
		FILE_FLAG_BACKUP_SEMANTICS, NULL);

	if (h == INVALID_HANDLE_VALUE)
		return failed(GetLastError());
	const int got = describe_handle(h, st);
	CloseHandle(h);
	return got;
}

int
om_windows_access(const char *path, int mode)
{
	const DWORD attributes = GetFileAttributesA(path);

	if (attributes == INVALID_FILE_ATTRIBUTES)
		return failed(GetLastError());
	if (mode & W_OK && attributes & FILE_ATTRIBUTE_READONLY && !(attributes & FILE_ATTRIBUTE_DIRECTORY))
		return failed(ERROR_ACCESS_DENIED);
	return 0;
}

/* ---- Opening, renaming. ---- */

static bool
is_null_device(const char *path)
{
	return strcmp(path, "/dev/null") == 0;
}

int
om_windows_open(const char *path, int flags, ...)
{
	const DWORD what = flags & O_RDWR ? GENERIC_READ | GENERIC_WRITE : flags & O_WRONLY ? GENERIC_WRITE : GENERIC_READ;
	const DWORD how = !(flags & O_CREAT) ? flags & O_TRUNC ? TRUNCATE_EXISTING : OPEN_EXISTING
		: flags & O_EXCL ? CREATE_NEW : flags & O_TRUNC ? CREATE_ALWAYS : OPEN_ALWAYS;
	const HANDLE h = CreateFileA(is_null_device(path) ? "NUL" : path, what, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, how,
		FILE_ATTRIBUTE_NORMAL, NULL);

	if (h == INVALID_HANDLE_VALUE)
		return failed(GetLastError());
	const int fd = _open_osfhandle((intptr_t)h, _O_BINARY | _O_NOINHERIT | (flags & (O_APPEND | O_WRONLY | O_RDWR)));
	if (fd < 0)
		CloseHandle(h);
	return fd;
}

/* By way of the descriptor, for what open() promises. */
FILE *
om_windows_fopen(const char *path, const char *mode)
{
	const int access = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
	const int made = *mode == 'r' ? 0 : *mode == 'w' ? O_CREAT | O_TRUNC : O_CREAT | O_APPEND;
	const int fd = om_windows_open(path, access | made | (strchr(mode, 'x') ? O_EXCL : 0), 0666);
	const char plain[] = {*mode, 'b', strchr(mode, '+') ? '+' : '\0', '\0'};
	FILE *file = fd < 0 ? NULL : _fdopen(fd, plain);

	if (fd >= 0 && !file)
		_close(fd);
	return file;
}

FILE *
om_windows_freopen(const char *path, const char *mode, FILE *file)
{
	return freopen(is_null_device(path) ? "NUL" : path, mode, file);
}

int
om_windows_rename(const char *from, const char *to)
{
	return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) ? 0 : failed(GetLastError());
}

/* A byte beyond all contents, because what is locked cannot be read by others. */
int
om_windows_flock(int fd, int how)
{
	OVERLAPPED at = {.Offset = UINT32_MAX - 1, .OffsetHigh = INT32_MAX};
	const DWORD flags = (how & LOCK_EX ? LOCKFILE_EXCLUSIVE_LOCK : 0) | (how & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0);

	if (how & LOCK_UN)
		return UnlockFileEx(handle_of(fd), 0, 1, 0, &at) ? 0 : failed(GetLastError());
	return LockFileEx(handle_of(fd), flags, 0, 1, 0, &at) ? 0 : failed(GetLastError());
}

int64_t
om_windows_pwrite(int fd, const void *data, size_t n, int64_t at)
{
	OVERLAPPED where = {.Offset = (DWORD)at, .OffsetHigh = (DWORD)((uint64_t)at >> 32)};
	DWORD written = 0;

	const int64_t was = _lseeki64(fd, 0, SEEK_CUR);

	if (!WriteFile(handle_of(fd), data, n > INT_MAX ? INT_MAX : (DWORD)n, &written, &where))
		return failed(GetLastError());
	_lseeki64(fd, was, SEEK_SET);
	return written;
}

/* Files do not block, and are not inherited. */
int
om_windows_fcntl(int fd, int what, ...)
{
	(void)fd;
	(void)what;
	return 0;
}

/* At a position of its own; that of the descriptor stays. */
int64_t
om_windows_pread(int fd, void *data, size_t n, int64_t at)
{
	const HANDLE h = handle_of(fd);
	const int64_t was = _lseeki64(fd, 0, SEEK_CUR);
	OVERLAPPED where = {.Offset = (DWORD)at, .OffsetHigh = (DWORD)((uint64_t)at >> 32)};
	DWORD got = 0;

	if (!ReadFile(h, data, n > INT_MAX ? INT_MAX : (DWORD)n, &got, &where) && GetLastError() != ERROR_HANDLE_EOF)
		return failed(GetLastError());
	_lseeki64(fd, was, SEEK_SET);
	return got;
}

/* Folders are removed like files. */
int
om_windows_remove(const char *path)
{
	return _unlink(path) == 0 || _rmdir(path) == 0 ? 0 : -1;
}

/* With slashes, as in POSIX. */
static char *
with_slashes(char *path)
{
	for (char *at = path; at && (at = strchr(at, '\\'));)
		*at = '/';
	return path;
}

char *
om_path_slash(const char *path)
{
	char *slash = strrchr(path, '/'), *other = strrchr(path, '\\');

	return other && (!slash || other > slash) ? other : slash;
}

bool
om_path_is_absolute(const char *path)
{
	return *path == '/' || *path == '\\' || (*path && path[1] == ':');
}

void
om_temporary_folder(char *out, size_t n)
{
	char folder[MAX_PATH + 1];
	const DWORD length = GetTempPathA(sizeof folder, folder);

	if (length && length < sizeof folder && length < n)
		snprintf(out, n, "%.*s", (int)length - 1, with_slashes(folder));
	else
		snprintf(out, n, ".");
}

char *
om_windows_realpath(const char *path)
{
	struct om_windows_stat st;

	return om_windows_stat(path, &st) == 0 ? with_slashes(_fullpath(NULL, path, PATH)) : NULL;
}

char *
om_windows_mkdtemp(char *name)
{
	return _mktemp(name) && _mkdir(name) == 0 ? name : NULL;
}

int64_t
om_windows_getline(char **line, size_t *cap, FILE *in)
{
	size_t n = 0;
	int c;

	while ((c = getc(in)) != EOF) {
		if (n + 2 > *cap) {
			char *more = realloc(*line, 2 * *cap + 128);
			if (!more)
				return -1;
			*line = more;
			*cap = 2 * *cap + 128;
		}
		(*line)[n++] = (char)c;
		(*line)[n] = '\0';
		if (c == '\n')
			break;
	}
	return n ? (int64_t)n : -1;
}

/* ---- Memory. ---- */

char *
om_windows_strndup(const char *text, size_t n)
{
	const size_t size = strnlen(text, n);
	char *copy = malloc(size + 1);

	if (copy) {
		memcpy(copy, text, size);
		copy[size] = '\0';
	}
	return copy;
}

void *
om_aligned_new(size_t align, size_t n)
{
	return _aligned_malloc(n ? n : 1, align);
}

void
om_aligned_free(void *data)
{
	_aligned_free(data);
}

void *
mmap(void *at, size_t size, int prot, int flags, int fd, int64_t offset)
{
	void *data = NULL;

	(void)at;
	if (flags & MAP_ANONYMOUS) {
		data = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	} else if (prot == PROT_READ && offset == 0) {
		const HANDLE map = CreateFileMappingA(handle_of(fd), NULL, PAGE_READONLY, 0, 0, NULL);
		data = map ? MapViewOfFile(map, FILE_MAP_READ, 0, 0, size) : NULL;
		const DWORD error = GetLastError();
		if (map)
			CloseHandle(map);
		SetLastError(error);
	} else {
		SetLastError(ERROR_NOT_SUPPORTED);
	}
	if (data)
		return data;
	failed(GetLastError());
	return MAP_FAILED;
}

/* Of a file, or of no file. */
int
munmap(void *data, size_t size)
{
	(void)size;
	return UnmapViewOfFile(data) || VirtualFree(data, 0, MEM_RELEASE) ? 0 : failed(GetLastError());
}

/* ---- Modules. ---- */

void *
dlopen(const char *file, int how)
{
	(void)how;
	return (void *)LoadLibraryA(file);
}

void *
dlsym(void *module, const char *symbol)
{
	const FARPROC function = GetProcAddress(module, symbol);
	void *address;

	memcpy(&address, &function, sizeof address);
	return address;
}

int
dlclose(void *module)
{
	return FreeLibrary(module) ? 0 : -1;
}

char *
dlerror(void)
{
	static _Thread_local char text[256];
	const DWORD error = GetLastError();
	DWORD n = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, error, 0, text, sizeof text, NULL);

	while (n && strchr("\r\n. ", text[n - 1]))
		text[--n] = '\0';
	return n ? text : NULL;
}

int
dladdr(const void *address, Dl_info *out)
{
	static _Thread_local char path[PATH];
	HMODULE module;

	if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, address, &module)
	    || GetModuleFileNameA(module, path, sizeof path) == 0)
		return 0;
	out->dli_fname = with_slashes(path);
	return 1;
}

/* ---- The machine. ---- */

long
om_windows_sysconf(int name)
{
	SYSTEM_INFO info;
	MEMORYSTATUSEX memory = {.dwLength = sizeof memory};

	GetSystemInfo(&info);
	switch (name) {
	case _SC_PAGESIZE: return (long)info.dwPageSize;
	case _SC_NPROCESSORS_ONLN: return (long)info.dwNumberOfProcessors;
	case _SC_PHYS_PAGES: return GlobalMemoryStatusEx(&memory) ? (long)(memory.ullTotalPhys / info.dwPageSize) : -1;
	default: return -1;
	}
}

int
ioctl(int fd, int what, struct winsize *out)
{
	CONSOLE_SCREEN_BUFFER_INFO info;

	if (what != TIOCGWINSZ || !GetConsoleScreenBufferInfo(handle_of(fd), &info))
		return failed(ERROR_INVALID_HANDLE);
	out->ws_col = (unsigned short)(info.srWindow.Right - info.srWindow.Left + 1);
	out->ws_row = (unsigned short)(info.srWindow.Bottom - info.srWindow.Top + 1);
	return 0;
}

/* ---- Streams in memory: temporary files, which the system writes nowhere as long as there is memory. ---- */

FILE *
om_memory_stream_open(struct om_memory_stream *m)
{
	char folder[MAX_PATH], path[MAX_PATH];

	*m = (struct om_memory_stream){0};
	if (!GetTempPathA(sizeof folder, folder) || !GetTempFileNameA(folder, "onx", 0, path))
		return NULL;
	const HANDLE h = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
		FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
	const int fd = h == INVALID_HANDLE_VALUE ? -1 : _open_osfhandle((intptr_t)h, _O_BINARY | _O_RDWR | _O_NOINHERIT);
	m->to = fd < 0 ? NULL : _fdopen(fd, "w+b");
	return m->to;
}

char *
om_memory_stream_close(struct om_memory_stream *m, size_t *size)
{
	const bool is_whole = !ferror(m->to) && fflush(m->to) == 0;
	const int64_t n = is_whole ? _ftelli64(m->to) : -1;
	char *data = n < 0 ? NULL : malloc((size_t)n + 1);

	rewind(m->to);
	if (data && fread(data, 1, (size_t)n, m->to) != (size_t)n) {
		free(data);
		data = NULL;
	}
	if (data)
		data[n] = '\0';
	*size = data ? (size_t)n : 0;
	fclose(m->to);
	return data;
}

int
om_windows_sigmask(int how, const int *set, int *was)
{
	(void)how;
	*was = *set;
	return 0;
}

/* ---- At the start of a process. ---- */

/* What goes through standard input and output is bytes. */
__attribute__((constructor)) static void
start(void)
{
	for (int fd = 0; fd <= 2; fd++)
		_setmode(fd, _O_BINARY);
}
