/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching models: from the public model zoo by name, from Hugging Face, or from an address; cached and verified.
 *
 * The cache is shared with `onnxmem fetch` and with the ONNX Hub.  Transfers are made by the module onnxmem-hub.so, which is
 * beside the library where it is installed; a program that has none brings a function for them.
 */
#ifndef OM_FETCH_H
#define OM_FETCH_H

#include "onnxmem/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a transfer ended. */
typedef enum om_fetch_end {
	OM_FETCH_DONE,      /* all that the server has is in the file */
	OM_FETCH_RETRY,     /* not all; another attempt may succeed */
	OM_FETCH_FAILED,    /* this address cannot provide it */
	OM_FETCH_LOCAL,     /* it cannot be written */
} om_fetch_end;

/* A transfer: the content of `url` replaces that of the file `fd`. */
typedef struct om_fetch_transfer {
	const char *url;         /* http or https */
	int fd;                  /* open for writing; the file may have bytes of an earlier attempt */
	uint64_t most;           /* a server that sends more bytes fails */
	double seconds;          /* to connect, and without data, that a transfer may take */
	void (*progress)(void *progress_arg, uint64_t now, uint64_t all); /* to be called meanwhile; `all` 0: not known */
	void *progress_arg;      /* for it */
	om_fetch_end end;        /* out */
	double retry_after;      /* out: seconds that the server asks to wait; 0: it does not say */
	char reason[400];        /* out: unless OM_FETCH_DONE, a clause for messages */
} om_fetch_transfer;

/* What fetches, from where, and how.  Initialize it with OM_FETCH_OPTIONS(). */
typedef struct om_fetch_options {
	size_t size;             /* of this struct, as the program was compiled */
	const char *cache;       /* folder; NULL: that of the ONNX Hub */
	const char *const *mirror; /* base addresses; none: of the environment, the configuration or the manifest */
	size_t nmirror;          /* how many */
	const char *manifest;    /* path or address of the list of models; NULL: that of the environment, or the installed one */
	const char *builtin;     /* path of the installed one; NULL: where `make install` puts it */
	const char *hf_base;     /* address of names that start with hf:; NULL: https://huggingface.co */
	const char *sha256;      /* of a file with an address; NULL: that in the name, or recorded at the first download */
	uint64_t opset;          /* of a model of the manifest; 0: the highest */
	bool with_data;          /* the folder with model and test data of a model of the manifest */
	bool offline;            /* the cache alone */
	double timeout;          /* seconds to connect, and without data; 0: 30 */
	uint64_t attempts;       /* at one mirror without progress; 0: 5 */
	double retry_delay;      /* seconds before the second attempt, doubled for each one after; 0: 1 */
	void (*progress)(void *arg, const char *name, uint64_t now, uint64_t all); /* called meanwhile; NULL: nothing */
	void (*transfer)(void *arg, om_fetch_transfer *t); /* makes transfers if there is no module; NULL: that fails */
	void *arg;               /* for both */
} om_fetch_options;

/* Options with the given members; the others are zero. */
#define OM_FETCH_OPTIONS(...) {.size = sizeof(om_fetch_options), __VA_ARGS__}

/* Fetch the model that `name` denotes: one of the manifest, "hf:ORG/REPO/FILE[@REV]", or an address with "#sha256=SUM".  `*path` is
 * where it is in the cache, complete and verified, and freed by the caller with free(); NULL on failure.  OM_USAGE for a name that
 * there is not, with similar ones; OM_DOWNLOAD with every mirror and its error. */
OM_API om_status om_fetch(om_session *s, const char *name, const om_fetch_options *o, char **path);

#ifdef __cplusplus
}
#endif

#endif
