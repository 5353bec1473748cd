/* SPDX-License-Identifier: Apache-2.0 */
/* Only ranks of the job get into the control network. The error names ranks that are
 * missing. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectives/transport/connect/connect_card.h"
#include "gpu_binding/base/clock.h"
#include "tests/collectives/transport/control/control_rank.h"
#include "tests/tap.h"

enum {
    CONNECT_MS = 60000,
    STRANGERS = 100
};

static int be_in_another_job(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status;

    (void)argument;
    if (self->boot.rank == 1) {
        self->boot.secret[0] ^= 1;
    }
    status = rank_connect(self, &seen, 2500);
    return rank_give_up(self, &seen, status);
}

static void other_secret_is_refused(const char *hosts)
{
    struct job job;
    char line[2][JOB_LINE_BYTES];

    job_start(&job, hosts, be_in_another_job, NULL);
    job_serve_exchange(&job);
    for (int i = 0; i < 2; i++) {
        job_hear(&job, i, 30000, line[i]);
        job_wait(&job, i);
        tap_note("rank %d: %s", i, line[i]);
    }
    job_finish(&job);
    tap_ok(strstr(line[0], "rank 1 (host") != NULL &&
               strstr(line[1], "rank 0 (host") != NULL,
           "a rank with another secret is refused, on hosts %s", hosts);
    tap_ok(strstr(line[1], "does not know the secret") != NULL,
           "the error of that rank says why");
}

static int come_late(struct job_rank *self, const void *argument)
{
    int missing = *(const int *)argument;
    struct seen seen;
    int status;

    if (self->boot.rank == missing) {
        struct hvd_control *control;
        const void *address;
        size_t bytes;

        hvd_control_create(&control, NULL);
        hvd_control_address(control, &address, &bytes);
        job_exchange(self, address, bytes);
        job_await(self);
        hvd_control_destroy(control, 0);
        return 0;
    }
    status = rank_connect(self, &seen, 4000);
    return rank_give_up(self, &seen, status);
}

static void missing_rank_is_named(const char *hosts, int missing)
{
    struct job job;
    char wanted[64];
    bool is_good = true;

    snprintf(wanted, sizeof(wanted), "%d rank %d (host ", HVD_ERR_TIMEOUT, missing);
    job_start(&job, hosts, come_late, &missing);
    job_serve_exchange(&job);
    for (int i = 0; i < job.size; i++) {
        char line[JOB_LINE_BYTES];

        if (i != missing) {
            is_good = job_hear(&job, i, 30000, line) &&
                      strncmp(line, wanted, strlen(wanted)) == 0 && is_good;
            tap_note("rank %d: %s", i, line);
            job_wait(&job, i);
        }
    }
    job_signal(&job, missing);
    job_finish(&job);
    tap_ok(is_good, "on hosts %s, all other ranks name rank %d, which is missing", hosts,
           missing);
}

static int call(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int wait_for_rank_1(struct job_rank *self, const void *argument)
{
    struct seen seen;
    struct hvd_control *control;
    const void *address;
    size_t bytes;
    int leader_fd = -1;
    int peer_fds[JOB_MAX_RANKS];
    int64_t begin_ms;
    int status = hvd_control_create(&control, NULL);

    (void)argument;
    seen = (struct seen){.control = control};
    hvd_control_address(control, &address, &bytes);
    job_exchange(self, address, bytes);
    if (self->boot.rank == 1) {
        job_await(self);
    }
    begin_ms = hvd_clock_ms();
    if (status == 0) {
        status = hvd_control_connect(control, &self->boot, self->addresses, self->bytes,
                                     CONNECT_MS, &leader_fd, -1, peer_fds, &seen.err);
    }
    if (status != 0) {
        return rank_give_up(self, &seen, status);
    }
    job_say(self, "%lld", (long long)(hvd_clock_ms() - begin_ms));
    status = rank_sum(&seen, self, 1) == 2 ? 0 : 2;
    rank_leave(&seen);
    return status;
}

/* A third of the strangers say nothing, a third send nonsense, a third hang up. */
static void send_strangers(const struct hvd_connect_card *card, int fds[STRANGERS])
{
    static const char nonsense[4096] = "GET / HTTP/1.0\r\n\r\n";

    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = call(card->port);
        if (i % 3 == 1) {
            send(fds[i], nonsense, sizeof(nonsense), MSG_NOSIGNAL);
        } else if (i % 3 == 2) {
            close(fds[i]);
            fds[i] = -1;
        }
    }
}

static void strangers_do_not_disturb(void)
{
    struct job job;
    struct hvd_connect_card card;
    int fds[STRANGERS];
    char line[JOB_LINE_BYTES] = "";
    size_t bytes;
    const void *data;

    job_start(&job, "a b", wait_for_rank_1, NULL);
    job_serve_exchange(&job);
    data = job_card(0, &bytes);
    if (!tap_ok(hvd_connect_card_parse(&card, data, bytes) == 0, "a card can be read")) {
        return;
    }
    send_strangers(&card, fds);
    job_signal(&job, 1);
    tap_ok(job_hear(&job, 1, 30000, line) && atoi(line) < 4000,
           "%d strangers at its port do not delay a rank (%s ms)", STRANGERS, line);
    tap_ok(job_finish(&job), "the job runs in spite of strangers");
    for (int i = 0; i < STRANGERS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

int main(void)
{
    other_secret_is_refused("a a");
    other_secret_is_refused("a b");
    missing_rank_is_named("a a b b", 1);
    missing_rank_is_named("a a b b", 2);
    missing_rank_is_named("a b b", 0);
    strangers_do_not_disturb();
    return tap_done();
}
