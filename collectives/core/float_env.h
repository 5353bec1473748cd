/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment that hvd computes in.
 *
 * Any thread of the program may drive, and then does the arithmetic of collectives.
 * Threads may differ in rounding mode, in whether subnormal numbers count as zero, and in
 * which exceptions trap. Results must not depend on this. Therefore hvd computes in an
 * environment of its own: round to nearest, subnormal numbers as they are, no traps. */
#ifndef HVD_FLOAT_ENV_H
#define HVD_FLOAT_ENV_H

#ifndef __x86_64__
#include <fenv.h>
#endif

/* The floating-point environment that a thread had before. */
struct hvd_float_env {
#ifdef __x86_64__
    unsigned control; /* MXCSR: modes, masks and flags; hvd does not use the x87 unit */
#else
    fenv_t all;
#endif
};

/* Gives the calling thread hvd's environment, and stores its own in *callers. The same
 * thread calls leave later; each call takes a few nanoseconds. Threads created in between
 * inherit hvd's environment. */
void hvd_float_env_enter(struct hvd_float_env *callers);

/* Restores the thread's environment, with its exception flags: exceptions raised in
 * between concern hvd alone. */
void hvd_float_env_leave(const struct hvd_float_env *callers);

#endif
