/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC that compiles nothing: its code is a mark, the architecture, and the text; see mock.h. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "mock.h"

enum { INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6, CUDA_MAJOR = 13 };

struct nvrtc_program_s {
	char *text, *code;
	const char *log;
};

OM_API int
nvrtcVersion(int *major, int *minor)
{
	*major = (int)mock_number("nvrtc", CUDA_MAJOR);
	*minor = 0;
	return mock_call("nvrtcVersion");
}

OM_API const char *
nvrtcGetErrorString(int r)
{
	return r == COMPILATION ? "NVRTC_ERROR_COMPILATION" : r == INVALID_OPTION ? "NVRTC_ERROR_INVALID_OPTION" : "NVRTC_ERROR";
}

OM_API int
nvrtcCreateProgram(nvrtc_program *p, const char *text, const char *name, int n, const char *const *headers, const char *const *names)
{
	const int r = mock_call("nvrtcCreateProgram");

	if (r || !text || !name || n || headers || names)
		return r ? r : INVALID_INPUT;
	*p = calloc(1, sizeof **p);
	(*p)->text = strdup(text);
	(*p)->log = "";
	return 0;
}

/* The text must have the dialect, the language and a kernel, each once. */
static bool
is_program(const char *text)
{
	const char *language = strstr(text, "The kernel language: one source, three dialects.");

	return language && strstr(text, "The kernel language in CUDA C") < language && strstr(language, "\nOM_KERNEL(");
}

OM_API int
nvrtcCompileProgram(nvrtc_program p, int n, const char *const *options)
{
	static const char architecture[] = "--gpu-architecture=sm_";
	const int r = mock_call("nvrtcCompileProgram");
	const char *arch = NULL;

	for (int k = 0; k < n; k++)
		if (strncmp(options[k], architecture, sizeof architecture - 1) == 0)
			arch = options[k] + sizeof architecture - 1;
	p->log = r ? "onnxmem.cu(1): error: asked for by the test" : is_program(p->text) ? "" : "onnxmem.cu(1): error: this is no program";
	if (r || *p->log || !arch)
		return r ? r : *p->log ? COMPILATION : INVALID_OPTION;
	return asprintf(&p->code, "\177ELF mock %s\n%s", arch, p->text) < 0 ? COMPILATION : 0;
}

OM_API int
nvrtcGetProgramLogSize(nvrtc_program p, size_t *bytes)
{
	*bytes = strlen(p->log) + 1;
	return 0;
}

OM_API int
nvrtcGetProgramLog(nvrtc_program p, char *log)
{
	strcpy(log, p->log);
	return 0;
}

OM_API int
nvrtcGetCUBINSize(nvrtc_program p, size_t *bytes)
{
	*bytes = p->code ? strlen(p->code) + 1 : 0;
	return p->code ? mock_call("nvrtcGetCUBINSize") : INVALID_PROGRAM;
}

OM_API int
nvrtcGetCUBIN(nvrtc_program p, char *to)
{
	strcpy(to, p->code);
	return mock_call("nvrtcGetCUBIN");
}

OM_API int
nvrtcDestroyProgram(nvrtc_program *p)
{
	free((*p)->text);
	free((*p)->code);
	free(*p);
	*p = NULL;
	return mock_call("nvrtcDestroyProgram");
}
