/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads of models: a manifest lists the models, a cache has the downloaded
 * files, mirrors have the others.
 *
 * The cache has the layout of the ONNX Hub, so that both can share one:
 * DIRS_OF_PATH/SHA256_BASENAME. A file in it is complete and verified, or absent:
 * it is downloaded as NAME.part, which only one process writes at a time, its
 * SHA-256 is verified, and it is renamed.  Cached files are verified again each
 * time they are used.
 *
 * This folder is the only one that includes libcurl and libarchive.
 */
#ifndef OM_HUB_H
#define OM_HUB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "onnxmem/arena.h"
#include "onnxmem/status.h"

/* ---- The manifest. ---- */

typedef struct om_hub_file {
	const char *path;        /* relative to a mirror, and to the cache; NULL: no file */
	uint64_t bytes;          /* 0: unknown */
	const char *sha256;      /* NULL: unknown, and that of the first download is recorded; only with `url` */
	const char *url;         /* where it is; NULL: `path` on a mirror */
} om_hub_file;

typedef struct om_hub_model {
	const char *name;
	uint64_t opset;
	const char **tag;
	size_t ntag;
	om_hub_file model, data; /* `data`: an archive of the model and test data */
} om_hub_model;

typedef struct om_manifest {
	om_hub_model *model;
	size_t nmodel, capmodel;
	const char **mirror;     /* the mirrors that the manifest lists */
	size_t nmirror, capmirror;
} om_manifest;

/* Read a manifest of onnxmem or of the ONNX Hub; `where` is for messages. */
om_status om_manifest_read(om_session *s, om_arena *mem, const char *text, size_t n, const char *where,
	om_manifest *m);

/* The model of that name, case-insensitive; of that opset, or with 0 of the
 * highest.  OM_USAGE if there is none; the message lists similar names. */
om_status om_manifest_find(om_session *s, om_arena *mem, const om_manifest *m, const char *name, uint64_t opset,
	const om_hub_model **found);

/* Is it a name for om_hub_direct()? */
bool om_hub_is_direct(const char *name);

/* The file that is named by its address: "hf:ORG/REPO/FILE[@REV]", whose address starts with `hf_base`, or a URL, each with
 * an optional "#sha256=SUM".  `sum`: the checksum, if it is known otherwise; or NULL.  OM_USAGE if there are two, or none for
 * a URL, and for what is no such name. */
om_status om_hub_direct(om_session *s, om_arena *mem, const char *hf_base, const char *name, const char *sum, om_hub_file *f);

/* ---- The cache and the mirrors. ---- */

/* Called repeatedly while a file is downloaded; `all` may be 0: unknown. */
typedef void om_hub_progress(void *arg, const char *name, uint64_t now, uint64_t all);

typedef struct om_hub {
	om_session *session;
	om_arena *mem;
	const char *cache;       /* a folder, created on demand */
	const char **mirror;     /* base URLs, in order of preference */
	size_t nmirror, capmirror;
	bool offline;            /* use the cache alone */
	double timeout;          /* seconds to connect, and seconds a transfer may stall */
	double delay;            /* seconds before the second attempt; doubled for each one after */
	uint64_t attempts;        /* attempts at one mirror without progress */
	uint64_t unpack_limit;     /* maximum unpacked size of an archive in bytes; 0: derived from its size */
	uint64_t size_limit;       /* maximum bytes of a file */
	uint64_t min_rate;         /* bytes per second, on average over a transfer; slower ones are ended */
	double max_time;           /* seconds for a file, with all attempts and waits */
	om_hub_progress *progress;
	void *progress_arg;
	struct om_transfer_hook *hook;   /* makes transfers where there is no module for them; NULL: nothing does */

	uint64_t nfetched, ncached, bytes;   /* results: files downloaded, files from the cache, bytes received */
} om_hub;

/* $ONNX_HOME/hub, else $XDG_CACHE_HOME/onnx/hub, else ~/.cache/onnx/hub. */
om_status om_hub_cache_folder(om_session *s, om_arena *mem, const char **folder);

/* The user's configuration file: lines "mirror = URL" and "manifest = URL"; a
 * missing file is empty. */
typedef struct om_hub_config {
	const char **mirror;
	size_t nmirror, capmirror;
	const char *manifest;
	const char *hf;          /* base URL of names that start with hf: */
} om_hub_config;

