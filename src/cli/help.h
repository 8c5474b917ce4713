/* SPDX-License-Identifier: Apache-2.0 */
/* Help in all formats: terminal, manual pages, shell completions. All of it is generated from
 * the tables of commands and topics. */
#ifndef OM_HELP_H
#define OM_HELP_H

#include "cli/cli.h"

typedef struct om_topic {
	const char *name, *brief;
	const char *text;        /* paragraphs, separated by an empty line */
} om_topic;

const om_topic *om_topic_at(size_t k);              /* NULL after the last one */
const om_topic *om_topic_find(const char *name);    /* NULL if there is none */

/* Options of every command. */
extern const om_opt om_global_options[];
/* The short form of an option; '\0' if there is none. */
char om_letter_of(const char *name);

void om_help_man(om_cli *c, const om_cmd *cmd, FILE *to);      /* NULL: onnxmem(1) itself */
void om_help_man_topic(const om_topic *topic, FILE *to);       /* onnxmem-TOPIC(7) */
om_status om_help_completion(om_cli *c, const char *shell, FILE *to);

#endif
