/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/collectives/float_modes.h"

#include <fenv.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Traps that a program asks for, and more. */
static const int all_traps =
    FE_DIVBYZERO | FE_INEXACT | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW;

static const struct {
    const char *name;
    int rounding;
    int traps;
    unsigned bits; /* in MXCSR */
    int flags;
} modes[] = {
    {"the usual mode", FE_TONEAREST, 0, 0, 0},
    {"rounding up", FE_UPWARD, 0, 0, FE_INVALID},
    {"rounding down", FE_DOWNWARD, 0, 0, FE_DIVBYZERO},
    {"rounding toward zero", FE_TOWARDZERO, 0, 0, FE_OVERFLOW | FE_INEXACT},
    {"traps", FE_TONEAREST, all_traps, 0, 0},
#ifdef __x86_64__
    {"flush to zero", FE_TONEAREST, 0, 0x8000, FE_UNDERFLOW},
    {"denormals are zero", FE_TONEAREST, 0, 0x0040, 0},
    {"both, rounding up, and traps", FE_UPWARD, all_traps, 0x8040, 0},
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

static unsigned control_bits(void)
{
#ifdef __x86_64__
    return _mm_getcsr();
#else
    return 0;
#endif
}

void float_mode_begin(int mode)
{
    fesetenv(FE_DFL_ENV);
    fesetround(modes[mode].rounding);
    if (modes[mode].flags != 0) {
        feraiseexcept(modes[mode].flags);
    }
#ifdef __x86_64__
    _mm_setcsr((_mm_getcsr() & ~0x3fu) | modes[mode].bits | (unsigned)modes[mode].flags);
#endif
    if (modes[mode].traps != 0) {
        feenableexcept(modes[mode].traps);
    }
}

void float_mode_end(void)
{
    fesetenv(FE_DFL_ENV);
#ifdef __x86_64__
    _mm_setcsr(_MM_MASK_MASK);
#endif
}

bool float_mode_is_kept(int mode)
{
    unsigned found = control_bits(), wanted;
    int rounding = fegetround(), traps = fegetexcept();
    int flags = fetestexcept(all_traps);

    float_mode_begin(mode);
    wanted = control_bits();
    float_mode_end();
    return found == wanted && rounding == modes[mode].rounding &&
           traps == modes[mode].traps && flags == modes[mode].flags;
}
