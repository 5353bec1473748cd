/* SPDX-License-Identifier: Apache-2.0 */
/* Whether collectives are under way on several streams at once. */
#include <pthread.h>
#include <time.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_cuda.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int under_way; /* of streams, each of which has one at a time */
static long overlaps;
static int hold_s; /* 0: none waits for another */

HVD_EXPORT void fake_gpu_hold_collectives(int seconds)
{
    pthread_mutex_lock(&lock);
    hold_s = seconds;
    pthread_mutex_unlock(&lock);
}

HVD_EXPORT long fake_gpu_overlaps(void)
{
    long count;

    pthread_mutex_lock(&lock);
    count = overlaps;
    pthread_mutex_unlock(&lock);
    return count;
}

HVD_EXPORT void fake_gpu_begin_collective(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    pthread_mutex_lock(&lock);
    until.tv_sec += hold_s;
    under_way++;
    if (under_way > 1) {
        overlaps++;
        hold_s = 0;
        pthread_cond_broadcast(&changed);
    }
    while (hold_s > 0 && pthread_cond_timedwait(&changed, &lock, &until) == 0) {
    }
    pthread_mutex_unlock(&lock);
}

HVD_EXPORT void fake_gpu_end_collective(void)
{
    pthread_mutex_lock(&lock);
    under_way--;
    pthread_mutex_unlock(&lock);
}
