/* SPDX-License-Identifier: Apache-2.0 */
/* Lives; see life.h.  A mutex that is robust tells the one that asks for it that its owner has died. */
#include <config.h>

#include <errno.h>

#include "base/life.h"

#ifdef HAVE_PTHREAD_MUTEXATTR_SETROBUST
bool
om_life_init(om_life *l)
{
	pthread_mutexattr_t a;

	if (pthread_mutexattr_init(&a) != 0)
		return false;
	const bool ok = pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED) == 0
		&& pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) == 0 && pthread_mutex_init(&l->mutex, &a) == 0;
	pthread_mutexattr_destroy(&a);
	return ok;
}

bool
om_life_goes_on(om_life *l)
{
	const int e = pthread_mutex_trylock(&l->mutex);

	if (e == EBUSY)
		return true;
	if (e == EOWNERDEAD)
		pthread_mutex_consistent(&l->mutex);
	if (e == 0 || e == EOWNERDEAD)
		pthread_mutex_unlock(&l->mutex);
	return false;
}
#else
bool
om_life_init(om_life *l)
{
	(void)l;
	return false;
}

bool
om_life_goes_on(om_life *l)
{
	(void)l;
	return false;
}
#endif

bool
om_life_begin(om_life *l)
{
	return pthread_mutex_lock(&l->mutex) == 0;
}

void
om_life_end(om_life *l)
{
	pthread_mutex_unlock(&l->mutex);
}
