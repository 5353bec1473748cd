/* SPDX-License-Identifier: Apache-2.0 */
/* Mail between processes and between threads. All ranks send mail of both kinds at the
 * same time, and sleep whenever there is nothing to do: a rank that is not woken sleeps
 * for ever.
 *
 * Threads share one mapping of the memory, so that a race detector knows that it is the
 * same memory. A replacement of hvd_shm_map_reserved does the same for the rings, each of
 * which belongs to a pair of ranks. */
#include "collectives/transport/shm/mail.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectives/transport/shm/shm.h"
#include "tests/collectives/transport/shm/mail_data.h"
#include "tests/tap.h"

enum {
    KINDS = 2,
    CONTROL_COUNT = 200, /* number of control mails that each rank sends */
    MESSAGE_COUNT = 60, /* number of messages that each rank sends to each other rank */
    LIMIT_S = 60
};

/* the rings of pairs, for threads; NULL if each rank maps them itself */
static char *pairs;

int __real_hvd_shm_map_reserved(struct hvd_shm *shm, size_t at, size_t bytes, char **out,
                                struct hvd_error *err);
int __wrap_hvd_shm_map_reserved(struct hvd_shm *shm, size_t at, size_t bytes, char **out,
                                struct hvd_error *err);

int __wrap_hvd_shm_map_reserved(struct hvd_shm *shm, size_t at, size_t bytes, char **out,
                                struct hvd_error *err)
{
    if (pairs == NULL) {
        return __real_hvd_shm_map_reserved(shm, at, bytes, out, err);
    }
    *out = pairs + at;
    return 0;
}

struct job {
    struct mail_node node;
    unsigned seed;
    void *memory; /* memory of the mail for threads, or NULL */
};

struct rank {
    const struct job *job;
    int rank;
    struct mail_rank opened;
    struct mail_tally tallies[KINDS];
    uint32_t sent[KINDS];
    bool is_right;
};

static bool has_sent(const struct rank *self)
{
    return self->sent[HVD_MAIL_CONTROL] == CONTROL_COUNT &&
           self->sent[HVD_MAIL_P2P] == MESSAGE_COUNT;
}

static bool is_done(const struct rank *self)
{
    bool is = has_sent(self) && !hvd_mail_control_waits(self->opened.mail);

    for (int i = 0; i < self->job->node.size; i++) {
        const bool hears = (i == 0) != (self->rank == 0);

        is &= !hears || self->tallies[HVD_MAIL_CONTROL].got[i] >= CONTROL_COUNT;
        is &= i == self->rank || (self->tallies[HVD_MAIL_P2P].got[i] >= MESSAGE_COUNT &&
                                  !hvd_mail_p2p_waits(self->opened.mail, i));
    }
    return is;
}

/* Sends a few pieces of each kind. Returns their number. */
static int send_some(struct rank *self)
{
    struct hvd_mail *mail = self->opened.mail;
    const unsigned seed = self->job->seed;
    int count = 0;

    for (int i = 0; i < 5 && self->sent[HVD_MAIL_CONTROL] < CONTROL_COUNT; i++) {
        self->is_right &= mail_post(mail, HVD_MAIL_CONTROL, seed, self->rank, 0,
                                    self->sent[HVD_MAIL_CONTROL]++) == 0;
        count++;
    }
    if (self->sent[HVD_MAIL_P2P] < MESSAGE_COUNT) {
        for (int to = 0; to < self->job->node.size; to++) {
            self->is_right &=
                to == self->rank || mail_post(mail, HVD_MAIL_P2P, seed, self->rank, to,
                                              self->sent[HVD_MAIL_P2P]) == 0;
        }
        self->sent[HVD_MAIL_P2P]++;
        count++;
    }
    return count;
}

