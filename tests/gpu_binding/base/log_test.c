/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the form of log lines, and which lines are sent. */
#include "gpu_binding/base/log.h"

#include <string.h>
#include <time.h>

#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

static char last_line[8192];
static int line_count;

static void keep_line(enum hvd_log_level level, const char *line)
{
    (void)level;
    snprintf(last_line, sizeof(last_line), "%s", line);
    line_count++;
}

static void test_plain(void)
{
    hvd_log_to(keep_line, HVD_LOG_WARN);
    hvd_log(HVD_LOG_WARN, "%d of %s", 3, "four");
    tap_ok(strcmp(last_line, "hvd: 3 of four") == 0, "a line begins with 'hvd: '");
    line_count = 0;
    hvd_log(HVD_LOG_INFO, "unheard");
    tap_ok(line_count == 0, "levels below the least one are not sent");
}

/* Reads the same clock as the time stamps of log lines. time() may be a clock tick behind
 * it, and so return an earlier second. */
static long long clock_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (long long)now.tv_sec;
}

/* Returns the time of a line's stamp in seconds since 1970, or -1 if the line has another
 * form. */
static long long read_stamp(const char *line, const char *after)
{
    struct tm local = {.tm_isdst = -1};
    const char *rest = strptime(line, "[%Y-%m-%d %H:%M:%S.", &local);

    if (rest == NULL || strspn(rest, "0123456789") != 6 || strcmp(rest + 6, after) != 0) {
        return -1;
    }
    return (long long)mktime(&local);
}

static void test_stamp(void)
{
    long long before = clock_seconds();
    long long told;

    hvd_log_stamp("hvd rank 3");
    hvd_log(HVD_LOG_WARN, "late");
    told = read_stamp(last_line, ": W hvd rank 3] late");
    tap_ok(told >= before && told <= clock_seconds(),
           "a stamp has the time to the microsecond, the level and the name (%s)",
           last_line);
    hvd_log(HVD_LOG_ERROR, "gone");
    tap_ok(read_stamp(last_line, ": E hvd rank 3] gone") >= before,
           "each level has its letter");
    hvd_log_stamp("a name that is far too long to be kept as a whole");
    hvd_log(HVD_LOG_WARN, "%6000d", 1);
    tap_ok(strlen(last_line) == 4095, "a line that is too long is cut");
    hvd_log_stamp(NULL);
    hvd_log(HVD_LOG_WARN, "late");
    tap_ok(strcmp(last_line, "hvd: late") == 0, "a stamp can be removed");
}

static void test_levels(void)
{
    enum hvd_log_level level = HVD_LOG_OFF;

    tap_ok(hvd_log_level_parse("Trace", &level) == 0 && level == HVD_LOG_DEBUG &&
               hvd_log_level_parse("FATAL", &level) == 0 && level == HVD_LOG_ERROR,
           "Horovod's words for levels are known in any case");
    tap_ok(hvd_log_level_parse("loud", &level) == HVD_ERR_ARG && level == HVD_LOG_ERROR,
           "other words leave the level alone");
}

int main(void)
{
    test_plain();
    test_stamp();
    test_levels();
    return tap_done();
}
