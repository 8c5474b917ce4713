/* SPDX-License-Identifier: Apache-2.0 */
/* The valid facts about a program.
 *
 * Facts of in-tree passes are bits.  A third-party fact is an entry in a short list, with a name and
 * optional data.  It is valid while the facts that it was derived from are.
 */
#include <config.h>

#include "ir/facts.h"
#include "base/split.h"

static const char *const texts[] = {"inline", "shapes", "const", "liveness", "views", "store", "plan", "schedule"};

enum { NTEXT = sizeof texts / sizeof texts[0] };

_Static_assert(OM_HAS_ALL == (1u << NTEXT) - 1, "a fact has no name");

unsigned
om_fact_bit(const char *name)
{
	for (unsigned k = 0; k < NTEXT; k++)
		if (strcmp(texts[k], name) == 0)
			return 1u << k;
	return 0;
}

const char *
om_fact_text(unsigned bit)
{
	for (unsigned k = 0; k < NTEXT; k++)
		if (bit & 1u << k)
			return texts[k];
	return "";
}

bool
om_facts_name(const char *names, const char *name)
{
	const size_t n = strlen(name);

	for (const char *at = names; at; at = *at ? at + 1 : NULL) {
		const size_t len = strcspn(at, " ");
		if (len == n && memcmp(at, name, n) == 0)
			return true;
		at += len;
	}
	return false;
}

/* ---- Facts by name. ---- */

static om_fact *
find(const om_prog *p, const char *name)
{
	om_fact *f = p->facts;

	while (f && strcmp(f->name, name) != 0)
		f = f->next;
	return f;
}

bool
om_fact_known(const om_prog *p, const char *name)
{
	const om_fact *f = find(p, name);
	const unsigned bit = om_fact_bit(name);

	return bit ? p->has & bit : f && f->known;
}

const void *
om_fact_data(const om_prog *p, const char *name)
{
	const om_fact *f = find(p, name);
	return f && f->known ? f->data : NULL;
}

om_fact *
om_fact_entry(om_prog *p, const char *name)
{
	om_fact *f = find(p, name);

	if (f)
		return f;
	f = OM_NEW(p->mem, om_fact);
	f->name = om_strdup(p->mem, name);
	f->next = p->facts;
	p->facts = f;
	return f;
}

static void
forget(om_fact *f)
{
	om_arena_free(f->mem);
	f->mem = NULL;
	f->data = NULL;
	f->known = false;
}

void
om_facts_free(om_prog *p)
{
	for (om_fact *f = p->facts; f; f = f->next)
		om_arena_free(f->mem);
}

/* Are all facts valid that fact `f` was derived from? */
static bool
has_ground(const om_prog *p, const om_fact *f)
{
	if (f->needs & ~p->has)
		return false;
	for (const om_fact *g = p->facts; g; g = g->next)
		if (!g->known && om_facts_name(f->needs_facts, g->name))
			return false;
	return true;
}

/* A pass that preserves everything also preserves facts unknown to it, unless they were derived from
 * facts that it provides anew. */
static bool
is_kept(const om_fact *f, const om_fact_change *c)
{
	if (om_facts_name(c->gives_facts, f->name))
		return false;
	return om_facts_name(c->keeps_facts, f->name) || (c->keeps == OM_HAS_ALL && !(f->needs & c->gives));
}

/* An invalidated fact invalidates the facts derived from it. */
static void
forget_groundless(om_prog *p)
{
	for (bool again = true; again;) {
		again = false;
		for (om_fact *f = p->facts; f; f = f->next)
			if (f->known && !has_ground(p, f)) {
				forget(f);
				again = true;
			}
	}
}

/* ---- Both kinds. ---- */

/* A plan is the data of its fact. */
static void
set_bits(om_prog *p, unsigned has)
{
	p->has = has;
	if (!(has & OM_HAS_PLAN))
		p->plan = NULL;
}

void
om_facts_before(om_prog *p, const om_fact_change *c)
{
	set_bits(p, p->has & ((c->keeps & ~c->gives) | c->needs));
	for (om_fact *f = p->facts; f; f = f->next)
		if (!is_kept(f, c) && !om_facts_name(c->needs_facts, f->name))
			forget(f);
	forget_groundless(p);
}

static void
mark_known(om_prog *p, const om_fact_change *c)
{
	size_t n;
	om_arena *mem = om_arena_new();
	const char **name = om_split(mem, c->gives_facts, " ", &n);

	for (size_t k = 0; k < n; k++) {
		om_fact *f = om_fact_entry(p, name[k]);
		f->known = true;
		f->needs = c->needs;
		f->needs_facts = c->needs_facts ? om_strdup(p->mem, c->needs_facts) : NULL;
	}
	om_arena_free(mem);
}

void
om_facts_after(om_prog *p, const om_fact_change *c, bool succeeded)
{
	set_bits(p, (p->has & c->keeps & ~(succeeded ? 0 : c->gives)) | (succeeded ? c->gives : 0));
	for (om_fact *f = p->facts; f; f = f->next)
		if (!is_kept(f, c) && !(succeeded && om_facts_name(c->gives_facts, f->name)))
			forget(f);
	if (succeeded && c->gives_facts)
		mark_known(p, c);
	forget_groundless(p);
}

void
om_facts_set(om_prog *p, unsigned keeps, unsigned gives)
{
	om_facts_after(p, &(om_fact_change){.keeps = keeps, .gives = gives}, true);
}
