/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment that hvd computes in.
 *
 * Compilers assume that arithmetic does not depend on the environment. The fences here
 * still work, because all operands come from memory, and no load moves across a fence. */
#include "collectives/core/float_env.h"

#include <stdatomic.h>

#ifdef __x86_64__

#include <immintrin.h>

/* The environment of a starting program: all exceptions are masked, rounding is to
 * nearest. */
static const unsigned known = _MM_MASK_MASK | _MM_ROUND_NEAREST;

/* Writes the register only if it differs: a write costs more than a read. */
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

/* On ARM and POWER, FE_DFL_ENV also ends the modes unknown to C: FPCR.FZ, FPSCR.NI. */
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
