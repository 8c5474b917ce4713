/* SPDX-License-Identifier: Apache-2.0 */
/* Third-party facts, which have names instead of bits. */
#ifndef OM_FACTS_H
#define OM_FACTS_H

#include "onnxmem/ir.h"

/* A fact provided by a third-party analysis. */
struct om_fact {
	const char *name;
	unsigned needs;          /* facts that it was derived from */
	const char *needs_facts; /* the same, by name; NULL: none */
	bool known;              /* the pass that provides it completed successfully */
	om_arena *mem;           /* owns `data`; NULL: there is none */
	const void *data;
	om_fact *next;
};

/* Is `name` in a space-separated list of names?  NULL is the empty list. */
bool om_facts_name(const char *names, const char *name);

/* The effect of a pass on facts: see om_pass. */
typedef struct om_fact_change {
	unsigned needs, gives, keeps;
	const char *needs_facts, *gives_facts, *keeps_facts;
} om_fact_change;

/* Before the pass runs, only facts that it requires or preserves stay valid; after it, only those that
 * it preserves and, if it succeeded, those that it provides. */
void om_facts_before(om_prog *p, const om_fact_change *c);
void om_facts_after(om_prog *p, const om_fact_change *c, bool succeeded);

/* The entry of a fact, valid or not; created if there is none. */
om_fact *om_fact_entry(om_prog *p, const char *name);

void om_facts_free(om_prog *p);

/* The bit of the fact named `name`, as "shapes"; 0 if there is none.  om_fact_text() returns the name
 * of the lowest bit in `bit`; "" for none. */
unsigned om_fact_bit(const char *name);
const char *om_fact_text(unsigned bit);

/* Is fact `name` valid, whether or not it has a bit? */
bool om_fact_known(const om_prog *p, const char *name);

/* Keep the valid facts in `keeps`, drop the others and add those in `gives`.  For code that changes a
 * program outside a pass; for passes, the host does this. */
void om_facts_set(om_prog *p, unsigned keeps, unsigned gives);

#endif
