/* SPDX-License-Identifier: Apache-2.0 */
/* The control network between real processes: it connects, carries messages and
 * descriptors, is quiet while there is nothing to send, and leaves no descriptor open. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/collectives/transport/control/control_rank.h"
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

static int sum_up_and_down(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int size = self->boot.size;
    int status = rank_connect(self, &seen, CONNECT_MS);

    (void)argument;
    if (status != 0) {
        return rank_give_up(self, &seen, status);
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
    tap_ok(is_good, "ranks on hosts %s add up their numbers over the tree", hosts);
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
    tap_ok(job_finish(&job), "a message larger than any socket buffer arrives complete");
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
        return rank_give_up(self, &seen, status);
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
    tap_ok(job_finish(&job), "each local rank gets the descriptors of the leader and of "
                             "all other local ranks, in the right order");
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
            return rank_give_up(self, &seen, status);
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
    tap_ok(job_finish(&job),
           "connecting and destroying %d times leaves no descriptor open", ROUNDS);
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
        return rank_give_up(self, &seen, status);
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
    tap_ok(job_finish(&job), "an idle tree wakes no rank for 2.5 s");
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
    return tap_done();
}
