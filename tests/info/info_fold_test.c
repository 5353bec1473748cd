/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how hvd-info --check prints nodes, and the facts of many ranks. */
#include "contrib/info/check/fold.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/info/hostlist.h"
#include "tests/tap.h"

enum {
    MOST = 8
};

/* Prints names, which are separated by spaces, as a list. The caller frees the text. */
static char *fold_names(const char *text)
{
    char *copy = strdup(text);
    const char *names[MOST];
    char *list = NULL;
    size_t bytes;
    FILE *out = open_memstream(&list, &bytes);
    int count = 0;

    for (char *name = strtok(copy, " "); name != NULL; name = strtok(NULL, " ")) {
        names[count++] = name;
    }
    qsort(names, (size_t)count, sizeof(*names), hvd_info_hostlist_compare);
    hvd_info_hostlist_print(names, count, out);
    fclose(out);
    free(copy);
    return list;
}

static void test_names(void)
{
    static const struct {
        const char *names;
        const char *list;
    } cases[] = {
        {"n1", "n1"},
        {"login", "login"},
        {"n3 n2 n1 n7", "n[1-3,7]"},
        {"n9 n10 n11", "n[9-11]"},
        {"n08 n09 n10 n11", "n[08-11]"},
        {"n1 n02", "n[1,02]"},
        {"n2 n02", "n[2,02]"},
        {"gpu-a1-02 gpu-a1-01 gpu-b1-01", "gpu-a1-[01-02],gpu-b1-01"},
        {"n2.site n1.site n1.other", "n1.other,n[1-2].site"},
        {"n2-ib0 n1-ib0", "n1-ib0,n2-ib0"},
        {"10 11 login", "[10-11],login"},
        {"n1234567890123456789 n1", "n1234567890123456789,n1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *list = fold_names(cases[i].names);

        tap_ok(strcmp(list, cases[i].list) == 0, "%s is printed as %s: %s",
               cases[i].names, cases[i].list, list);
        free(list);
    }
}

/* Checks what is printed for count ranks. */
static void check_facts(const char *promise, const char *const *hosts,
                        const char *const *texts, int count, const char *expected)
{
    struct hvd_info_nodes nodes;
    struct hvd_error err = {0};
    char *printed = NULL;
    size_t bytes;
    FILE *out = open_memstream(&printed, &bytes);
    int status = hvd_info_nodes_init(&nodes, hosts, count, &err);

    if (status == 0) {
        status = hvd_info_fold_print(&nodes, texts, out, &err);
        hvd_info_nodes_finish(&nodes);
    }
    fclose(out);
    tap_ok(status == 0 && strcmp(printed, expected) == 0, "%s", promise);
    tap_note("%s", err.text);
    for (const char *line = strtok(printed, "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        tap_note("%s", line);
    }
    free(printed);
}

static void test_facts(void)
{
    static const char *const hosts[] = {"n1", "n1", "n2", "n2", "n3"};
    static const char *const same[] = {"a: 1\nb: 2\n", "a: 1\nb: 2\n", "a: 1\nb: 2\n",
                                       "a: 1\nb: 2\n", "a: 1\nb: 2\n"};
    static const char *const other_node[] = {"a: 1\nb: 2\n", "a: 1\nb: 2\n",
                                             "a: 1\nb: 2\n", "a: 1\nb: 2\n",
                                             "c: 0\na: 7\nb: 2\n"};
    static const char *const other_rank[] = {"a: 1\n", "a: 1\n", "a: 1\n", "a: 2\n",
                                             "a: 1\n"};
    static const char *const continued[] = {"a: 1\n    x\n    y\nb: 2\n", "a: 1\nb: 2\n"};

    check_facts("a fact of all ranks is printed once", hosts, same, 5,
                "n[1-3]: a: 1\nn[1-3]: b: 2\n");
    check_facts("a node that differs has lines of its own, beside those it differs from",
                hosts, other_node, 5, "n[1-2]: a: 1\nn3: a: 7\nn[1-3]: b: 2\nn3: c: 0\n");
    check_facts("a rank that differs from others on its node is named", hosts, other_rank,
                5, "n[1-3] (ranks 0-2,4): a: 1\nn2 (rank 3): a: 2\n");
    check_facts("indented lines belong to the fact before them", hosts, continued, 2,
                "n1 (rank 0): a: 1\n    x\n    y\nn1 (rank 1): a: 1\nn1: b: 2\n");
}

int main(void)
{
    test_names();
    test_facts();
    return tap_done();
}