static int receive_some(struct rank *self)
{
    int moved = 0;

    for (int kind = 0; kind < KINDS; kind++) {
        struct hvd_error err = {0};
        int status = hvd_mail_progress(self->opened.mail, (enum hvd_mail_kind)kind,
                                       mail_check, &self->tallies[kind], &err);

        self->is_right &= status >= 0;
        moved += status;
    }
    return moved;
}

static void sleep_unless_mail(struct rank *self)
{
    struct pollfd bell = {.fd = self->job->node.bells[self->rank], .events = POLLIN};
    eventfd_t ignored;

    hvd_shm_set_asleep(self->opened.shm, true);
    if (!hvd_mail_has_come(self->opened.mail, HVD_MAIL_CONTROL) &&
        !hvd_mail_has_come(self->opened.mail, HVD_MAIL_P2P)) {
        poll(&bell, 1, -1);
    }
    hvd_shm_set_asleep(self->opened.shm, false);
    eventfd_read(bell.fd, &ignored);
}

/* Sends all mail, a few pieces at a time, and receives that of the other ranks. */
static void *be_rank(void *context)
{
    struct rank *self = context;

    self->is_right = true;
    for (int kind = 0; kind < KINDS; kind++) {
        self->tallies[kind] = (struct mail_tally){.kind = (enum hvd_mail_kind)kind,
                                                  .seed = self->job->seed,
                                                  .rank = self->rank};
    }
    while (!is_done(self)) {
        int moved = receive_some(self) + send_some(self);

        if (moved == 0 && !is_done(self)) {
            sleep_unless_mail(self);
        }
    }
    self->is_right &= !self->tallies[0].is_wrong && !self->tallies[1].is_wrong;
    return NULL;
}

static void test_processes(int size, unsigned seed)
{
    struct job job = {.seed = seed};
    pid_t pids[MAIL_MAX_RANKS];
    int failed = 0;

    mail_open_node(&job.node, size);
    fflush(stdout);
    for (int i = 0; i < size; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct rank rank = {.job = &job, .rank = i};

            alarm(LIMIT_S);
            mail_open_rank(&job.node, i, NULL, &rank.opened);
            be_rank(&rank);
            mail_close_rank(&rank.opened);
            fflush(stdout);
            _exit(rank.is_right ? 0 : 1);
        }
    }
    for (int i = 0; i < size; i++) {
        int status = 0;

        waitpid(pids[i], &status, 0);
        failed += status == 0 ? 0 : 1;
    }
    tap_ok(failed == 0, "%d processes lose no mail and miss no wakeup", size);
    mail_close_node(&job.node);
}

static void *map_zeros(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void test_threads(int size, unsigned seed)
{
    const size_t bytes = hvd_mail_extra_bytes(size);
    struct job job = {.seed = seed, .memory = map_zeros(bytes)};
    struct rank ranks[MAIL_MAX_RANKS];
    pthread_t threads[MAIL_MAX_RANKS];
    int failed = 0;

    pairs = map_zeros(hvd_mail_reserved_bytes(size));
    mail_open_node(&job.node, size);
    alarm(LIMIT_S);
    for (int i = 0; i < size; i++) {
        ranks[i] = (struct rank){.job = &job, .rank = i};
        mail_open_rank(&job.node, i, job.memory, &ranks[i].opened);
    }
    for (int i = 0; i < size; i++) {
        pthread_create(&threads[i], NULL, be_rank, &ranks[i]);
    }
    for (int i = 0; i < size; i++) {
        pthread_join(threads[i], NULL);
        failed += ranks[i].is_right ? 0 : 1;
    }
    for (int i = 0; i < size; i++) { /* also unmaps the rings of pairs */
        mail_close_rank(&ranks[i].opened);
    }
    tap_ok(failed == 0, "%d threads lose no mail and miss no wakeup", size);
    mail_close_node(&job.node);
    munmap(job.memory, bytes);
    pairs = NULL;
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)time(NULL));

    test_processes(2, seed);
    test_processes(4, seed);
    test_processes(8, seed);
    test_threads(2, seed);
    test_threads(4, seed);
    return tap_done();
}
