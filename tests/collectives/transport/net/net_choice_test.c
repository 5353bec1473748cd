/* SPDX-License-Identifier: Apache-2.0 */
/* If some ranks have no RDMA, or UCX fails on some, all ranks use TCP, and the rank that
 * caused it logs a warning. If the user asks for UCX without RDMA, rank 0 warns. The
 * adapters of this machine are simulated by __wrap_hvd_rdma_is_unusable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/net/rdma.h"
#include "gpu_binding/base/env.h"
#include "tests/collectives/logged.h"
#include "tests/collectives/transport/net/net_rank.h"
#include "tests/tap.h"

enum {
    WAIT_MS = 60000,
    EXIT_UCX = 10, /* exit code of a rank that used UCX; it is 0 after TCP */
};

/* The adapters and the UCX of the two ranks, and the warning that is expected. */
struct part {
    bool is_asked; /* HVD_NET=ucx */
    bool has_adapter[2];
    bool has_broken_ucx[2];
    int warns; /* the rank with the warning */
    const char *warning; /* "" for none */
};

static bool has_adapter;
static int looks;

/* Reports the simulated adapter in the first call, which decides whether to use UCX.
 * Later calls are for UCX itself, which must not use an adapter that does not exist. */
bool __wrap_hvd_rdma_is_unusable(char *text, size_t size);
bool __wrap_hvd_rdma_is_unusable(char *text, size_t size)
{
    if (has_adapter && looks++ == 0) {
        return false;
    }
    snprintf(text, size, "no RDMA adapter is active");
    return true;
}

static bool say_hello(struct hvd_net *net, int rank)
{
    struct hvd_net_op ops[2];
    int mine = 100 + rank, others = 0;

    net_rank_send(net, 1 - rank, 0, &mine, sizeof(mine), &ops[0]);
    net_rank_recv(net, 1 - rank, 0, &others, sizeof(others), &ops[1]);
    return net_rank_wait(net, ops, 2, WAIT_MS) && others == 101 - rank;
}

static int meet(struct job_rank *self, const void *argument)
{
    const struct part *part = argument;
    const int rank = self->boot.rank;
    const char *warning = rank == part->warns ? part->warning : "";
    struct hvd_net *net;
    bool is_right, is_ucx;

    has_adapter = part->has_adapter[rank];
    if (part->is_asked) {
        setenv(HVD_ENV_NET, "ucx", 1);
    }
    if (part->has_broken_ucx[rank]) {
        setenv(HVD_ENV_UCX_MODULE, "/nonexistent/hvd_ucx.so", 1);
    }
    logged_begin();
    net = net_rank_connect(self);
    is_right = warning[0] == '\0' ? logged_count(HVD_LOG_WARN) == 0
                                  : logged_has(HVD_LOG_WARN, warning);
    is_ucx = hvd_net_is_ucx(net);
    is_right = say_hello(net, rank) && is_right;
    net_rank_gather(self, net);
    if (!is_right) {
        logged_show();
    }
    hvd_net_destroy(net);
    return !is_right ? 1 : is_ucx ? EXIT_UCX : 0;
}

static bool both_end_with(const struct part *part, int code)
{
    struct job job;
    bool is_good;

    fflush(stdout);
    job_start(&job, "a b", meet, part);
    net_rank_serve_connect(&job);
    job_serve_exchange(&job);
    is_good = job_wait(&job, 0) == code;
    is_good = job_wait(&job, 1) == code && is_good;
    job_finish(&job);
    return is_good;
}

int main(void)
{
    const struct part all = {.has_adapter = {true, true}, .warning = ""};
    const struct part none = {.warning = ""};
    const struct part asked = {.is_asked = true,
                               .warning = "HVD_NET=ucx without RDMA (no RDMA adapter is "
                                          "active): UCX listens on TCP ports, and "};
    const struct part some = {.has_adapter = {true, false},
                              .warns = 1,
                              .warning =
                                  "TCP, because rank 1 on b does not use UCX: no RDMA "
                                  "adapter is active"};
    const struct part broken = {.has_adapter = {true, true},
                                .has_broken_ucx = {false, true},
                                .warns = 1,
                                .warning = "TCP, because rank 1 on b does not use UCX: "};
    const struct part no_ucx = {
        .has_adapter = {true, true}, .has_broken_ucx = {true, true}, .warning = ""};

    unsetenv(HVD_ENV_NET);
    tap_ok(both_end_with(&all, EXIT_UCX), "ranks that all have RDMA use UCX");
    tap_ok(both_end_with(&none, 0), "ranks without RDMA use TCP without a warning");
    tap_ok(both_end_with(&asked, EXIT_UCX),
           "with HVD_NET=ucx and no RDMA, rank 0 alone warns of UCX's ports");
    tap_ok(both_end_with(&some, 0),
           "if only some ranks have RDMA, all use TCP, and a rank without RDMA warns");
    tap_ok(both_end_with(&broken, 0), "if UCX fails on a rank with an active adapter, "
                                      "all use TCP, and that rank warns");
    tap_ok(!both_end_with(&no_ucx, 0) && !both_end_with(&no_ucx, EXIT_UCX),
           "this test notices a warning that it does not expect");
    return tap_done();
}
