/* SPDX-License-Identifier: Apache-2.0 */
/* The words of plugstack.conf. */
#include "spank/admin.h"

#include <string.h>

#include "tests/tap.h"

static void test_good(void)
{
    struct hvd_admin admin;

    hvd_admin_init(&admin, "/opt/hvd/python");
    tap_ok(!admin.is_default_on && !admin.keep_mpi && admin.timeout_s == 60 &&
               strcmp(admin.python_dir, "/opt/hvd/python") == 0 &&
               admin.topology[0] == '\0',
           "defaults: off, PMIx on, 60 s, the installed front end");
    tap_ok(hvd_admin_parse("default=on", &admin, NULL) == 0 && admin.is_default_on,
           "default=on");
    tap_ok(hvd_admin_parse("mpi=keep", &admin, NULL) == 0 && admin.keep_mpi, "mpi=keep");
    tap_ok(hvd_admin_parse("timeout=3600", &admin, NULL) == 0 && admin.timeout_s == 3600,
           "timeout=3600");
    tap_ok(hvd_admin_parse("pythonpath=/a/b", &admin, NULL) == 0 &&
               strcmp(admin.python_dir, "/a/b") == 0,
           "pythonpath=DIR");
    tap_ok(hvd_admin_parse("pythonpath=", &admin, NULL) == 0 &&
               admin.python_dir[0] == '\0',
           "pythonpath= means nowhere");
    tap_ok(hvd_admin_parse("topology=/a.xml", &admin, NULL) == 0 &&
               strcmp(admin.topology, "/a.xml") == 0,
           "topology=FILE");
}

static void test_bad(void)
{
    static const char *const bad[] = {
        "default=maybe",    "timeout=0",      "timeout=3601", "timeout=-1",
        "timeout=5s",       "timeout=",       "timeout= 5",   "pythonpath=relative",
        "pythonpath=/a:/b", "topology=x.xml", "verbose",      "",
    };
    struct hvd_admin before;
    struct hvd_admin admin;
    char longest[2 * PATH_MAX];
    struct hvd_error err = {0};

    hvd_admin_init(&before, "/opt/hvd/python");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        admin = before;
        tap_ok(hvd_admin_parse(bad[i], &admin, &err) == HVD_ERR_ARG &&
                   memcmp(&admin, &before, sizeof(admin)) == 0 && err.text[0] != '\0',
               "\"%s\" is refused", bad[i]);
    }
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "pythonpath=/", strlen("pythonpath=/"));
    longest[sizeof(longest) - 1] = '\0';
    admin = before;
    tap_ok(hvd_admin_parse(longest, &admin, &err) == HVD_ERR_ARG &&
               memcmp(&admin, &before, sizeof(admin)) == 0,
           "a path longer than the system allows is refused");
}

int main(void)
{
    test_good();
    test_bad();
    return tap_done();
}
