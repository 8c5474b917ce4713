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
} om_report_form;

/* The report of the plan of `p` in one form, as a text that the caller frees with free().  `name` is that of the
 * model in the report, a path or not.  The time of planning and the counters of passes are not known, and missing.
 * OM_USAGE if the program has no plan, or the form is unknown; `*text` is NULL on failure. */
OM_API om_status om_plan_report(om_session *s, om_prog *p, const char *name, om_report_form form, char **text);

/* The steps in which each value of the plan is live, by value id, from the first to the last, as reports number them: those
 * of a run, in which ops that are folded have none.  `life` has room for all p->plan->nplace.  OM_USAGE if the program
 * has no plan. */
OM_API om_status om_plan_report_steps(om_session *s, om_prog *p, om_steps *life);

#ifdef __cplusplus
}
#endif

#endif
