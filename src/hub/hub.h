/* Fetching models: a manifest that says what there is, a cache of what was
 * fetched, and mirrors to fetch the rest from.
 *
 * The cache is laid out as the ONNX Hub has it, so that both may share one:
 * DIRS_OF_PATH/SHA256_BASENAME.  A file in it is complete and right or it is
 * not there: it grows as NAME.part, which only one process at a time writes,
 * is compared with its SHA-256, and is then renamed.  What is in the cache is
 * compared again each time it is used.
 *
 * This folder is the only one that sees libcurl and libarchive.
 */
#ifndef OM_HUB_H
#define OM_HUB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "onnxmem/arena.h"
#include "onnxmem/status.h"

/* ---- What there is. ---- */

typedef struct om_hub_file {
	const char *path;        /* below a mirror, and below the cache; NULL: there is none */
	uint64_t bytes;          /* 0: not known */
	const char *sha256;
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
	const char **mirror;     /* where the manifest says that the files are */
	size_t nmirror, capmirror;
} om_manifest;

/* Read a manifest of ours or one of the ONNX Hub; `where` is for messages. */
om_status om_manifest_read(om_session *s, om_arena *mem, const char *text, size_t n, const char *where,
	om_manifest *m);

/* The model of that name, in letters of any case; of that opset, or with 0 of
 * the highest.  OM_USAGE where there is none, with names that are like it. */
om_status om_manifest_find(om_session *s, om_arena *mem, const om_manifest *m, const char *name, uint64_t opset,
	const om_hub_model **found);

/* ---- Where it goes, and where it comes from. ---- */

/* Called now and then while a file grows; `all` may be 0: not known. */
typedef void om_hub_progress(void *arg, const char *name, uint64_t now, uint64_t all);

typedef struct om_hub {
	om_session *session;
	om_arena *mem;
	const char *cache;       /* a folder, made when it is needed */
	const char **mirror;     /* base addresses, the first is tried first */
	size_t nmirror, capmirror;
	bool offline;            /* nothing but the cache */
	double timeout;          /* seconds to connect in, and seconds a transfer may stand still */
	double delay;            /* seconds before the second try; doubled for each one after */
	uint64_t tries;          /* at one mirror, while it brings nothing new */
	uint64_t unpacked;       /* bytes that an archive may become; 0: by its size */
	om_hub_progress *progress;
	void *progress_arg;

	uint64_t nfetched, ncached, bytes;   /* what was done: files, files, bytes over the wire */
} om_hub;

/* $ONNX_HOME/hub, else $XDG_CACHE_HOME/onnx/hub, else ~/.cache/onnx/hub. */
om_status om_hub_cache_folder(om_session *s, om_arena *mem, const char **folder);

/* What the user's configuration file says: lines "mirror = URL" and "manifest =
 * URL"; one that is not there says nothing. */
typedef struct om_hub_config {
	const char **mirror;
	size_t nmirror, capmirror;
	const char *manifest;
} om_hub_config;

om_status om_hub_config_read(om_session *s, om_arena *mem, om_hub_config *config);

/* The path of a file in the cache, complete and compared with its sum; it is
 * fetched where it has to be.  OM_DOWNLOAD names every mirror and what it said. */
om_status om_hub_fetch(om_hub *h, const om_hub_file *f, const char **path);

/* The folder beside an archive in the cache into which that was unpacked. */
om_status om_hub_unpack(om_hub *h, const char *archive, const char **folder);

/* A manifest by its path or its address.  What came from an address is kept in
 * the cache, and used when it cannot be had again. */
om_status om_hub_manifest(om_hub *h, const char *where, om_manifest *m);

/* ---- Inside. ---- */

enum om_transfer_end {
	OM_CAME,     /* all that the server had to say */
	OM_AGAIN,    /* not all; another try may bring more */
	OM_NEVER,    /* this address will not give it */
	OM_LOCAL,    /* nothing will help: it cannot be written here */
};

/* One request: what lies at `url` is added to the file `fd`, from where that ends. */
typedef struct om_transfer {
	const char *url;
	int fd;
	uint64_t expected;       /* bytes in all; more is refused; 0: not known */
	double timeout;
	void (*progress)(void *arg, uint64_t now, uint64_t all);
	void *progress_arg;

	enum om_transfer_end end;
	uint64_t came;           /* bytes over the wire */
	double wait;             /* seconds that the server asks to wait */
	char why[400];           /* a clause, for messages */
} om_transfer;

void om_transfer_run(om_transfer *t);

/* An address as it may be shown: without user, password and query. */
const char *om_shown_url(om_arena *mem, const char *url);
bool om_is_url(const char *text);
/* `base`/`path`, with what an address may not hold as %XX; a query of `base` stays
 * behind it. */
const char *om_url_below(om_arena *mem, const char *base, const char *path);

/* Is this a path that stays below the folder it is joined to? */
bool om_path_is_safe(const char *path);
om_status om_make_folders(om_session *s, const char *path);  /* those above the last part of it */
void om_remove_folder(const char *path);       /* with all that is in it */
om_status om_file_sha256(om_session *s, om_arena *mem, int fd, const char *path, char text[65]);
om_status om_read_all(om_session *s, om_arena *mem, const char *path, uint64_t limit, char **text, size_t *n);

#endif
