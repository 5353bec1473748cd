/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment that hvd computes in.
 *
 * Any thread of the program may drive, and so do the arithmetic of a collective. Threads
 * differ in rounding mode, in whether subnormal numbers are taken for zero, and in which
 * exceptions trap; results must not. So hvd computes in an environment of its own: round
 * to nearest, subnormal numbers as they are, no traps. */
#ifndef HVD_FLOAT_ENV_H
#define HVD_FLOAT_ENV_H

#ifndef __x86_64__
#include <fenv.h>
#endif

/* What a thread had before. */
struct hvd_float_env {
#ifdef __x86_64__
    unsigned control; /* MXCSR: modes, masks and flags; hvd does not use the x87 unit */
#else
    fenv_t all;
#endif
};

/* Gives the calling thread hvd's environment; *callers is for the other one. Both are
 * called by one thread, in pairs, and take some nanoseconds. Threads that it makes in
 * between inherit hvd's. */
void hvd_float_env_enter(struct hvd_float_env *callers);

/* Puts back all of what the thread had, also its exception flags: what was raised in
 * between is hvd's own affair. */
void hvd_float_env_leave(const struct hvd_float_env *callers);

#endif
