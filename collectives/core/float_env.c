/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment that hvd computes in.
 *
 * Compilers take arithmetic for independent of it. What is computed comes from memory,
 * and no read of memory moves over the fences here. */
#include "collectives/core/float_env.h"

#include <stdatomic.h>

#ifdef __x86_64__

#include <immintrin.h>

/* As a program starts: all exceptions are masked, round to nearest. */
static const unsigned known = _MM_MASK_MASK | _MM_ROUND_NEAREST;

/* The register is written only where it differs: that costs more than to read it. */
void hvd_float_env_enter(struct hvd_float_env *callers)
{
    callers->control = _mm_getcsr();
    if ((callers->control & ~(unsigned)_MM_EXCEPT_MASK) != known) {
        _mm_setcsr(known);
    }
    atomic_signal_fence(memory_order_seq_cst);
}

void hvd_float_env_leave(const struct hvd_float_env *callers)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (_mm_getcsr() != callers->control) {
        _mm_setcsr(callers->control);
    }
}

#else

/* On ARM and POWER FE_DFL_ENV also ends the modes that C does not know: FPCR.FZ,
 * FPSCR.NI. */
void hvd_float_env_enter(struct hvd_float_env *callers)
{
    fegetenv(&callers->all);
    fesetenv(FE_DFL_ENV);
    atomic_signal_fence(memory_order_seq_cst);
}

void hvd_float_env_leave(const struct hvd_float_env *callers)
{
    atomic_signal_fence(memory_order_seq_cst);
    fesetenv(&callers->all);
}

#endif