om_status om_hub_config_read(om_session *s, om_arena *mem, om_hub_config *config);

/* The path of a file in the cache, complete and verified; it is downloaded if
 * necessary.  The message of OM_DOWNLOAD has every mirror and its error. */
om_status om_hub_fetch(om_hub *h, const om_hub_file *f, const char **path);

/* The folder next to a cached archive into which it was unpacked. */
om_status om_hub_unpack(om_hub *h, const char *archive, const char **folder);

/* Where models come from, before the environment and the configuration file. */
typedef struct om_hub_source {
	const char *const *mirror;   /* base URLs; none: of the environment, the configuration file or the manifest */
	size_t nmirror;
	const char *manifest;        /* a path or URL; NULL: of the environment or the configuration file, or: */
	const char *builtin;         /* the path of the installed one */
	const char *hf_base;         /* of names that start with hf:; NULL: as for the manifest, or https://huggingface.co */
} om_hub_source;

/* A hub with the usual limits, without cache and mirrors. */
om_hub om_hub_usual(om_session *s, om_arena *mem);

/* Find the cache folder, unless it is set, and, unless `m` is NULL, read the manifest and find the mirrors. */
om_status om_hub_open(om_hub *h, const om_hub_source *src, om_manifest *m);

/* The file of a name for which om_hub_is_direct() holds; `sum`: its checksum, or NULL. */
om_status om_hub_address(om_hub *h, const om_hub_source *src, const char *name, const char *sum, om_hub_file *f);

/* The path of a model of the manifest: of its opset, or with 0 the highest; or of the unpacked folder of its archive with
 * data. */
om_status om_hub_model_of(om_hub *h, const om_manifest *m, const char *name, uint64_t opset, bool with_data, const char **path);

/* Read a manifest from a path or URL. A downloaded manifest is cached, and used
 * when a later download fails. */
om_status om_hub_manifest(om_hub *h, const char *where, om_manifest *m);

/* ---- Internal. ---- */

enum om_transfer_end {
	OM_TRANSFER_DONE,     /* complete */
	OM_TRANSFER_RETRY,    /* incomplete; another attempt may succeed */
	OM_TRANSFER_FAILED,    /* this URL cannot provide it */
	OM_TRANSFER_LOCAL_ERROR,    /* local failure: it cannot be written */
};

/* One request: the content of `url` is appended to the file `fd`. */
typedef struct om_transfer {
	const char *url;
	int fd;
	uint64_t expected;       /* total bytes; more is refused; 0: unknown */
	uint64_t limit;          /* more bytes are refused where `expected` is 0 */
	double timeout;
	uint64_t min_rate;       /* bytes per second on average, required after `timeout` seconds */
	double deadline;         /* time at which it is ended, by om_now_ms() */
	void (*progress)(void *arg, uint64_t now, uint64_t all);
	void *progress_arg;
	struct om_transfer_hook *hook;   /* as in om_hub */

	enum om_transfer_end end;
	uint64_t received;           /* bytes received */
	double retry_after;             /* seconds of delay that the server requests */
	char reason[400];           /* reason, a clause for messages */
} om_transfer;

/* Something that makes transfers. */
typedef struct om_transfer_hook {
	void (*run)(void *arg, om_transfer *t);
	void *arg;
} om_transfer_hook;

void om_transfer_run(om_transfer *t);

/* A URL for messages: without user, password and query. */
const char *om_url_for_messages(om_arena *mem, const char *url);
bool om_is_url(const char *text);
/* `base`/`path`, with reserved characters as %XX; a query of `base` is kept at the
 * end. */
const char *om_url_join(om_arena *mem, const char *base, const char *path);

/* 64 hexadecimal digits? */
bool om_is_sha256(const char *text);
/* Is this a relative path that stays inside the folder it is joined to? */
bool om_path_is_safe(const char *path);
om_status om_make_parent_folders(om_session *s, const char *path);  /* its parent folders */
void om_remove_folder(const char *path);       /* recursively */
om_status om_file_sha256(om_session *s, om_arena *mem, int fd, const char *path, char text[65]);
om_status om_read_all(om_session *s, om_arena *mem, const char *path, uint64_t limit, char **text, size_t *n);

#endif
