/* SPDX-License-Identifier: Apache-2.0 */
/* How an error names the missing ranks. */
#include "pmix_boot/rendezvous/missing.h"

#include <signal.h>
#include <string.h>

#include "tests/tap.h"

struct names_case {
    /* each letter is the host of a missing rank; '-': no host, '.': not missing */
    const char *ranks;
    const char *text; /* a part of the error */
};

static const struct names_case cases[] = {
    {".-", "1 of 2 ranks did not start within 1.5 s: rank 1; call it"},
    {"-.-", "2 of 3 ranks did not start within 1.5 s: ranks 0, 2; call it"},
    {".---", "3 of 4 ranks did not start within 1.5 s: ranks 1-3; call it"},
    {".a", "rank 1 (on a); "},
    {"aabb.b", "ranks 0-1 (on a), 2-3 (on b), 5 (on b); "},
    {"a-", "ranks 0 (on a), 1; "},
    {"-.-.-.-.--.-.--", "ranks 0, 2, 4, 6, 8-9, 11 and 2 more; "},
};

static void test_names(const struct names_case *given)
{
    struct hvd_missing missing = {0};
    struct hvd_error err = {0};
    int size = (int)strlen(given->ranks), status;

    for (int i = 0; i < size; i++) {
        const char host[] = {given->ranks[i], '\0'};

        if (host[0] != '.') {
            hvd_missing_add(&missing, i, host[0] == '-' ? "" : host);
        }
    }
    status = hvd_missing_fail(&missing, size, 1500, "call it", &err);
    if (!tap_ok(status == HVD_ERR_TIMEOUT && strstr(err.text, given->text) != NULL, "%s",
                given->text)) {
        tap_note("%s", err.text);
    }
}

static void test_end(void)
{
    struct hvd_missing_end end = {.rank = 3, .host = "n2"};
    struct hvd_error err = {0};

    tap_ok(hvd_missing_fail_end(&end, false, &err) == HVD_ERR_PEER &&
               strstr(err.text, "rank 3 on n2 exited with status 0 and did not call "
                                "init: ") == err.text,
           "%s", err.text);
    end = (struct hvd_missing_end){.rank = 3, .wait_status = SIGKILL};
    hvd_missing_fail_end(&end, true, &err);
    tap_ok(strstr(err.text,
                  "rank 3 was killed by signal 9 (Killed) and did not call init "
                  "with this list of ranks: ") == err.text,
           "%s", err.text);
}

/* Uses the longest names; they must leave room for the reason. */
static void test_long_names(void)
{
    struct hvd_missing missing = {0};
    struct hvd_error err = {0};
    char host[300];

    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    for (int i = 0; i < 40; i += 2) {
        hvd_missing_add(&missing, 65000 + i, host);
    }
    hvd_missing_fail(&missing, 65536, 60000, HVD_MISSING_CALL, &err);
    tap_ok(strstr(err.text, " and 14 more; " HVD_MISSING_CALL) != NULL,
           "long host names are cut; the reason is not");
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_names(&cases[i]);
    }
    test_end();
    test_long_names();
    return tap_done();
}
