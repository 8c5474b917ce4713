/* Help in all its forms: for a terminal, as manual pages, as completions for shells.
 * All of it is made from the rows of the commands and the topics. */
#ifndef OM_HELP_H
#define OM_HELP_H

#include "cli/cli.h"

typedef struct om_topic {
	const char *name, *brief;
	const char *text;        /* paragraphs, with an empty line between */
} om_topic;

const om_topic *om_topic_at(size_t k);              /* NULL behind the last one */
const om_topic *om_topic_find(const char *name);    /* NULL when there is none */

/* What every command knows. */
extern const om_opt om_global_options[];
/* The letter that stands for an option; '\0' when there is none. */
char om_letter_of(const char *name);

void om_help_man(om_cli *c, const om_cmd *cmd, FILE *to);      /* NULL: of onnxmem(1) itself */
om_status om_help_completion(om_cli *c, const char *shell, FILE *to);

#endif
