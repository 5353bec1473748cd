/* SPDX-License-Identifier: Apache-2.0 */
/* The control network among real processes: it comes up, carries messages and descriptors, keeps
 * strangers out, and goes away without leaving anything. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectives/control_card.h"
#include "collectives/clock.h"
#include "tests/collectives/control_rank.h"
#include "tests/tap.h"

enum {
    CONNECT_MS = 60000,
    ROUNDS = 100,
    BIG = 3000000,
    STRANGERS = 100
};

static const char *const layouts[] = {
    "a",
    "a a",
    "a b",
    "a a a b",
    "a b a b c",
    "a a a a a a a a b b b b b b b b",
    "a b c d e f g h i j k l m n o p q r s t",
};

static int report(struct job_rank *self, struct seen *seen, int status)
{
    if (status != 0) {
        job_say(self, "%d %s", status, seen->err.text);
        hvd_control_destroy(seen->control, 1000);
        return 1;
    }
    return 0;
}

static int sum_up_and_down(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int size = self->boot.size;
    int status = rank_connect(self, &seen, CONNECT_MS);

    (void)argument;
    if (status != 0) {
        return report(self, &seen, status);
    }
    for (int round = 0; round < 20 && status == 0; round++) {
        if (rank_sum(&seen, self, self->boot.rank + round) !=
            (long)size * (size - 1) / 2 + (long)size * round) {
            status = 2;
        }
    }
    rank_leave(&seen);
    return status;
}

static void tree_comes_up(const char *hosts)
{
    struct job job;
    bool is_good;

    job_start(&job, hosts, sum_up_and_down, NULL);
    job_serve_exchange(&job);
    is_good = job_finish(&job);
    tap_ok(is_good, "ranks on %s add up their numbers over the tree", hosts);
}

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 131 + (i >> 9));
}

static bool has_big_payload(const struct seen *seen)
{
    return seen->bytes == BIG;
}

static int relay_big_message(struct job_rank *self, const void *argument)
{
    struct seen seen;
    char *data = malloc(BIG);
    int status = rank_connect(self, &seen, CONNECT_MS);

    (void)argument;
    for (size_t i = 0; i < BIG; i++) {
        data[i] = (char)pattern(i);
    }
    if (status == 0 && self->boot.rank != 0) {
        status = rank_run(&seen, has_big_payload, 30000) &&
                         memcmp(seen.payload, data, BIG) == 0
                     ? 0
                     : 2;
    }
    if (status == 0) {
        status = hvd_control_send_down(seen.control, 1, data, BIG);
    }
    if (status == 0) {
        status = rank_sum(&seen, self, 1) == self->boot.size ? 0 : 3;
    }
    rank_leave(&seen);
    free(data);
    return status;
}

static void big_message_arrives(void)
{
    struct job job;

    job_start(&job, "a a b c", relay_big_message, NULL);
    job_serve_exchange(&job);
    tap_ok(job_finish(&job), "a message larger than any socket buffer arrives whole");
}

static int memory_file(int number)
{
    int fd = memfd_create("hvd test", MFD_CLOEXEC);

    if (write(fd, &number, sizeof(number)) != sizeof(number)) {
        abort();
    }
    return fd;
}

static bool holds(int fd, int number)
{
    int found = -1;

    return pread(fd, &found, sizeof(found), 0) == sizeof(found) && found == number;
}

static bool has_all_descriptors(const struct hvd_boot *boot, int leader_fd,
                                const int *peer_fds)
{
    const struct hvd_layout *layout = &boot->layout;
    int node = layout->node[boot->rank];
    bool is_good = holds(leader_fd, 1000 + node);

    for (int i = 0; i < hvd_layout_local_size(layout, node); i++) {
        if (i == layout->local_rank[boot->rank]) {
            is_good = is_good && peer_fds[i] == -1;
        } else {
            is_good = is_good && holds(peer_fds[i], hvd_layout_rank(layout, node, i));
        }
    }
    return is_good;
}

static int share_descriptors(struct job_rank *self, const void *argument)
{
    const struct hvd_layout *layout = &self->boot.layout;
    int node = layout->node[self->boot.rank];
    bool is_leader = layout->local_rank[self->boot.rank] == 0;
    int leader_fd = is_leader ? memory_file(1000 + node) : -1;
    int peer_fds[JOB_MAX_RANKS];
    struct seen seen = {0};
    const void *address;
    size_t bytes;
    int status = hvd_control_create(&seen.control, &seen.err);

    (void)argument;
    hvd_control_address(seen.control, &address, &bytes);
    job_exchange(self, address, bytes);
    if (status == 0) {
        status = hvd_control_connect(seen.control, &self->boot, self->addresses,
                                     self->bytes, CONNECT_MS, &leader_fd,
                                     memory_file(self->boot.rank), peer_fds, &seen.err);
    }
    if (status != 0) {
        return report(self, &seen, status);
    }
    status = has_all_descriptors(&self->boot, leader_fd, peer_fds) ? 0 : 2;
    rank_leave(&seen);
    return status;
}

static void descriptors_are_shared(void)
{
    struct job job;

    job_start(&job, "a a b a b c b a a a", share_descriptors, NULL);
    job_serve_exchange(&job);
    tap_ok(job_finish(&job), "each local rank holds the leader's and the others' "
                             "descriptors, in their places");
}

static int come_and_go(struct job_rank *self, const void *argument)
{
    int before = 0;
    int status = 0;

    (void)argument;
    for (int round = 0; round < ROUNDS && status == 0; round++) {
        struct seen seen;

        status = rank_connect(self, &seen, CONNECT_MS);
        if (status != 0) {
            return report(self, &seen, status);
        }
        status = rank_sum(&seen, self, 1) == self->boot.size ? 0 : 2;
        rank_leave(&seen);
        if (round == 0) {
            before = rank_descriptors();
        }
    }
    return status != 0 ? status : rank_descriptors() == before ? 0 : 3;
}

static void nothing_leaks(void)
{
    struct job job;

    job_start(&job, "a a b b", come_and_go, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        job_serve_exchange(&job);
    }
    tap_ok(job_finish(&job), "connect and destroy %d times leaves no descriptor", ROUNDS);
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static int stay_idle(struct job_rank *self, const void *argument)
{
    struct seen seen;
    struct pollfd fd = {.events = POLLIN};
    int status = rank_connect(self, &seen, CONNECT_MS);
    double before;

    (void)argument;
    if (status != 0) {
        return report(self, &seen, status);
    }
    status = rank_sum(&seen, self, 1) == self->boot.size ? 0 : 2;
    rank_run(&seen, NULL, 100);
    before = cpu_seconds();
    fd.fd = hvd_control_fd(seen.control);
    if (poll(&fd, 1, 2500) != 0 || cpu_seconds() - before > 0.02) {
        status = 3;
    }
    job_say(self, "quiet");
    job_await(self);
    rank_leave(&seen);
    return status;
}

static void idle_is_quiet(void)
{
    struct job job;
    char line[JOB_LINE_BYTES];

    job_start(&job, "a a b", stay_idle, NULL);
    job_serve_exchange(&job);
    for (int i = 0; i < job.size; i++) {
        job_hear(&job, i, 30000, line);
    }
    for (int i = 0; i < job.size; i++) {
        job_signal(&job, i);
    }
    tap_ok(job_finish(&job), "an idle tree wakes nobody for 2.5 s");
}

static int be_in_another_job(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status;

    (void)argument;
    if (self->boot.rank == 1) {
        self->boot.secret[0] ^= 1;
    }
    status = rank_connect(self, &seen, 1500);
    return report(self, &seen, status);
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
           "a rank with another secret is not let in, on %s", hosts);
    tap_ok(strstr(line[1], "does not know the secret") != NULL, "and is told why");
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
    status = rank_connect(self, &seen, 2000);
    return report(self, &seen, status);
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
    tap_ok(is_good, "on %s, all others name rank %d, which does not come", hosts,
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
        return report(self, &seen, status);
    }
    job_say(self, "%lld", (long long)(hvd_clock_ms() - begin_ms));
    status = rank_sum(&seen, self, 1) == 2 ? 0 : 2;
    rank_leave(&seen);
    return status;
}

/* Some say nothing, some talk nonsense, some hang up. */
static void send_strangers(const struct hvd_control_card *card, int fds[STRANGERS])
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
    struct hvd_control_card card;
    int fds[STRANGERS];
    char line[JOB_LINE_BYTES] = "";
    size_t bytes;
    const void *data;

    job_start(&job, "a b", wait_for_rank_1, NULL);
    job_serve_exchange(&job);
    data = job_card(0, &bytes);
    if (!tap_ok(hvd_control_card_parse(&card, data, bytes) == 0, "a card can be read")) {
        return;
    }
    send_strangers(&card, fds);
    job_signal(&job, 1);
    tap_ok(job_hear(&job, 1, 30000, line) && atoi(line) < 4000,
           "%d strangers at the door do not hold up a rank (%s ms)", STRANGERS, line);
    tap_ok(job_finish(&job), "and the job runs");
    for (int i = 0; i < STRANGERS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        tree_comes_up(layouts[i]);
    }
    big_message_arrives();
    descriptors_are_shared();
    nothing_leaks();
    idle_is_quiet();
    other_secret_is_refused("a a");
    other_secret_is_refused("a b");
    missing_rank_is_named("a a b b", 1);
    missing_rank_is_named("a a b b", 2);
    missing_rank_is_named("a b b", 0);
    strangers_do_not_disturb();
    return tap_done();
}
