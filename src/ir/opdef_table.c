/* The table of operators. */
#include <config.h>

#include <string.h>

#include "opdef/family.h"

static const om_opdef *const families[] = {
#define FAMILY(name) om_ops_##name,
	OM_FAMILIES(FAMILY)
#undef FAMILY
};

enum { NFAMILY = sizeof families / sizeof families[0] };

static const om_opdef *
first_from(size_t family)
{
	for (; family < NFAMILY; family++)
		if (families[family]->name)
			return families[family];
	return NULL;
}

const om_opdef *
om_opdef_next(const om_opdef *prev)
{
	if (!prev)
		return first_from(0);
	if (prev[1].name)
		return prev + 1;
	for (size_t f = 0; f < NFAMILY; f++)
		for (const om_opdef *r = families[f]; r->name; r++)
			if (r == prev)
				return first_from(f + 1);
	return NULL;
}

static bool
is_called(const om_opdef *r, const char *domain, const char *name)
{
	return *r->name == *name && strcmp(r->name, name) == 0 && strcmp(r->domain ? r->domain : "", domain) == 0;
}

const om_opdef *
om_opdef_find(const char *domain, const char *name, int version)
{
	for (size_t f = 0; f < NFAMILY; f++)
		for (const om_opdef *r = families[f]; r->name; r++)
			if (is_called(r, domain, name) && r->since <= version
			    && (r->until == 0 || version <= r->until))
				return r;
	return NULL;
}

bool
om_opdef_exists(const char *domain, const char *name)
{
	for (size_t f = 0; f < NFAMILY; f++)
		for (const om_opdef *r = families[f]; r->name; r++)
			if (is_called(r, domain, name))
				return true;
	return false;
}
