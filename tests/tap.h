/* SPDX-License-Identifier: Apache-2.0 */
/* A test program prints TAP: one "ok" or "not ok" line a promise, and the plan at the
 * end. */
#ifndef HVD_TAP_H
#define HVD_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count;
static int tap_failed;

__attribute__((format(printf, 2, 3), unused)) static bool tap_ok(bool passed,
                                                                 const char *format, ...)
{
    va_list args;

    tap_count++;
    tap_failed += passed ? 0 : 1;
    printf("%s %d - ", passed ? "ok" : "not ok", tap_count);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    return passed;
}

__attribute__((format(printf, 1, 2), unused)) static void tap_note(const char *format,
                                                                   ...)
{
    va_list args;

    printf("# ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* One promise that cannot be tested here, with the reason. */
__attribute__((unused)) static void tap_skip(const char *promise, const char *reason)
{
    tap_count++;
    printf("ok %d - %s # SKIP %s\n", tap_count, promise, reason);
}

/* The seed of a randomised test: HVD_TEST_SEED, else from the clock; always printed. */
__attribute__((unused)) static unsigned tap_seed(unsigned fallback)
{
    const char *text = getenv("HVD_TEST_SEED");
    unsigned seed = text != NULL ? (unsigned)strtoul(text, NULL, 0) : fallback;

    tap_note("seed %u (repeat with HVD_TEST_SEED=%u)", seed, seed);
    return seed;
}

/* Prints the plan; `return tap_done();` ends main. */
__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed == 0 ? 0 : 1;
}

#endif
