/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the words of plugstack.conf. */
#include "spank/plugstack.h"

#include <string.h>

#include "tests/tap.h"

static void test_good(void)
{
    struct hvd_spank_plugstack plugstack;

    hvd_spank_plugstack_init(&plugstack, "/opt/hvd/python");
    tap_ok(!plugstack.is_default_on && !plugstack.keep_mpi && plugstack.timeout_s == 60 &&
               strcmp(plugstack.python_dir, "/opt/hvd/python") == 0 &&
               plugstack.topology[0] == '\0',
           "defaults: off, PMIx on, 60 s, the installed front end");
    tap_ok(hvd_spank_plugstack_parse("default=on", &plugstack, NULL) == 0 &&
               plugstack.is_default_on,
           "default=on switches hvd on for every step");
    tap_ok(hvd_spank_plugstack_parse("mpi=keep", &plugstack, NULL) == 0 &&
               plugstack.keep_mpi,
           "mpi=keep leaves --mpi alone");
    tap_ok(hvd_spank_plugstack_parse("timeout=3600", &plugstack, NULL) == 0 &&
               plugstack.timeout_s == 3600,
           "timeout=3600 sets PMIx's time limit");
    tap_ok(hvd_spank_plugstack_parse("pythonpath=/a/b", &plugstack, NULL) == 0 &&
               strcmp(plugstack.python_dir, "/a/b") == 0,
           "pythonpath=DIR sets the directory of the front end");
    tap_ok(hvd_spank_plugstack_parse("pythonpath=", &plugstack, NULL) == 0 &&
               plugstack.python_dir[0] == '\0',
           "an empty pythonpath= leaves PYTHONPATH alone");
    tap_ok(hvd_spank_plugstack_parse("topology=/a.xml", &plugstack, NULL) == 0 &&
               strcmp(plugstack.topology, "/a.xml") == 0,
           "topology=FILE sets the topology file");
    tap_ok(hvd_spank_plugstack_parse("forbid=elastic,bind,tasks=node,min", &plugstack,
                                     NULL) == 0 &&
               strcmp(plugstack.rules.forbid, "elastic,bind,tasks=node,min") == 0,
           "forbid= takes words and keys of --hvd");
    tap_ok(hvd_spank_plugstack_parse("fix=bind=cores,timeline=/a b", &plugstack, NULL) ==
                   0 &&
               strcmp(plugstack.rules.fix, "bind=cores,timeline=/a b") == 0 &&
               strcmp(plugstack.rules.forbid, "elastic,bind,tasks=node,min") == 0,
           "fix= takes words of --hvd, beside those of forbid=");
}

static void test_bad(void)
{
    static const char *const bad[] = {
        "default=maybe",    "timeout=0",       "timeout=3601",   "timeout=-1",
        "timeout=5s",       "timeout=",        "timeout= 5",     "pythonpath=relative",
        "pythonpath=/a:/b", "topology=x.xml",  "verbose",        "",
        "forbid=elastci",   "forbid=bind=all", "forbid=on",      "forbid=,",
        "fix=bind",         "fix=off",         "fix=verbose,on", "fix=min=2",
    };
    struct hvd_spank_plugstack before;
    struct hvd_spank_plugstack plugstack;
    char longest[2 * PATH_MAX];
    struct hvd_error err = {0};

    hvd_spank_plugstack_init(&before, "/opt/hvd/python");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        plugstack = before;
        tap_ok(hvd_spank_plugstack_parse(bad[i], &plugstack, &err) == HVD_ERR_ARG &&
                   memcmp(&plugstack, &before, sizeof(plugstack)) == 0 &&
                   err.text[0] != '\0',
               "\"%s\" is refused", bad[i]);
    }
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "pythonpath=/", strlen("pythonpath=/"));
    longest[sizeof(longest) - 1] = '\0';
    plugstack = before;
    tap_ok(hvd_spank_plugstack_parse(longest, &plugstack, &err) == HVD_ERR_ARG &&
               memcmp(&plugstack, &before, sizeof(plugstack)) == 0,
           "a path longer than the system allows is refused");
}

/* Checks that the installed hvd.conf lists all words for the administrator. */
static void test_file(const char *name)
{
    char text[4096] = "";
    char list[HVD_SPANK_PLUGSTACK_LIST_BYTES];
    FILE *file = fopen(name, "r");

    if (file != NULL) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
    }
    hvd_spank_plugstack_list(list);
    tap_ok(strstr(text, list) != NULL, "hvd.conf has all words: %s", list);
}

int main(int count, char **arguments)
{
    test_file(count > 1 ? arguments[1] : "");
    test_good();
    test_bad();
    return tap_done();
}
