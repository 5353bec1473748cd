/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: which rank is on which node, for known and for random host names. */
#include "pmix_boot/layout.h"

#include <string.h>
#include <time.h>

#include "gpu_binding/base/error.h"
#include "tests/tap.h"

enum {
    MAX_RANKS = 4000,
    MAX_HOST = 8
};

/* Each letter is the host of a rank; each digit is the expected number of a rank. */
struct layout_case {
    const char *name;
    const char *hosts;
    int nodes;
    const char *node;
    const char *local_rank;
    const char *cross_rank;
    const char *cross_size;
    bool is_homogeneous;
};

static const struct layout_case cases[] = {
    {"one rank", "a", 1, "0", "0", "0", "1", true},
    {"four ranks on one node", "aaaa", 1, "0000", "0123", "0000", "1111", true},
    {"two by two", "aabb", 2, "0011", "0101", "0011", "2222", true},
    {"two by two, cyclic", "abab", 2, "0101", "0011", "0101", "2222", true},
    {"uneven 3 + 1", "aaab", 2, "0001", "0120", "0001", "2112", false},
    {"uneven 1 + 3", "abbb", 2, "0111", "0012", "0100", "2211", false},
    {"hosts out of alphabetical order", "zzaa", 2, "0011", "0101", "0011", "2222", true},
    {"uneven 1 + 2 + 1, cyclic", "abcb", 3, "0121", "0001", "0120", "3331", false},
    {"a node in the middle has no local rank 1", "aabcc", 3, "00122", "01001", "00121",
     "32332", false},
};

static int fill_hosts(const char *letters, char (*names)[MAX_HOST], const char **hosts)
{
    int size = (int)strlen(letters);

    for (int rank = 0; rank < size; rank++) {
        snprintf(names[rank], MAX_HOST, "%c", letters[rank]);
        hosts[rank] = names[rank];
    }
    return size;
}

static bool digits_are(const char *digits, const int *values, int count)
{
    for (int i = 0; i < count; i++) {
        if (values[i] != digits[i] - '0') {
            return false;
        }
    }
    return true;
}

static void test_case(const struct layout_case *expected)
{
    char names[16][MAX_HOST];
    const char *hosts[16] = {NULL};
    int cross_rank[16];
    int cross_size[16];
    int size = fill_hosts(expected->hosts, names, hosts);
    struct hvd_layout layout = {0};
    bool right = hvd_layout_init(&layout, hosts, size, NULL) == 0;

    if (!tap_ok(right, "%s: accepted", expected->name)) {
        return;
    }
    for (int rank = 0; rank < size; rank++) {
        cross_rank[rank] = hvd_layout_cross_rank(&layout, rank);
        cross_size[rank] = hvd_layout_cross_size(&layout, rank);
    }
    tap_ok(layout.size == size && layout.nodes == expected->nodes &&
               digits_are(expected->node, layout.node, size),
           "%s: nodes are numbered by their lowest rank", expected->name);
    tap_ok(digits_are(expected->local_rank, layout.local_rank, size), "%s: local ranks",
           expected->name);
    tap_ok(digits_are(expected->cross_rank, cross_rank, size) &&
               digits_are(expected->cross_size, cross_size, size),
           "%s: cross ranks and sizes", expected->name);
    tap_ok(hvd_layout_is_homogeneous(&layout) == expected->is_homogeneous,
           "%s: homogeneous or not", expected->name);
    hvd_layout_finish(&layout);
}

/* Checks rules that hold for every layout, by the host names. */
static bool is_consistent(const struct hvd_layout *layout, const char *const *hosts)
{
    int seen = 0;

    for (int node = 0; node < layout->nodes; node++) {
        for (int i = 0; i < hvd_layout_local_size(layout, node); i++) {
            int rank = hvd_layout_rank(layout, node, i);
            int leader = hvd_layout_rank(layout, node, 0);

            if (layout->node[rank] != node || layout->local_rank[rank] != i ||
                strcmp(hosts[rank], hosts[leader]) != 0 ||
                (i > 0 && rank <= hvd_layout_rank(layout, node, i - 1)) ||
                (i == 0 && node > 0 && rank <= hvd_layout_rank(layout, node - 1, 0))) {
                return false;
            }
            seen++;
        }
    }
    return seen == layout->size && layout->node_first[0] == 0 &&
           layout->node_first[layout->nodes] == layout->size;
}

static void test_random(int rounds)
{
    static char names[64][MAX_HOST];
    static const char *hosts[256];
    bool right = true;

    for (int i = 0; i < 64; i++) {
        snprintf(names[i], MAX_HOST, "n%d", i * 7 % 64);
    }
    for (int round = 0; round < rounds && right; round++) {
        int size = 1 + rand() % 256;
        int nodes = 1 + rand() % 64;
        struct hvd_layout layout = {0};

        for (int rank = 0; rank < size; rank++) {
            hosts[rank] = names[rand() % nodes];
        }
        right = hvd_layout_init(&layout, hosts, size, NULL) == 0 &&
                is_consistent(&layout, hosts);
        hvd_layout_finish(&layout);
    }
    tap_ok(right, "%d random layouts are consistent", rounds);
}

static void test_thousand_nodes(void)
{
    static char names[MAX_RANKS][MAX_HOST];
    static const char *hosts[MAX_RANKS];
    struct hvd_layout layout = {0};

    for (int rank = 0; rank < MAX_RANKS; rank++) {
        snprintf(names[rank], MAX_HOST, "n%d", rank / 4);
        hosts[rank] = names[rank];
    }
    tap_ok(hvd_layout_init(&layout, hosts, MAX_RANKS, NULL) == 0 &&
               layout.nodes == 1000 && is_consistent(&layout, hosts) &&
               hvd_layout_cross_size(&layout, 0) == 1000 &&
               hvd_layout_cross_rank(&layout, MAX_RANKS - 1) == 999,
           "1000 nodes of 4 ranks");
    hvd_layout_finish(&layout);
}

static void test_bad_input(void)
{
    const char *hosts[] = {"a", NULL, ""};
    struct hvd_layout layout = {0};
    struct hvd_error err;

    tap_ok(hvd_layout_init(&layout, hosts, 0, &err) == HVD_ERR_ARG,
           "a job without ranks is rejected");
    tap_ok(hvd_layout_init(&layout, hosts, 2, &err) == HVD_ERR_ARG &&
               strcmp(err.text, "rank 1 has no host name") == 0,
           "a missing host name is rejected; the error names the rank");
    tap_ok(layout.node == NULL, "a rejected layout is not changed");
    hvd_layout_finish(&layout);
}

int main(void)
{
    srand(tap_seed((unsigned)time(NULL)));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_case(&cases[i]);
    }
    test_random(300);
    test_thousand_nodes();
    test_bad_input();
    return tap_done();
}
