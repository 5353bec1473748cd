/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger who knows the address of a rank, but not the secret of its job, cannot give
 * it data. */
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "tests/collectives/transport/net/net_rank.h"
#include "tests/tap.h"

enum {
    WAIT_MS = 60000,
    STRANGER = 2, /* this rank claims to be rank 0 */
    /* how long to wait for the warning about forged messages; it never comes if they are
     * accepted */
    FORGED_MS = 20000,
};

static char said[JOB_LINE_BYTES]; /* all lines that were logged */

static void keep_line(enum hvd_log_level level, const char *line)
{
    size_t at = strlen(said);

    (void)level;
    snprintf(said + at, sizeof(said) - at, "%s; ", line);
}

/* Waits until the forged messages have been read. Both were written to their connection
 * before this rank's last gather, but may be read later than messages of other
 * connections. */
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

    net_rank_gather(self, net); /* the forged messages are now under way */
    net_rank_gather(self, net); /* and now the true ones */
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
           "a rank accepts no message of a stranger that claims to be another rank "
           "(accepted: %s)",
           line);
    job_hear(&job, 1, WAIT_MS, line);
    tap_ok(strcmp(line, "hvd: rank 1 on b dropped a message with a wrong job key; ") == 0,
           "the first dropped message is logged once (%s)", line);
    job_serve_exchange(&job);
    job_hear(&job, 1, WAIT_MS, line);
    tap_ok(strcmp(line, "hvd: rank 1 on b dropped 2 messages with a wrong job key; ") ==
               0,
           "the number of dropped messages is logged at the end (%s)", line);
    tap_ok(job_finish(&job), "the job continues in spite of the stranger");
    return tap_done();
}
