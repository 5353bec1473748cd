/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers flood the ports of a rank. They must all be disconnected, and the job must
 * continue.
 *
 * usage: flood_test flood.py */
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/clock.h"
#include "tests/collectives/transport/net/net_rank.h"
#include "tests/tap.h"

enum {
    WAIT_MS = 60000,
    CONNECTIONS = 100,
    VICTIM = 1,
};

static int talk(struct job_rank *self, const void *argument)
{
    struct hvd_net *net = net_rank_connect(self);
    struct hvd_net_op ops[2];
    int peer = 1 - self->boot.rank;
    char to = 5, from = 0;
    bool is_good = true;

    (void)argument;
    for (int i = 0; i < 2; i++) {
        net_rank_send(net, peer, 0, &to, 1, &ops[0]);
        net_rank_recv(net, peer, 0, &from, 1, &ops[1]);
        is_good = is_good && net_rank_wait(net, ops, 2, WAIT_MS) && ops[1].status == 0 &&
                  from == to;
        if (i == 0 && self->boot.rank == VICTIM) {
            job_say(self, "met");
        }
        net_rank_gather(self, net); /* flood.py runs during the first of these */
    }
    hvd_net_destroy(net);
    return is_good ? 0 : 2;
}

/* Runs flood.py and returns its last line. */
static void flood(const char *program, int pid, unsigned seed, char *line, int bytes)
{
    char command[JOB_LINE_BYTES];
    FILE *out;

    snprintf(command, sizeof(command), "python3 '%s' %d %d %u", program, pid, CONNECTIONS,
             seed);
    out = popen(command, "r");
    while (out != NULL && fgets(line, bytes, out) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        tap_note("%s", line);
    }
    if (out != NULL) {
        pclose(out);
    }
}

int main(int argc, char **argv)
{
    unsigned seed = tap_seed((unsigned)hvd_clock_ms());
    struct job job;
    char line[JOB_LINE_BYTES] = "", wanted[64];

    if (argc != 2) {
        return 99;
    }
    job_start(&job, "a b", talk, NULL);
    net_rank_serve_connect(&job);
    job_hear(&job, VICTIM, WAIT_MS, line);
    flood(argv[1], (int)job.pids[VICTIM], seed, line, sizeof(line));
    snprintf(wanted, sizeof(wanted), "%d of %d ended, alive", CONNECTIONS, CONNECTIONS);
    tap_ok(strcmp(line, wanted) == 0, "all strangers are disconnected (%s)", line);
    job_serve_exchange(&job);
    job_serve_exchange(&job);
    tap_ok(job_finish(&job), "the job continues after the flood");
    return tap_done();
}
