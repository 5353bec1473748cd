/* SPDX-License-Identifier: Apache-2.0 */
/* Who knows where a rank listens, but not the secret of its job, cannot give it data. */
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "tests/collectives/transport/net/net_rank.h"
#include "tests/tap.h"

enum {
    WAIT_MS = 60000,
    STRANGER = 2, /* plays rank 0 */
    FORGED_MS = 20000, /* if they are believed, nothing is said */
};

static char said[JOB_LINE_BYTES]; /* in the log, one line behind the other */

static void keep_line(enum hvd_log_level level, const char *line)
{
    size_t at = strlen(said);

    (void)level;
    snprintf(said + at, sizeof(said) - at, "%s; ", line);
}

/* The forged messages were written to their connection, both, before this rank's last
 * gather; they may be read later than those of another connection. */
static void await_forged(struct hvd_net *net)
{
    int64_t deadline_ms = hvd_clock_ms() + FORGED_MS;

    while (said[0] == '\0' && hvd_clock_ms() < deadline_ms) {
        hvd_net_progress(net, NULL);
    }
    for (int i = 0; i < 100; i++) {
        hvd_net_progress(net, NULL);
    }
}

static int take_from_0(struct job_rank *self)
{
    struct hvd_net *net = net_rank_connect(self);
    struct hvd_net_op op;
    char data[8] = "", sum[8] = "";

    hvd_log_to(keep_line, HVD_LOG_WARN);

    net_rank_gather(self, net); /* the forged messages are on their way */
    net_rank_gather(self, net); /* as are the true ones */
    await_forged(net);
    net_rank_recv(net, 0, 0, data, sizeof(data), &op);
    net_rank_wait(net, &op, 1, WAIT_MS);
    net_rank_recv(net, 0, 0, sum, sizeof(sum), &op);
    net_rank_wait(net, &op, 1, WAIT_MS);
    job_say(self, "%s %s", data, sum);
    job_say(self, "%s", said);
    said[0] = '\0';
    net_rank_gather(self, net);
    hvd_net_destroy(net);
    job_say(self, "%s", said);
    return 0;
}

static int give(struct job_rank *self, const char *word)
{
    struct hvd_net *net = net_rank_connect(self);
    struct hvd_net_op ops[2];
    char data[8] = "";

    snprintf(data, sizeof(data), "%s", word);
    for (int i = 0; i < 2; i++) {
        if (self->boot.rank == 0 && i == 0) {
            net_rank_gather(self, net);
        }
        net_rank_send(net, 1, 0, data, sizeof(data), &ops[i]);
    }
    net_rank_wait(net, ops, 2, WAIT_MS);
    for (int i = 0; i < (self->boot.rank == 0 ? 2 : 3); i++) {
        net_rank_gather(self, net);
    }
    hvd_net_destroy(net);
    return 0;
}

static int play(struct job_rank *self, const void *argument)
{
    (void)argument;
    if (self->boot.rank == 1) {
        return take_from_0(self);
    }
    if (self->boot.rank == STRANGER) {
        self->boot.rank = 0;
        memset(self->boot.secret, 0x21, sizeof(self->boot.secret));
        return give(self, "forged");
    }
    return give(self, "true");
}

int main(void)
{
    struct job job;
    char line[JOB_LINE_BYTES] = "";

    job_start(&job, "a b c", play, NULL);
    net_rank_serve_connect(&job);
    for (int i = 0; i < 2; i++) {
        job_serve_exchange(&job);
    }
    job_hear(&job, 1, WAIT_MS, line);
    tap_ok(strcmp(line, "true true") == 0,
           "a rank takes no message of a stranger who plays another rank (took: %s)",
           line);
    job_hear(&job, 1, WAIT_MS, line);
    tap_ok(strcmp(line, "hvd: rank 1 on b dropped a message with a wrong job key; ") == 0,
           "and says so once (%s)", line);
    job_serve_exchange(&job);
    job_hear(&job, 1, WAIT_MS, line);
    tap_ok(strcmp(line, "hvd: rank 1 on b dropped 2 messages with a wrong job key; ") ==
               0,
           "at the end it says how many there were (%s)", line);
    tap_ok(job_finish(&job), "the job goes on");
    return tap_done();
}
