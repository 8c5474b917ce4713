/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: the memory of a program, what is live at the peak, and the quality of its plan. */
#ifndef OM_PLAN_REPORT_H
#define OM_PLAN_REPORT_H

#include "onnxmem/assignment.h"
#include "onnxmem/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The form of a report, as that of the option of `onnxmem report`. */
typedef enum om_report_form {
	OM_REPORT_TEXT,     /* tables for people */
	OM_REPORT_JSON,     /* an object, "onnxmem-report/1" */
	OM_REPORT_CSV,      /* the buffers as a packing problem with its solution */
	OM_REPORT_SVG,      /* a memory map: steps on the x axis, addresses on the y axis */
	OM_REPORT_HTML,     /* a page: the memory map with search and zoom, and all figures */
	OM_REPORT_ASCII,    /* the memory map as text */
	OM_REPORT_ORT,      /* settings of a session of ONNX Runtime that fit the plan, "onnxmem-ort/1" */
	OM_REPORT_MARKDOWN, /* a table for a pull request: of comparisons alone */
} om_report_form;

/* The report of the plan of `p` in one form, as a text that the caller frees with free().  `name` is that of the
 * model in the report, a path or not.  The time of planning and the counters of passes are not known, and missing.
 * OM_USAGE if the program has no plan, or the form is unknown; `*text` is NULL on failure. */
OM_API om_status om_plan_report(om_session *s, om_prog *p, const char *name, om_report_form form, char **text);

/* The steps in which each value of the plan is live, by value id, from the first to the last, as reports number them: those
 * of a run, in which ops that are folded have none.  `life` has room for all p->plan->nplace.  OM_USAGE if the program
 * has no plan. */
OM_API om_status om_plan_report_steps(om_session *s, om_prog *p, om_steps *life);

/* The value of `p` that `name` denotes, which its plan has: its name, or SCOPE/NAME for one in a body.  `loaded` is the
 * program before passes changed it, for the message about a value that they removed; or NULL.  OM_USAGE if there is none,
 * with the nearest names, or if there are several. */
OM_API om_status om_plan_find_value(om_session *s, const om_prog *p, const om_prog *loaded, const char *name,
	const om_value **out);

/* Which values make each peak of the plan of `p`, and what would have to change for the arena to be smaller; with `v`, where
 * this value is, and why.  In the form OM_REPORT_TEXT or OM_REPORT_JSON ("onnxmem-why/1"), as a text that the caller frees
 * with free(). OM_USAGE if the program has no plan, or there is no such form; `*text` is NULL on failure. */
OM_API om_status om_plan_why(om_session *s, om_prog *p, const char *name, const om_value *v, om_report_form form, char **text);

/* What differs between two reports, which are texts of the form OM_REPORT_JSON, and which tensors make the difference: in the
 * form OM_REPORT_TEXT, OM_REPORT_JSON ("onnxmem-diff/1") or OM_REPORT_MARKDOWN, as a text that the caller frees with free().
 * The names are those of the reports in messages.  OM_MALFORMED, with its name, if one is no report, OM_USAGE if there is no
 * such form; `*text` is NULL on failure. */
OM_API om_status om_reports_compare(om_session *s, const char *old, const char *old_name, const char *now,
	const char *now_name, om_report_form form, char **text);

#ifdef __cplusplus
}
#endif

#endif
