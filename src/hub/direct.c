/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are named by their address instead of by a manifest: "hf:ORG/REPO/FILE[@REV]" and URLs, each with an optional
 * "#sha256=SUM". */
#include <config.h>

#include <ctype.h>
#include <string.h>

#include "hub/hub.h"

static bool
is_repository(const char *name)
{
	return strncmp(name, "hf:", 3) == 0;
}

/* Addresses with a scheme that is not known are refused here, as no manifest has names like that. */
bool
om_hub_is_direct(const char *name)
{
	return is_repository(name) || strstr(name, "://");
}

/* ---- The checksum. ---- */

static om_status
read_sum(om_session *s, om_arena *mem, const char *name, const char *text, const char **sum)
{
	if (!om_is_sha256(text))
		return om_fail(s, OM_USAGE, "%s: a SHA-256 has 64 hexadecimal digits, not %s", name, text);
	char *out = om_strdup(mem, text);
	for (char *at = out; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	if (*sum && strcmp(*sum, out) != 0)
		return om_fail(s, OM_USAGE, "%s: there are two different SHA-256, %s and %s", name, *sum, out);
	*sum = out;
	return OM_OK;
}

/* Take the fragment off the name. */
static om_status
split_sum(om_session *s, om_arena *mem, const char *name, const char **plain, const char **sum)
{
	static const char key[] = "#sha256=";
	const char *fragment = strchr(name, '#');

	*plain = fragment ? om_strndup(mem, name, (size_t)(fragment - name)) : name;
	if (!fragment)
		return OM_OK;
	if (strncmp(fragment, key, sizeof key - 1) != 0)
		return om_fail(s, OM_USAGE, "%s: expected #sha256=SUM, not %s", om_url_for_messages(mem, name), fragment);
	return read_sum(s, mem, om_url_for_messages(mem, name), fragment + sizeof key - 1, sum);
}

/* ---- URLs. ---- */

/* A name for the cache: the last component of the path. */
static const char *
base_name(om_arena *mem, const char *url)
{
	const char *host = strstr(url, "://") + 3;
	char *path = om_strndup(mem, host, strcspn(host, "?"));
	const char *slash = strrchr(path, '/');
	char *name = om_strdup(mem, slash && slash[1] ? slash + 1 : "model");

	for (char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
			*at = '_';
	return *name == '.' ? om_printf(mem, "_%s", name) : name;
}

static om_status
use_url(om_session *s, om_arena *mem, const char *url, om_hub_file *f)
{
	if (!f->sha256)
		return om_fail(s, OM_USAGE, "%s requires a checksum: `--sha256 SUM`, or #sha256=SUM after the address",
			om_url_for_messages(mem, url));
	f->url = url;
	f->path = om_printf(mem, "url/%s", base_name(mem, url));
	return OM_OK;
}

/* ---- Repositories. ---- */

/* ORG/REPO/FILE[@REV]; a revision has no slash, so that an @ in the name of a folder is none. */
static om_status
use_repository(om_session *s, om_arena *mem, const char *base, const char *text, om_hub_file *f)
{
	const char *at = strrchr(text, '@');

	if (at && strchr(at, '/'))
		at = NULL;
	const char *rev = at ? at + 1 : "main", *path = at ? om_strndup(mem, text, (size_t)(at - text)) : text;
	const char *org = strchr(path, '/'), *file = org ? strchr(org + 1, '/') : NULL;
	if (!file || !om_path_is_safe(path) || !om_path_is_safe(rev))
		return om_fail(s, OM_USAGE, "hf:%s: expected hf:ORG/REPO/FILE or hf:ORG/REPO/FILE@REV", text);
	const char *repo = om_strndup(mem, path, (size_t)(file - path));
	f->url = om_url_join(mem, base, om_printf(mem, "%s/resolve/%s%s", repo, rev, file));
	f->path = om_printf(mem, "hf/%s/%s%s", repo, rev, file);
	return om_path_is_safe(f->path) ? OM_OK : om_fail(s, OM_USAGE, "hf:%s: the path is too long", text);
}

om_status
om_hub_direct(om_session *s, om_arena *mem, const char *hf_base, const char *name, const char *sum, om_hub_file *f)
{
	const char *plain;

	*f = (om_hub_file){0};
	if (!is_repository(name) && !om_is_url(name))
		return om_fail(s, OM_USAGE, "%s: an address begins with https://, http:// or file://", om_url_for_messages(mem, name));
	if (sum)
		OM_TRY(read_sum(s, mem, om_url_for_messages(mem, name), sum, &f->sha256));
	OM_TRY(split_sum(s, mem, name, &plain, &f->sha256));
	return is_repository(plain) ? use_repository(s, mem, hf_base, plain + 3, f) : use_url(s, mem, plain, f);
}
