/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the progress of a search. */
#ifndef OM_PROGRESS_H
#define OM_PROGRESS_H

#include "onnxmem/status.h"

/* Pass a report to the function that om_session_progress() set, if any. */
void om_report_progress(om_session *s, const char *what, uint64_t best, uint64_t bound);

#endif
