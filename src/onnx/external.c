/* SPDX-License-Identifier: Apache-2.0 */
/* External data: files in the model's folder, mapped and not copied. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/model.h"
#include "base/arena_internal.h"

static bool
climbs(const char *location)
{
	for (const char *part = location; *part;) {
		const size_t n = strcspn(part, "/");
		if (n == 2 && part[0] == '.' && part[1] == '.')
			return true;
		part += n + (part[n] == '/');
	}
	return false;
}

/* Symbolic links are followed, but must not lead out of the folder. */
static bool
is_inside(const char *folder, const char *path)
{
	const size_t n = strlen(folder);
	return strncmp(folder, path, n) == 0 && (path[n] == '/' || strcmp(folder, "/") == 0);
}

/* Returns NULL instead of unwinding to a guard, because the caller owns other resources. */
static const char *
copy_try(om_arena *mem, const char *text)
{
	const size_t n = strlen(text) + 1;
	char *copy = om_alloc_try(mem, n);

	return copy ? memcpy(copy, text, n) : NULL;
}

om_status
om_location_resolve(om_session *s, const char *name, const char *folder, const char *location,
	om_arena *mem, const char **path)
{
	if (!folder)
		return om_fail(s, OM_INVALID,
			"%s: external data in %s requires the model to be loaded from a file", name, location);
	if (!*location || *location == '/' || climbs(location))
		return om_fail(s, OM_INVALID, "%s: external data in \"%s\" is outside the folder of the model",
			name, location);
	const char *plain = om_printf(mem, "%s/%s", folder, location);
	char *home = realpath(folder, NULL), *real = realpath(plain, NULL);
	om_status st = OM_OK;
	if (!home || !real)
		st = om_fail(s, OM_IO, "%s: external data %s cannot be opened: %s", name, plain,
			strerror(errno));
	else if (!is_inside(home, real))
		st = om_fail(s, OM_INVALID,
			"%s: external data %s is a link that leads out of the folder of the model",
			name, plain);
	else if (!(*path = copy_try(mem, real)))
		st = om_fail(s, OM_MEMORY, "%s: cannot allocate the name of its external data", name);
	free(home);
	free(real);
	return st;
}

static om_status
map(om_session *s, const om_model *m, struct mapped *f)
{
	struct stat st;
	const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		const char *why = fd >= 0 ? "not a regular file" : strerror(errno);
		if (fd >= 0)
			close(fd);
		return om_fail(s, OM_IO, "%s: external data %s cannot be opened: %s", m->name, f->path, why);
	}
	f->size = (size_t)st.st_size;
	f->state = om_file_state_of(&st);
	f->data = f->size ? om_map_file(fd, f->size) : NULL;
	close(fd);
	if (f->size && !f->data)
		return om_fail(s, OM_IO, "%s: external data %s cannot be mapped: %s", m->name, f->path,
			strerror(errno));
	return OM_OK;
}

om_status
om_model_map(om_session *s, om_model *m, const char *location, const struct mapped **out)
{
	for (struct mapped *f = m->mapped; f; f = f->next)
		if (strcmp(f->location, location) == 0) {
			*out = f;
			return OM_OK;
		}
	struct mapped *f = OM_NEW(m->mem, struct mapped);
	OM_TRY(om_location_resolve(s, m->name, m->folder, location, m->mem, &f->path));
	OM_TRY(map(s, m, f));
	f->location = location;
	f->next = m->mapped;
	m->mapped = f;
	om_mappings_add(&m->files, m->mem, f->data, f->size, f->state);
	*out = f;
	return OM_OK;
}

void
om_model_unmap(om_model *m)
{
	for (struct mapped *f = m->mapped; f; f = f->next)
		if (f->data)
			om_unmap(f->data, f->size);
	m->mapped = NULL;
}
