/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic between hvd_float_env_enter and hvd_float_env_leave follows hvd's rules.
 * After that, the thread has its own floating-point environment again. */
#include "collectives/core/float_env.h"

#include <float.h>
#include <pthread.h>

#include "tests/collectives/reduce/float_modes.h"
#include "tests/tap.h"

/* volatile, so that the compiler computes nothing in advance */
static volatile double tiny = DBL_MIN, half = 0.5, one = 1, three = 3, zero = 0;
static volatile float least = FLT_TRUE_MIN;

/* Whether results are rounded to nearest, and subnormal inputs and results are kept.
 * Raises floating-point exceptions. */
static bool computes_by_the_rules(void)
{
    double third = one / three, up = one + DBL_EPSILON * 0.75;
    double subnormal = tiny * half;
    volatile double infinity = one / zero;

    return third == 0x1.5555555555555p-2 && -third == -0x1.5555555555555p-2 &&
           up == 1 + DBL_EPSILON && subnormal > 0 && least * 2 > least && infinity > one;
}

static bool enters_and_leaves(int mode)
{
    struct hvd_float_env callers;
    bool is_right, is_kept;

    float_mode_begin(mode);
    hvd_float_env_enter(&callers);
    is_right = computes_by_the_rules();
    hvd_float_env_leave(&callers);
    is_kept = float_mode_is_kept(mode);
    return is_right && is_kept;
}

static bool nests(int mode)
{
    struct hvd_float_env outer, inner;
    bool is_right;

    float_mode_begin(mode);
    hvd_float_env_enter(&outer);
    is_right = computes_by_the_rules();
    hvd_float_env_enter(&inner);
    hvd_float_env_leave(&inner);
    is_right = is_right && computes_by_the_rules();
    hvd_float_env_leave(&outer);
    return float_mode_is_kept(mode) && is_right;
}

static void *compute(void *out)
{
    *(bool *)out = computes_by_the_rules();
    return NULL;
}

static bool threads_inherit_it(int mode)
{
    struct hvd_float_env callers;
    bool is_right = false;
    pthread_t thread;

    float_mode_begin(mode);
    hvd_float_env_enter(&callers);
    if (pthread_create(&thread, NULL, compute, &is_right) == 0) {
        pthread_join(thread, NULL);
    }
    hvd_float_env_leave(&callers);
    return float_mode_is_kept(mode) && is_right;
}

int main(void)
{
    for (int mode = 0; mode < float_mode_count(); mode++) {
        const char *name = float_mode_name(mode);

        tap_ok(enters_and_leaves(mode),
               "%s: enter sets hvd's environment, leave restores the thread's", name);
        tap_ok(nests(mode), "%s: nested calls restore each environment", name);
        tap_ok(threads_inherit_it(mode),
               "%s: a thread created in between has hvd's environment", name);
    }
    return tap_done();
}
