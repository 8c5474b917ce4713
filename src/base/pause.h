/* SPDX-License-Identifier: Apache-2.0 */
/* A hint to the processor in a loop that waits for another thread. */
#ifndef OM_PAUSE_H
#define OM_PAUSE_H

/* Wait for some tens of cycles, and leave the core to its other hardware thread. */
static inline void
om_pause(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("isb");
#endif
}

#endif
