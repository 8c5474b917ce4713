/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, and the locations of the cache and the configuration file. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hub/hub.h"

bool
om_is_url(const char *text)
{
	return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0
	    || strncasecmp(text, "file://", 7) == 0;
}

const char *
om_url_for_messages(om_arena *mem, const char *url)
{
	const char *host = strstr(url, "://");

	if (!host)
		return url;
	host += 3;
	const size_t end = strcspn(host, "/?#");
	size_t user = 0;
	for (size_t k = 0; k < end; k++)
		if (host[k] == '@')
			user = k + 1;
	return om_printf(mem, "%.*s%.*s", (int)(host - url), url, (int)strcspn(host + user, "?#"), host + user);
}

const char *
om_url_join(om_arena *mem, const char *base, const char *path)
{
	const size_t n = strcspn(base, "?#");
	char *out = om_allocn(mem, 1, strlen(base) + 3 * strlen(path) + 2), *at = out + n;

	memcpy(out, base, n);
	if (n && out[n - 1] != '/')
		*at++ = '/';
	for (; *path; path++)
		if (isalnum((unsigned char)*path) || strchr("-._~/", *path))
			*at++ = *path;
		else
			at += snprintf(at, 4, "%%%02X", (unsigned char)*path);
	strcpy(at, base + n);
	return out;
}

/* The value of an environment variable; NULL if it is unset or empty. */
static const char *
get_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

om_status
om_hub_cache_folder(om_session *s, om_arena *mem, const char **folder)
{
	const char *at;

	if ((at = get_env("ONNX_HOME")))
		*folder = om_printf(mem, "%s/hub", at);
	else if ((at = get_env("XDG_CACHE_HOME")))
		*folder = om_printf(mem, "%s/onnx/hub", at);
	else if ((at = get_env("HOME")))
		*folder = om_printf(mem, "%s/.cache/onnx/hub", at);
	else
		return om_fail(s, OM_IO, "no folder for models: set ONNX_HOME");
	return OM_OK;
}

/* ---- The configuration file. ---- */

static const char *
config_path(om_arena *mem)
{
	const char *at;

	if ((at = get_env("ONNXMEM_CONFIG")))
		return at;
	if ((at = get_env("XDG_CONFIG_HOME")))
		return om_printf(mem, "%s/onnxmem/config", at);
	if ((at = get_env("HOME")))
		return om_printf(mem, "%s/.config/onnxmem/config", at);
	return NULL;
}

/* Remove leading and trailing white space. */
static char *
trim(char *text)
{
	char *end = text + strlen(text);

	while (isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

static om_status
read_line(om_session *s, om_arena *mem, om_hub_config *config, const char *path, int line, char *text)
{
	char *equals = strchr(text, '=');

	text = trim(text);
	if (!*text || *text == '#')
		return OM_OK;
	if (equals)
		*equals = '\0';
	const char *key = trim(text), *value = equals ? om_strdup(mem, trim(equals + 1)) : "";
	if (strcmp(key, "mirror") == 0 && om_is_url(value))
		OM_PUSH(mem, config->mirror, config->nmirror, config->capmirror, value);
	else if (strcmp(key, "manifest") == 0 && *value)
		config->manifest = value;
	else if (strcmp(key, "hf") == 0 && om_is_url(value))
		config->hf = value;
	else
		return om_fail(s, OM_MALFORMED, "%s: line %d: expected `mirror = URL`, `manifest = URL` or `hf = URL`", path,
			line);
	return OM_OK;
}

om_status
om_hub_config_read(om_session *s, om_arena *mem, om_hub_config *config)
{
	const char *path = config_path(mem);
	char *text, *next;
	size_t n;
	int line = 0;

	*config = (om_hub_config){0};
	FILE *exists = path ? fopen(path, "r") : NULL;
	if (!exists)
		return OM_OK;
	fclose(exists);
	OM_TRY(om_read_all(s, mem, path, 1 << 20, &text, &n));
	for (char *at = text; at; at = next) {
		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		OM_TRY(read_line(s, mem, config, path, ++line, at));
	}
	return OM_OK;
}
