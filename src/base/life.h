/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread holds as long as it lives: others, also of other processes, can ask whether it does. */
#ifndef OM_BASE_LIFE_H
#define OM_BASE_LIFE_H

#include <pthread.h>
#include <stdbool.h>

typedef struct om_life {
	pthread_mutex_t mutex;   /* robust */
} om_life;

/* Of memory that processes may share.  False: this system does not tell that the owner of a mutex has died. */
bool om_life_init(om_life *l);

/* By the one that lives, which is the one that ends it, too. */
bool om_life_begin(om_life *l);
void om_life_end(om_life *l);

/* Is it held by one that has not died?  Not for the one that holds it. */
bool om_life_goes_on(om_life *l);

#endif
