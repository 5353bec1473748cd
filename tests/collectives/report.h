/* SPDX-License-Identifier: Apache-2.0 */
/* TAP promises that all ranks of a job must keep. Rank 0 prints all of them; another rank
 * prints only those it did not keep. Each rank has its own exit status. Include this in
 * one source of a program only, as tap.h. */
#ifndef HVD_TEST_REPORT_H
#define HVD_TEST_REPORT_H

#include "tests/collectives/calls.h"
#include "tests/tap.h"

static int report_rank, report_failed;

/* Calls hvd_init; returns this rank. */
__attribute__((unused)) static int report_init(void)
{
    report_rank = call_init();
    return report_rank;
}

__attribute__((format(printf, 2, 0))) static void
report_line(bool is_good, const char *format, va_list args)
{
    char promise[160];

    vsnprintf(promise, sizeof(promise), format, args);
    if (!is_good) {
        report_failed++;
        fprintf(stderr, "# rank %d: not so: %s\n", report_rank, promise);
    }
    if (report_rank == 0) {
        tap_ok(is_good, "%s", promise);
    }
}

/* Reports without communication, for use after the job has ended or when not all ranks
 * call. */
__attribute__((format(printf, 2, 3), unused)) static void
report_alone(bool is_good, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report_line(is_good, format, args);
    va_end(args);
}

/* Reports on all ranks; collective: the next test begins when all ranks have reported. */
__attribute__((format(printf, 2, 3), unused)) static void report(bool is_good,
                                                                 const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report_line(is_good, format, args);
    va_end(args);
    call_barrier();
}

/* Ends main: `return report_done();`. */
static int report_done(void)
{
    return report_rank == 0 ? tap_done() : report_failed != 0;
}

#endif
