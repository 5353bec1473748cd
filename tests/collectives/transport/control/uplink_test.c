/* SPDX-License-Identifier: Apache-2.0 */
/* Tests messages up and down the tree between real processes, some of which share memory.
 * All sleep whenever there is nothing to do. */
#include "collectives/transport/control/uplink.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "collectives/transport/control/tree.h"
#include "collectives/transport/shm/shm.h"
#include "gpu_binding/base/log.h"
#include "tests/collectives/transport/control/control_rank.h"
#include "tests/collectives/transport/shm/mail_data.h"
#include "tests/tap.h"

enum {
    CONNECT_MS = 60000,
    NODES = 12, /* at most, in a job of this test */
    ROUNDS = 200,
    PARTS = 3, /* messages of each rank in a round */
    MAX_WORDS = 6000
};

static const char *const layouts[] = {
    "a",
    "a a",
    "a b",
    "a a a b b",
    "a b a b c",
    "a a a a a a a a",
    "a b c d e f g h i j a k j",
};

/* opened before the ranks are forked, so that all have them */
static struct mail_node nodes[NODES];
static unsigned seed;

/* A message: its sender, its round and part, a number to add up, and some data. */
struct note {
    int rank;
    int round;
    int part;
    int words;
    long number;
    unsigned carried[MAX_WORDS];
};

struct state {
    struct job_rank *self;
    struct hvd_control *control;
    struct mail_rank mail;
    struct hvd_uplink *uplink;
    int children[JOB_MAX_RANKS];
    int got[JOB_MAX_RANKS]; /* messages from each child, in all rounds */
    int answers; /* messages from the parent */
    long sum; /* sum of this round */
    long answer;
    bool is_wrong;
    int abort_rank; /* rank of an abort; -1 if none came */
    struct note note;
};

static unsigned word(const struct note *note, int i)
{
    return (unsigned)(note->rank * 31 + note->round * 7 + note->part + i) * 2654435761u;
}

static bool is_intact(const struct note *note, size_t bytes, int number)
{
    bool is_right =
        note->round == number / PARTS && note->part == number % PARTS &&
        bytes == offsetof(struct note, carried) + (size_t)note->words * sizeof(unsigned);

    for (int i = 0; is_right && i < note->words; i++) {
        is_right = note->carried[i] == word(note, i);
    }
    return is_right;
}

static size_t write_note(struct state *state, int round, int part, long number)
{
    struct note *note = &state->note;

    note->rank = state->self->boot.rank;
    note->round = round;
    note->part = part;
    note->number = number;
    note->words = rand() % 4 == 0 ? rand() % MAX_WORDS : rand() % 10;
    for (int i = 0; i < note->words; i++) {
        note->carried[i] = word(note, i);
    }
    return offsetof(struct note, carried) + (size_t)note->words * sizeof(unsigned);
}

static void handle(void *context, const struct hvd_uplink_event *event)
{
    struct state *state = context;
    const struct note *note = event->payload;

    if (event->kind == HVD_UPLINK_ABORT) {
        state->abort_rank = event->rank;
    } else if (event->from == HVD_UPLINK_PARENT) {
        state->is_wrong |= event->type != 2 ||
                           !is_intact(note, event->bytes, state->answers) ||
                           note->rank != hvd_control_parent(state->control);
        state->answers++;
        state->answer = note->number;
    } else {
        state->is_wrong |= event->type != 1 ||
                           event->from >= hvd_uplink_children(state->uplink) ||
                           note->rank != state->children[event->from] ||
                           !is_intact(note, event->bytes, state->got[event->from]);
        state->got[event->from]++;
        state->sum += note->number;
    }
}

static void sleep_unless_mail(struct state *state)
{
    const struct hvd_boot *boot = &state->self->boot;
    int bell =
        nodes[boot->layout.node[boot->rank]].bells[boot->layout.local_rank[boot->rank]];
    struct pollfd fds[] = {
        {.fd = bell, .events = POLLIN},
        {.fd = hvd_control_fd(state->control), .events = POLLIN},
    };
    eventfd_t ignored;

    hvd_shm_set_asleep(state->mail.shm, true);
    if (!hvd_mail_has_come(state->mail.mail, HVD_MAIL_CONTROL)) {
        poll(fds, 2, -1);
    }
    hvd_shm_set_asleep(state->mail.shm, false);
    eventfd_read(bell, &ignored);
}

static bool has_round(const struct state *state, int round)
{
    bool has = true;

    for (int i = 0; i < hvd_uplink_children(state->uplink); i++) {
        has &= state->got[i] >= (round + 1) * PARTS;
    }
    return has;
}

static bool has_answer(const struct state *state, int round)
{
    return state->self->boot.rank == 0 || state->answers >= (round + 1) * PARTS;
}

static void run_until(struct state *state, bool (*test)(const struct state *, int),
                      int round)
{
    while (!test(state, round) && state->abort_rank < 0 && !state->is_wrong) {
        int moved = hvd_uplink_progress_node(state->uplink, handle, state) +
                    hvd_uplink_progress_sockets(state->uplink, handle, state);

        if (moved == 0 && !test(state, round)) {
            sleep_unless_mail(state);
        }
    }
}

