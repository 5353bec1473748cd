/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the calls of the stand-ins, and makes them fail or kill the process when a test
 * asks for it. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_cuda.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls, fail_at, die_at;
static const char *counted; /* count only calls of this function; NULL: of all */
static const char *failed;
/* the first function that the same thread called after the failed call */
static const char *follower;
static pthread_t failing;

enum {
    MOST_FUNCTIONS = 128,
};

/* Calls of each function, never reset; lock. */
static struct {
    const char *function;
    long calls;
} counts[MOST_FUNCTIONS];

/* Returns the place of a function in `counts`, or the first free one. The lock is
 * held. */
static int find_count(const char *function)
{
    int i = 0;

    while (i < MOST_FUNCTIONS - 1 && counts[i].function != NULL &&
           strcmp(counts[i].function, function) != 0) {
        i++;
    }
    return i;
}

static void count_call(const char *function)
{
    int i = find_count(function);

    counts[i].function = function;
    counts[i].calls++;
}

HVD_EXPORT void fake_gpu_count_call(const char *function)
{
    pthread_mutex_lock(&lock);
    count_call(function);
    pthread_mutex_unlock(&lock);
}

HVD_EXPORT long fake_gpu_calls(const char *function)
{
    long found;

    pthread_mutex_lock(&lock);
    found = counts[find_count(function)].calls;
    pthread_mutex_unlock(&lock);
    return found;
}

HVD_EXPORT bool fake_gpu_fails(const char *function)
{
    bool fails = false;

    pthread_mutex_lock(&lock);
    count_call(function);
    if (counted == NULL || strcmp(counted, function) == 0) {
        calls++;
        fails = calls == fail_at || (fail_at < 0 && calls >= -fail_at);
    }
    if (die_at > 0 && calls == die_at) {
        raise(SIGKILL);
    }
    if (fails) {
        failed = function;
        failing = pthread_self();
    } else if (failed != NULL && follower == NULL &&
               pthread_equal(failing, pthread_self())) {
        follower = function;
    }
    pthread_mutex_unlock(&lock);
    return fails;
}

HVD_EXPORT long fake_gpu_fail_in(const char *function, long at)
{
    long before;

    pthread_mutex_lock(&lock);
    before = calls;
    calls = 0;
    fail_at = at;
    counted = function;
    failed = NULL;
    follower = NULL;
    pthread_mutex_unlock(&lock);
    return before;
}

HVD_EXPORT long fake_gpu_fail_at(long at)
{
    return fake_gpu_fail_in(NULL, at);
}

HVD_EXPORT void fake_gpu_die_in(const char *function, long at)
{
    pthread_mutex_lock(&lock);
    calls = 0;
    die_at = at;
    counted = function;
    pthread_mutex_unlock(&lock);
}

HVD_EXPORT const char *fake_gpu_failed(void)
{
    const char *function;

    pthread_mutex_lock(&lock);
    function = failed;
    pthread_mutex_unlock(&lock);
    return function;
}

static bool is_one_of(const char *function, const char *const *list)
{
    while (*list != NULL && strcmp(*list, function) != 0) {
        list++;
    }
    return *list != NULL;
}

HVD_EXPORT bool fake_gpu_failed_at_end(void)
{
    static const char *const ends[] = {"cuCtxPopCurrent",
                                       "cuStreamDestroy",
                                       "cuEventDestroy",
                                       "cuMemFree",
                                       "cuMemFreeHost",
                                       "cuDevicePrimaryCtxRelease",
                                       "ncclCommFinalize",
                                       "ncclCommDestroy",
                                       "ncclRedOpDestroy",
                                       "ncclCommAbort",
                                       "cuModuleUnload",
                                       "ncclMemFree",
                                       "cuIpcCloseMemHandle",
                                       "ncclCommWindowDeregister",
                                       NULL};
    bool is_end;

    pthread_mutex_lock(&lock);
    is_end = failed != NULL && is_one_of(failed, ends);
    if (failed != NULL && strcmp(failed, "cuCtxPushCurrent") == 0) {
        is_end = follower != NULL && is_one_of(follower, ends);
    }
    pthread_mutex_unlock(&lock);
    return is_end;
}

HVD_EXPORT bool fake_gpu_failed_memory(void)
{
    static const char *const gets[] = {"cuMemAlloc", "cuMemHostAlloc", NULL};
    const char *function = fake_gpu_failed();

    return function != NULL && is_one_of(function, gets);
}

HVD_EXPORT bool fake_gpu_failed_kernels(void)
{
    static const char *const loads[] = {"cuModuleLoadData", "cuModuleGetFunction", NULL};
    const char *function = fake_gpu_failed();

    return function != NULL && is_one_of(function, loads);
}

HVD_EXPORT bool fake_gpu_failed_dispensable(void)
{
    static const char *const asks[] = {"cuEventElapsedTime", "cuStreamGetId", NULL};
    const char *function = fake_gpu_failed();

    return function != NULL && is_one_of(function, asks);
}
