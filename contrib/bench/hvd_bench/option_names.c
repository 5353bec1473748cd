/* SPDX-License-Identifier: Apache-2.0 */
/* The names of types and operations. */
#include <string.h>

#include "contrib/bench/hvd_bench/options.h"

static const struct {
    const char *name;
    enum hvd_op op;
} op_names[] = {
    {"sum", HVD_SUM}, {"average", HVD_AVERAGE}, {"avg", HVD_AVERAGE},
    {"min", HVD_MIN}, {"max", HVD_MAX},         {"product", HVD_PRODUCT},
};

/* In the order of the contenders that hvd_bench.c makes of them. */
const char *const bench_peer_names[] = {"mpi",     "gloo",  "limit",   "ucx-limit", "one",
                                        "builtin", "torch", "horovod", NULL};
static const char *const peers_with_program[] = {"gloo", "torch", "horovod"};

static bool takes_program(const char *name)
{
    for (size_t i = 0; i < sizeof(peers_with_program) / sizeof(char *); i++) {
        if (strcmp(name, peers_with_program[i]) == 0) {
            return true;
        }
    }
    return false;
}

int bench_peer_find(const char *text, struct hvd_error *err)
{
    size_t length = strcspn(text, "=");
    bool has_program = text[length] == '=';

    for (int i = 0; bench_peer_names[i] != NULL; i++) {
        const char *name = bench_peer_names[i];

        if (strlen(name) != length || strncmp(name, text, length) != 0) {
            continue;
        }
        if (has_program && !takes_program(name)) {
            return hvd_fail(err, HVD_ERR_ARG, "--vs: expected %s, found \"%.200s\"", name,
                            text);
        }
        if (has_program && text[length + 1] == '\0') {
            return hvd_fail(err, HVD_ERR_ARG,
                            "--vs: expected a path behind %s=, found nothing", name);
        }
        return i;
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "--vs: unknown peer \"%.100s\"; known are mpi, gloo, limit, "
                    "ucx-limit, one, builtin, torch, horovod",
                    text);
}

int bench_dtype_find(const char *name)
{
    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        if (strcmp(name, hvd_dtype_name((enum hvd_dtype)dtype)) == 0) {
            return dtype;
        }
    }
    return -1;
}

int bench_op_find(const char *name)
{
    for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
        if (strcmp(name, op_names[i].name) == 0) {
            return (int)op_names[i].op;
        }
    }
    return -1;
}

const char *bench_op_name(enum hvd_op op)
{
    for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
        if (op_names[i].op == op) {
            return op_names[i].name;
        }
    }
    return "?";
}
