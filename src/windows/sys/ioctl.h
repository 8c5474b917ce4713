/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a terminal, on Windows; see ../system.h. */
#ifndef OM_WINDOWS_IOCTL_H
#define OM_WINDOWS_IOCTL_H

struct winsize {
	unsigned short ws_row, ws_col;
};

enum { TIOCGWINSZ = 1 };

int ioctl(int fd, int what, struct winsize *out);

#endif
