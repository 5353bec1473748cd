/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the objects that the stand-ins have created and that have not been released
 * yet. */
#include <pthread.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_state.h"

static struct fake_live live;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

HVD_EXPORT void fake_gpu_live(struct fake_live *out)
{
    pthread_mutex_lock(&lock);
    *out = live;
    pthread_mutex_unlock(&lock);
}

void fake_count(int *counter, int change)
{
    pthread_mutex_lock(&lock);
    *counter += change;
    pthread_mutex_unlock(&lock);
}

struct fake_live *fake_counters(void)
{
    return &live;
}

HVD_EXPORT void fake_gpu_count_comm(int change)
{
    fake_count(&live.comms, change);
}
