/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for devices as CUDA C: NVRTC, where it is found, compiles them without a GPU.  None may spill registers.
 *
 * Prints TAP, a test per architecture.  ALL=1: all types and architectures; NVRTC=FILE: the library. */
#include <config.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu/source.h"

static const char *const libraries[] = {
	"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so", "/usr/local/cuda/lib/libnvrtc.so",
};
/* The first of these are tried in `make check`. */
static const char *const architectures[] = {"sm_75", "sm_90", "sm_80", "sm_86", "sm_89", "sm_100", "sm_120"};

enum { NLIBRARY = sizeof libraries / sizeof *libraries, NARCH = sizeof architectures / sizeof *architectures, FEW = 2, WORD = 32 };

/* The functions of NVRTC, whose header is not needed. */
struct nvrtc {
	int (*create)(void **program, const char *text, const char *name, int n, const char *const *headers, const char *const *names);
	int (*compile)(void *program, int n, const char *const *options);
	int (*log_size)(void *program, size_t *n);
	int (*log)(void *program, char *to);
	int (*destroy)(void **program);
};

static bool
find(void *library, const char *name, void *function)
{
	void *symbol = dlsym(library, name);

	memcpy(function, &symbol, sizeof symbol);
	return symbol != NULL;
}

static bool
load(struct nvrtc *v)
{
	void *library = getenv("NVRTC") ? dlopen(getenv("NVRTC"), RTLD_NOW) : NULL;

	for (int k = 0; k < NLIBRARY && !library && !getenv("NVRTC"); k++)
		library = dlopen(libraries[k], RTLD_NOW);
	return library && find(library, "nvrtcCreateProgram", &v->create) && find(library, "nvrtcCompileProgram", &v->compile)
	    && find(library, "nvrtcGetProgramLogSize", &v->log_size) && find(library, "nvrtcGetProgramLog", &v->log)
	    && find(library, "nvrtcDestroyProgram", &v->destroy);
}

/* The next word of a list of types; false after the last one, which is before "to:" or the end of the comment. */
static bool
next_type(const char **at, char word[WORD])
{
	*at += strspn(*at, " ");
	const size_t n = strcspn(*at, " ");
	snprintf(word, WORD, "%.*s", (int)n, *at);
	*at += n;
	return n > 0 && word[0] != '*' && !strchr(word, ':') && !strchr(word, '\n');
}

/* Types that stand for the others where not all are compiled. */
static bool
is_wanted(const char *type, bool is_all)
{
	return is_all || strcmp(type, "f32") == 0 || strcmp(type, "u32") == 0 || strcmp(type, "i32") == 0;
}

static void
put_source(FILE *f, const om_gpu_text *source, bool is_all)
{
	const char *types = strstr(source->text, "types: ") + strlen("types: "), *to = strstr(source->text, " to: ");
	const bool has_to = to && to < strstr(source->text, "*/");
	char type[WORD], other[WORD];

	while (next_type(&types, type)) {
		const char *others = has_to ? to + strlen(" to: ") : "-";
		while (is_wanted(type, is_all) && next_type(&others, other))
			if (is_wanted(other, is_all) || !has_to)
				fprintf(f, "#undef TN\n#define TN %s\n#undef TO\n#define TO %s\n%s", type, other, source->text);
	}
}

static char *
text_of_all(bool is_all)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	fprintf(f, "%s%s", om_gpu_text_of(om_gpu_dialects, "dialect_cuda"), om_gpu_text_of(om_gpu_dialects, "language"));
	for (const om_gpu_text *s = om_gpu_sources; s->name; s++)
		put_source(f, s, is_all);
	fclose(f);
	return text;
}

/* The lines of the log that tell of kernels that spill, and their number. */
static unsigned
spills(char *log, unsigned *kernels)
{
	unsigned n = 0;
	char entry[128] = "?";

	*kernels = 0;
	for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned stores;
		const char *at = strstr(line, "Compiling entry function '");
		if (at) {
			++*kernels;
			snprintf(entry, sizeof entry, "%.*s", (int)strcspn(strchr(at, '\'') + 1, "'"), strchr(at, '\'') + 1);
		}
		at = strstr(line, " bytes stack frame, ");
		if (at && sscanf(at, " bytes stack frame, %u bytes spill stores", &stores) == 1 && stores > 0) {
			printf("# %s spills %u bytes\n", entry, stores);
			n++;
		}
	}
	return n;
}

static bool
try_architecture(const struct nvrtc *v, const char *text, const char *name, unsigned test)
{
	char option[64];
	const char *const options[] = {option, "-default-device", "-diag-suppress=177,186", "--ptxas-options=-v"};
	void *program = NULL;
	size_t n = 0;
	unsigned kernels;

	snprintf(option, sizeof option, "--gpu-architecture=%s", name);
	v->create(&program, text, "kernels.cu", 0, NULL, NULL);
	const int wrong = v->compile(program, sizeof options / sizeof *options, options);
	v->log_size(program, &n);
	char *log = calloc(1, n + 1);
	v->log(program, log);
	if (wrong)
		printf("# NVRTC: error %d: %.2000s\n", wrong, log);
	const unsigned spilled = wrong ? 0 : spills(log, &kernels);
	const bool is_right = !wrong && !spilled && kernels > 0;
	printf("%s %u - %u kernels compile for %s without spills\n", is_right ? "ok" : "not ok", test, wrong ? 0 : kernels, name);
	free(log);
	v->destroy(&program);
	return is_right;
}

int
main(void)
{
	const bool is_all = getenv("ALL") != NULL;
	const unsigned n = is_all ? NARCH : FEW;
	struct nvrtc v;
	bool is_right = true;

	if (!load(&v)) {
		printf("1..0 # SKIP there is no NVRTC on this machine\n");
		return EXIT_SUCCESS;
	}
	char *text = text_of_all(is_all);
	for (unsigned k = 0; k < n; k++)
		is_right &= try_architecture(&v, text, architectures[k], k + 1);
	printf("1..%u\n", n);
	free(text);
	return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
