/* Addresses, and where things are in this account. */
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
om_shown_url(om_arena *mem, const char *url)
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
om_url_below(om_arena *mem, const char *base, const char *path)
{
	const size_t n = strcspn(base, "?#");
	char *out = om_alloc(mem, strlen(base) + 3 * strlen(path) + 2), *at = out + n;

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

/* A variable that is set, and not to nothing. */
static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

om_status
om_hub_cache_folder(om_session *s, om_arena *mem, const char **folder)
{
	const char *at;

	if ((at = variable("ONNX_HOME")))
		*folder = om_printf(mem, "%s/hub", at);
	else if ((at = variable("XDG_CACHE_HOME")))
		*folder = om_printf(mem, "%s/onnx/hub", at);
	else if ((at = variable("HOME")))
		*folder = om_printf(mem, "%s/.cache/onnx/hub", at);
	else
		return om_fail(s, OM_IO, "there is no folder for models: set ONNX_HOME to one");
	return OM_OK;
}

/* ---- The configuration file. ---- */

static const char *
config_path(om_arena *mem)
{
	const char *at;

	if ((at = variable("ONNXMEM_CONFIG")))
		return at;
	if ((at = variable("XDG_CONFIG_HOME")))
		return om_printf(mem, "%s/onnxmem/config", at);
	if ((at = variable("HOME")))
		return om_printf(mem, "%s/.config/onnxmem/config", at);
	return NULL;
}

/* Without white space around it. */
static char *
trimmed(char *text)
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
	char *is = strchr(text, '=');

	text = trimmed(text);
	if (!*text || *text == '#')
		return OM_OK;
	if (is)
		*is = '\0';
	const char *key = trimmed(text), *value = is ? om_strdup(mem, trimmed(is + 1)) : "";
	if (strcmp(key, "mirror") == 0 && om_is_url(value))
		OM_PUSH(mem, config->mirror, config->nmirror, config->capmirror, value);
	else if (strcmp(key, "manifest") == 0 && *value)
		config->manifest = value;
	else
		return om_fail(s, OM_MALFORMED, "%s: line %d: wanted is `mirror = URL` or `manifest = URL`", path, line);
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
	FILE *there = path ? fopen(path, "r") : NULL;
	if (!there)
		return OM_OK;
	fclose(there);
	OM_TRY(om_read_all(s, mem, path, 1 << 20, &text, &n));
	for (char *at = text; at; at = next) {
		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		OM_TRY(read_line(s, mem, config, path, ++line, at));
	}
	return OM_OK;
}
