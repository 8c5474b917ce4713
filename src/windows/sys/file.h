/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of files, on Windows; see ../system.h. */
#ifndef OM_WINDOWS_FILE_H
#define OM_WINDOWS_FILE_H

enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };

#endif
