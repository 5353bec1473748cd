/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/collectives/reduce/float_modes.h"

#include <fenv.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* all floating-point exceptions; each can set a flag, and on some CPUs it can trap */
static const int all_traps =
    FE_DIVBYZERO | FE_INEXACT | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW;

static const struct {
    const char *name;
    int rounding;
    int traps;
    unsigned bits; /* bits to set in the control register: MXCSR or FPCR */
    int flags;
} modes[] = {
    {"the usual mode", FE_TONEAREST, 0, 0, 0},
    {"rounding up", FE_UPWARD, 0, 0, FE_INVALID},
    {"rounding down", FE_DOWNWARD, 0, 0, FE_DIVBYZERO},
    {"rounding toward zero", FE_TOWARDZERO, 0, 0, FE_OVERFLOW | FE_INEXACT},
    {"traps", FE_TONEAREST, all_traps, 0, 0},
#if defined(__x86_64__)
    {"flush to zero", FE_TONEAREST, 0, 0x8000, FE_UNDERFLOW},
    {"denormals are zero", FE_TONEAREST, 0, 0x0040, 0},
    {"both, rounding up, and traps", FE_UPWARD, all_traps, 0x8040, 0},
#elif defined(__aarch64__) && defined(__GLIBC__)
    {"flush to zero", FE_TONEAREST, 0, 1 << 24, FE_UNDERFLOW},
#endif
};

int float_mode_count(void)
{
    return sizeof(modes) / sizeof(modes[0]);
}

const char *float_mode_name(int mode)
{
    return modes[mode].name;
}

/* Returns the control register, which has bits that standard C does not cover. */
static unsigned control_bits(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#elif defined(__aarch64__) && defined(__GLIBC__)
    fenv_t all;

    fegetenv(&all);
    return all.__fpcr;
#else
    return 0;
#endif
}

static void add_control_bits(unsigned bits)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | bits);
#elif defined(__aarch64__) && defined(__GLIBC__)
    fenv_t all;

    fegetenv(&all);
    all.__fpcr |= bits;
    fesetenv(&all);
#else
    (void)bits;
#endif
}

void float_mode_end(void)
{
    fesetenv(FE_DFL_ENV);
#ifdef __x86_64__
    /* reset all bits: C libraries differ in the bits that fesetenv restores */
    _mm_setcsr(_MM_MASK_MASK);
#endif
}

/* Sets a mode. It clears the other flags after raising some, because raising an overflow
 * may raise the inexact flag, too. */
void float_mode_begin(int mode)
{
    float_mode_end();
    fesetround(modes[mode].rounding);
    feraiseexcept(modes[mode].flags);
    feclearexcept(all_traps & ~modes[mode].flags);
    add_control_bits(modes[mode].bits);
    feenableexcept(modes[mode].traps);
}

struct found {
    int rounding;
    int traps;
    int flags;
    unsigned control;
};

static struct found look(void)
{
    return (struct found){fegetround(), fegetexcept(), fetestexcept(all_traps),
                          control_bits()};
}

bool float_mode_is_kept(int mode)
{
    struct found found = look(), wanted;

    float_mode_begin(mode);
    wanted = look();
    float_mode_end();
    return found.rounding == wanted.rounding && found.traps == wanted.traps &&
           found.flags == wanted.flags && found.control == wanted.control;
}
