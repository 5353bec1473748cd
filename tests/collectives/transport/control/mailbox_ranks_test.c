/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes among processes and among threads, all sending at once, and sleeping whenever there
 * is nothing to do: who is not woken sleeps for ever. */
#include "collectives/transport/control/mailbox.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/transport/control/mailbox_data.h"
#include "tests/tap.h"

enum {
    MAX_RANKS = 8,
    MESSAGES = 300,
    LIMIT_S = 60
};

struct node {
    unsigned seed;
    int size;
    int bells[MAX_RANKS];
    _Atomic int *asleep; /* [MAX_RANKS], shared, as is what follows */
    void *memory;
};

struct rank {
    const struct node *node;
    int rank;
    bool is_right;
};

static void wake_others(const struct node *node, struct hvd_mailbox *box)
{
    for (int i = 0; i < node->size; i++) {
        if (hvd_mailbox_take_ring(box, i) && atomic_load(&node->asleep[i]) != 0) {
            eventfd_write(node->bells[i], 1);
        }
    }
}

static void sleep_unless_mail(const struct node *node, int rank, struct hvd_mailbox *box)
{
    struct pollfd bell = {.fd = node->bells[rank], .events = POLLIN};
    eventfd_t ignored;

    atomic_store(&node->asleep[rank], 1);
    if (!hvd_mailbox_has_mail(box)) {
        poll(&bell, 1, -1);
    }
    atomic_store(&node->asleep[rank], 0);
    eventfd_read(node->bells[rank], &ignored);
}

/* What one rank knows of itself. */
struct state {
    struct hvd_mailbox *box;
    struct mailbox_tally tally;
    uint32_t sent;
};

static bool is_done(const struct state *state, int rank, int size)
{
    bool has_all = true;

    for (int i = 0; i < size; i++) {
        bool is_sender = rank == 0 ? i != 0 : i == 0;

        has_all &= !is_sender || state->tally.got[i] >= MESSAGES;
    }
    return has_all && state->sent == MESSAGES && !hvd_mailbox_is_pending(state->box);
}

/* Sends all messages, a few at a time, while receiving those of the others. */
static void *be_rank(void *context)
{
    struct rank *self = context;
    const struct node *node = self->node;
    struct state state = {.tally.seed = node->seed};

    hvd_mailbox_create(node->memory, self->rank, node->size, &state.box, NULL);
    while (!is_done(&state, self->rank, node->size)) {
        int moved = hvd_mailbox_progress(state.box, mailbox_check, &state.tally);

        for (int i = 0; i < 5 && state.sent < MESSAGES; i++) {
            moved++;
            state.tally.is_wrong |=
                mailbox_post(state.box, node->seed, self->rank, state.sent++) != 0;
        }
        wake_others(node, state.box);
        if (moved == 0 && !is_done(&state, self->rank, node->size)) {
            sleep_unless_mail(node, self->rank, state.box);
        }
    }
    hvd_mailbox_destroy(state.box);
    self->is_right = !state.tally.is_wrong;
    return NULL;
}

static void open_node(struct node *node, int size, unsigned seed)
{
    size_t bytes = hvd_mailbox_bytes(size);

    *node = (struct node){.seed = seed, .size = size};
    node->memory = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    node->asleep = (_Atomic int *)((char *)node->memory + bytes);
    for (int i = 0; i < size; i++) {
        node->bells[i] = eventfd(0, EFD_NONBLOCK);
    }
}

static void close_node(struct node *node)
{
    munmap(node->memory, hvd_mailbox_bytes(node->size) + 4096);
    for (int i = 0; i < node->size; i++) {
        close(node->bells[i]);
    }
}

static void test_processes(int size, unsigned seed)
{
    struct node node;
    pid_t pids[MAX_RANKS];
    int failed = 0;

    open_node(&node, size, seed);
    fflush(stdout);
    for (int i = 0; i < size; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct rank self = {.node = &node, .rank = i};

            alarm(LIMIT_S);
            be_rank(&self);
            fflush(stdout);
            _exit(self.is_right ? 0 : 1);
        }
    }
    for (int i = 0; i < size; i++) {
        int status = 0;

        waitpid(pids[i], &status, 0);
        failed += status == 0 ? 0 : 1;
    }
    tap_ok(failed == 0, "%d_processes_lose_nothing_and_sleep_through_nothing", size);
    close_node(&node);
}

static void test_threads(int size, unsigned seed)
{
    struct node node;
    struct rank ranks[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    int failed = 0;

    open_node(&node, size, seed);
    alarm(LIMIT_S);
    for (int i = 0; i < size; i++) {
        ranks[i] = (struct rank){.node = &node, .rank = i};
        pthread_create(&threads[i], NULL, be_rank, &ranks[i]);
    }
    for (int i = 0; i < size; i++) {
        pthread_join(threads[i], NULL);
        failed += ranks[i].is_right ? 0 : 1;
    }
    tap_ok(failed == 0, "%d_threads_lose_nothing_and_sleep_through_nothing", size);
    close_node(&node);
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
