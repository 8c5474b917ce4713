/* Facts of third parties, which have names and no bits. */
#ifndef OM_FACTS_H
#define OM_FACTS_H

#include "onnxmem/ir.h"

/* A fact that somebody's analysis gave. */
struct om_fact {
	const char *name;
	unsigned needs;          /* facts that it was found out from */
	const char *needs_facts; /* the same, by name; NULL: none */
	bool known;              /* the pass that gives it came to its end */
	om_arena *mem;           /* holds `data`; owned; NULL: there is none */
	const void *data;
	om_fact *next;
};

/* Is `name` among names that are separated by spaces?  NULL: there are none. */
bool om_facts_name(const char *names, const char *name);

/* What a pass does to facts: see om_pass. */
typedef struct om_fact_change {
	unsigned needs, gives, keeps;
	const char *needs_facts, *gives_facts, *keeps_facts;
} om_fact_change;

/* Before the pass runs, only what it needs and what it keeps is known; after it, only what
 * it keeps, and where it succeeded what it gives. */
void om_facts_before(om_prog *p, const om_fact_change *c);
void om_facts_after(om_prog *p, const om_fact_change *c, bool succeeded);

/* The entry of a fact, known or not: a new one where there is none. */
om_fact *om_fact_entry(om_prog *p, const char *name);

void om_facts_free(om_prog *p);

#endif