/* Adds up the numbers of all ranks: each rank sends its sum up in several messages, and
 * the total comes down in as many. */
static bool run_round(struct state *state, int round)
{
    int size = state->self->boot.size;
    long wanted = (long)size * (size - 1) / 2 + (long)size * round;
    long total;

    state->sum = 0;
    run_until(state, has_round, round);
    state->sum += state->self->boot.rank + round;
    for (int part = 0; part < PARTS && state->self->boot.rank > 0; part++) {
        size_t bytes = write_note(state, round, part, part == 0 ? state->sum : 0);

        state->is_wrong |= hvd_uplink_send_up(state->uplink, 1, &state->note, bytes) != 0;
    }
    run_until(state, has_answer, round);
    total = state->self->boot.rank == 0 ? state->sum : state->answer;
    for (int part = 0; part < PARTS; part++) {
        size_t bytes = write_note(state, round, part, total);

        state->is_wrong |=
            hvd_uplink_send_down(state->uplink, 2, &state->note, bytes) != 0;
    }
    return !state->is_wrong && state->abort_rank < 0 && total == wanted;
}

static int connect_rank(struct state *state, struct job_rank *self, struct seen *seen)
{
    const struct hvd_layout *layout = &self->boot.layout;
    struct mail_node *node = &nodes[layout->node[self->boot.rank]];
    int status = rank_connect(self, seen, CONNECT_MS);
    struct hvd_uplink_config config = {
        .control = seen->control,
        .layout = layout,
        .rank = self->boot.rank,
    };

    *state = (struct state){.self = self, .control = seen->control, .abort_rank = -1};
    srand(seed + (unsigned)self->boot.rank);
    hvd_tree_children(layout, self->boot.rank, state->children);
    node->size = hvd_layout_local_size(layout, layout->node[self->boot.rank]);
    mail_open_rank(node, layout->local_rank[self->boot.rank], NULL, &state->mail);
    config.mail = state->mail.mail;
    return status == 0 ? hvd_uplink_create(&config, &state->uplink, &seen->err) : status;
}

/* Returns whether a message that is too long is refused. No byte of it may be sent,
 * because the receiver would take it for a broken connection. */
static bool refuses_too_long(struct state *state)
{
    static const char end; /* never read */
    size_t bytes = HVD_UPLINK_MOST_BYTES + 1;

    return hvd_uplink_send_down(state->uplink, 1, &end, bytes) == HVD_ERR_ARG &&
           hvd_uplink_send_up(state->uplink, 1, &end, bytes) == HVD_ERR_ARG;
}

static int add_up(struct job_rank *self, const void *argument)
{
    static struct state state;
    struct seen seen;
    bool is_right;

    (void)argument;
    is_right = connect_rank(&state, self, &seen) == 0;
    for (int round = 0; round < ROUNDS && is_right; round++) {
        is_right = run_round(&state, round);
    }
    is_right = is_right && refuses_too_long(&state);
    /* this last sum goes over sockets and ends when all ranks have done the rest, so that
     * no rank leaves before the others */
    is_right = is_right && rank_sum(&seen, self, 1) == self->boot.size;
    rank_leave(&seen);
    hvd_uplink_destroy(state.uplink);
    mail_close_rank(&state.mail);
    return is_right ? 0 : 1;
}

static int lose_one(struct job_rank *self, const void *argument)
{
    static struct state state;
    struct seen seen;
    int victim = *(const int *)argument;

    if (connect_rank(&state, self, &seen) != 0) {
        return 1;
    }
    for (int round = 0; round < ROUNDS && state.abort_rank < 0; round++) {
        if (self->boot.rank == victim && round == 20) {
            _exit(0);
        }
        run_round(&state, round);
    }
    rank_leave(&seen);
    hvd_uplink_destroy(state.uplink);
    mail_close_rank(&state.mail);
    return state.abort_rank == victim && !state.is_wrong ? 0 : 2;
}

static bool run_job(const char *hosts, job_body body, const void *argument)
{
    struct job job;
    bool is_right;

    for (int i = 0; i < NODES; i++) {
        mail_open_node(&nodes[i], MAIL_MAX_RANKS);
    }
    job_start(&job, hosts, body, argument);
    job_serve_exchange(&job);
    is_right = job_finish(&job);
    for (int i = 0; i < NODES; i++) {
        mail_close_node(&nodes[i]);
    }
    return is_right;
}

int main(void)
{
    seed = tap_seed((unsigned)time(NULL));
    hvd_log_to(NULL, HVD_LOG_OFF);
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        tap_ok(run_job(layouts[i], add_up, NULL),
               "ranks on hosts %s get every message complete and in order", layouts[i]);
    }
    for (int victim = 0; victim < 5; victim++) {
        tap_ok(run_job("a a a b b", lose_one, &victim),
               "all other ranks learn that rank %d died", victim);
    }
    return tap_done();
}
