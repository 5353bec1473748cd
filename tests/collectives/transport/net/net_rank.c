/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that ranks in the net tests share. */
#include "tests/collectives/transport/net/net_rank.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"

struct hvd_net *net_rank_create(void)
{
    struct hvd_net *net;
    struct hvd_error err = {0};

    bool is_wrong;

    if (hvd_net_create(hvd_net_choice_of(getenv(HVD_ENV_NET), &is_wrong), &net, &err) !=
        0) {
        printf("# %s\n", err.text);
        exit(98);
    }
    return net;
}

void net_rank_meet(struct job_rank *self, struct hvd_net *net)
{
    struct hvd_error err = {0};
    struct hvd_net_job job = {
        .rank = self->boot.rank,
        .size = self->boot.size,
        .node = self->boot.layout.node,
        .host = self->boot.peers[self->boot.rank].host,
        .secret = self->boot.secret,
    };
    const void *address;
    size_t bytes;

    hvd_net_address(net, &address, &bytes);
    job_exchange(self, address, bytes);
    job.addresses = self->addresses;
    job.bytes = self->bytes;
    if (hvd_net_connect(net, &job, &err) != 0) {
        printf("# %s\n", err.text);
        exit(98);
    }
    job_exchange(self, "", 1);
}

struct hvd_net *net_rank_connect(struct job_rank *self)
{
    struct hvd_net *net = net_rank_create();

    net_rank_meet(self, net);
    return net;
}

void net_rank_serve_connect(struct job *job)
{
    job_serve_exchange(job);
    job_serve_exchange(job);
}

void net_rank_send(struct hvd_net *net, int peer, uint32_t channel, const void *data,
                   size_t bytes, struct hvd_net_op *op)
{
    *op = (struct hvd_net_op){.data = (char *)(uintptr_t)data, .bytes = bytes};
    hvd_net_send(hvd_net_flow_get(net, peer, channel), op);
}

void net_rank_recv(struct hvd_net *net, int peer, uint32_t channel, void *data,
                   size_t bytes, struct hvd_net_op *op)
{
    *op = (struct hvd_net_op){.data = data, .bytes = bytes};
    hvd_net_recv(hvd_net_flow_get(net, peer, channel), op);
}

static bool have_ended(const struct hvd_net_op *ops, int count)
{
    for (int i = 0; i < count; i++) {
        if (ops[i].status == HVD_INPROGRESS) {
            return false;
        }
    }
    return true;
}

bool net_rank_wait(struct hvd_net *net, const struct hvd_net_op *ops, int count,
                   int timeout_ms)
{
    int64_t deadline_ms = hvd_clock_ms() + timeout_ms;
    struct pollfd fd = {.fd = hvd_net_fd(net), .events = POLLIN};

    while (!have_ended(ops, count)) {
        int64_t left_ms = deadline_ms - hvd_clock_ms();

        if (left_ms <= 0) {
            return false;
        }
        if (hvd_net_progress(net, NULL) == 0 && !have_ended(ops, count) &&
            hvd_net_arm(net) == 0) {
            poll(&fd, 1, (int)left_ms);
        }
    }
    return true;
}

void net_rank_gather(struct job_rank *self, struct hvd_net *net)
{
    struct pollfd fds[] = {
        {.fd = self->fd, .events = POLLIN},
        {.fd = hvd_net_fd(net), .events = POLLIN},
    };

    job_offer(self, "", 1);
    do {
        while (hvd_net_progress(net, NULL) > 0 || hvd_net_arm(net) != 0) {
        }
        poll(fds, 2, 10000);
    } while (fds[0].revents == 0);
    job_collect(self);
}

double net_rank_cpu(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}
