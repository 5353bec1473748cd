/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered calls in simulated jobs. If the calls of ranks differ, all ranks get an error
 * soon: at the first calls, once tensors have ids, and in a replay. Ranks that are only
 * late get no error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_try.h"

enum {
    MOST_CALLS = 80,
    KINDS = 3, /* kinds of calls in a step */
    SEEDS = 6,
};

static const int64_t soon_ns = 1200000000;

/* How the calls of one rank differ from those of the others. */
enum difference {
    NO_DIFFERENCE,
    NEW_TENSOR, /* a tensor that has never been called */
    KNOWN_TENSOR, /* the tensor that comes next for the others */
    BROADCAST,
    LARGE_TENSOR, /* a known tensor that another queue runs */
    EXTRA_CALL, /* the rank then continues like the others, one call later */
    DIFFERENCES
};

static const char *const names_of[DIFFERENCES] = {
    "the calls agree",
    "one rank reduces a tensor of another size",
    "one rank reduces the next tensor first",
    "one rank broadcasts",
    "one rank reduces a large tensor first",
    "one rank makes an additional call",
};

struct caller {
    struct hvd_request *requests[MOST_CALLS + 1];
    int calls;
    int ended; /* all calls with lower numbers have ended */
};

struct game {
    struct sim sim;
    struct caller callers[TRY_MOST_RANKS];
    int size;
    int set;
    int odd_rank;
    int at; /* number of the odd rank's call that differs, from 1 */
    int calls; /* number of calls of each rank */
    enum difference difference;
    bool has_large;
    int window; /* most calls of a rank in flight at once */
    /* calls from this one on may be unordered on some ranks; 0: none are */
    int unordered_from;
};

/* Whether a rank's call is unordered, like that of a callback which may run sooner or
 * later than on other ranks. */
static bool is_unordered(const struct game *game, int rank, int number)
{
    return game->unordered_from != 0 && number >= game->unordered_from &&
           (number * 7 + rank * 5) % 3 == 0;
}

static struct hvd_descriptor usual(const struct game *game, int number)
{
    static const char *const names[KINDS] = {"a#0", "b#0", "c#0"};
    int kind = number % KINDS;
    bool is_large = game->has_large && kind == 1;
    struct hvd_descriptor tensor =
        sim_allreduce(names[kind], is_large ? 2 << 20 : 10 + kind);

    return tensor;
}

/* Returns call number `number` of a rank. */
static struct hvd_descriptor call_of(const struct game *game, int rank, int number)
{
    bool is_odd = rank == game->odd_rank && game->difference != NO_DIFFERENCE;
    bool is_late = is_odd && game->difference == EXTRA_CALL && number > game->at;
    struct hvd_descriptor tensor = usual(game, is_late ? number - 1 : number);

    if (is_odd && number == game->at) {
        switch (game->difference) {
        case KNOWN_TENSOR:
        case LARGE_TENSOR:
            tensor = usual(game, number + 1);
            break;
        case BROADCAST:
            tensor = sim_allreduce("broadcast#0", 10);
            tensor.kind = HVD_KIND_BROADCAST;
            break;
        default:
            tensor = sim_allreduce("x#0", 7);
            break;
        }
    }
    tensor.set = game->set;
    tensor.call = (uint64_t)number;
    if (is_unordered(game, rank, number)) {
        tensor.call |= HVD_CALL_UNORDERED;
    }
    return tensor;
}

static bool is_name_free(const struct game *game, int rank, const char *name)
{
    const struct caller *caller = &game->callers[rank];

    for (int i = 0; i < caller->calls; i++) {
        if (!sim_has_ended(caller->requests[i]) &&
            strcmp(caller->requests[i]->entries[0].descriptor.name, name) == 0) {
            return false;
        }
    }
    return true;
}

/* Makes the rank's next call, if that is allowed now. */
static bool make_call(struct game *game, int rank)
{
    struct caller *caller = &game->callers[rank];
    struct hvd_descriptor tensor = call_of(game, rank, caller->calls + 1);
    const struct hvd_descriptor *only = &tensor;

    while (caller->ended < caller->calls &&
           sim_has_ended(caller->requests[caller->ended])) {
        caller->ended++;
    }
    if (caller->calls == game->calls || caller->calls - caller->ended >= game->window ||
        !is_name_free(game, rank, tensor.name)) {
        return false;
    }
    caller->requests[caller->calls++] = sim_submit(&game->sim, rank, &only, 1);
    sim_wait(&game->sim, rank, true);
    return true;
}

/* Lets all ranks make their calls, in random turns and with some long pauses, until none
 * can continue. */
static void play(struct game *game, bool has_pauses)
{
    int idle = 0;

    while (idle < 40 * game->size && game->sim.fault[0] == '\0') {
        int rank = (int)sim_draw(&game->sim, (unsigned)game->size);
        bool moved = make_call(game, rank);

        if (has_pauses && sim_draw(&game->sim, 40) == 0) {
            sim_pass(&game->sim, (int64_t)sim_draw(&game->sim, 1500) * 1000000);
        }
        for (unsigned i = sim_draw(&game->sim, 20); i > 0; i--) {
            sim_step(&game->sim, 0);
        }
        if (!moved) {
            sim_settle(&game->sim);
        }
        idle = moved ? 0 : idle + 1;
    }
}

static void make_set(struct game *game)
{
    const struct hvd_descriptor add = {
        .kind = HVD_KIND_SET_CREATE, .name = "hvd.create.x", .note = "1-2"};
    const struct hvd_descriptor *only = &add;
    struct hvd_request *requests[2];

    for (int i = 0; i < 2; i++) {
        requests[i] = sim_submit(&game->sim, 1 + i, &only, 1);
        sim_wait(&game->sim, 1 + i, true);
    }
    sim_pass(&game->sim, 10000000);
    for (int i = 0; i < 2; i++) {
        game->set = (int)requests[i]->value;
        hvd_request_drop(requests[i]);
    }
}

static bool is_member(const struct game *game, int rank)
{
    return game->set == HVD_SET_GLOBAL || rank == 1 || rank == 2;
}

/* Counts the calls as made on ranks that are not members. May be called again with more
 * calls. */
static void leave_out_others(struct game *game)
{
    for (int rank = 0; rank < game->size; rank++) {
        if (!is_member(game, rank)) {
            for (int i = game->callers[rank].calls; i < game->calls; i++) {
                game->callers[rank].requests[i] = hvd_request_create(0);
            }
            game->callers[rank].calls = game->calls;
        }
    }
}

static void finish(struct game *game)
{
    sim_finish(&game->sim);
    for (int rank = 0; rank < game->size; rank++) {
        for (int i = 0; i < game->callers[rank].calls; i++) {
            hvd_request_drop(game->callers[rank].requests[i]);
        }
    }
}

/* Checks how the calls of each member have ended. */
static void check_told(const struct game *game, char *fault, size_t bytes)
{
    const bool is_known =
        game->difference == KNOWN_TENSOR || game->difference == LARGE_TENSOR;
    char expected[64];

    /* With several calls in flight, the agreement may match a call that comes too early
     * with a later call of the other ranks: then the number in the error varies. */
    snprintf(expected, sizeof(expected), "the ranks disagree on call %d:", game->at);
    if (is_known && game->window > 1) {
        expected[strlen("the ranks disagree on call ")] = '\0';
    } else if (game->set != HVD_SET_GLOBAL) {
        snprintf(expected, sizeof(expected),
                 "disagree on call %d of process set 1:", game->at);
    }
    for (int rank = 0; rank < game->size && fault[0] == '\0'; rank++) {
        const struct caller *caller = &game->callers[rank];
        bool is_told = false;

        for (int i = 0; is_member(game, rank) && i < caller->calls; i++) {
            const struct hvd_request *request = caller->requests[i];
            int status = atomic_load(&request->status);

            is_told |= status == HVD_ERR_MISMATCH &&
                       strstr(request->error.text, expected) != NULL;
            if (status == HVD_INPROGRESS ||
                (status != 0 && strstr(request->error.text, expected) == NULL)) {
                snprintf(fault, bytes, "call %d of rank %d: %d, %.150s", i + 1, rank,
                         status, request->error.text);
            }
        }
        if (is_member(game, rank) && !is_told) {
            snprintf(fault, bytes, "rank %d is not told", rank);
        }
    }
}

/* Checks that unnumbered tensors of the global set are not affected by the failure. */
static void check_others(struct game *game, char *fault, size_t bytes)
{
    const struct hvd_descriptor tensor = sim_allreduce("another", 5);
    const struct hvd_descriptor *only = &tensor;
    struct hvd_request *requests[TRY_MOST_RANKS];

    for (int rank = 0; rank < game->size; rank++) {
        requests[rank] = sim_submit(&game->sim, rank, &only, 1);
    }
    sim_pass(&game->sim, 100000000);
    for (int rank = 0; rank < game->size; rank++) {
        if (atomic_load(&requests[rank]->status) != 0 && fault[0] == '\0') {
            snprintf(fault, bytes, "the job does not go on: %.150s",
                     requests[rank]->error.text);
        }
        hvd_request_drop(requests[rank]);
    }
}

static void begin(struct game *game, const int *nodes, bool has_set,
                  enum difference difference, unsigned seed)
{
    memset(game, 0, sizeof(*game));
    sim_init(&game->sim, nodes, NULL, seed);
    game->size = try_size(nodes);
    game->difference = difference;
    game->window = seed % 2 == 0 ? 1 : 3;
    game->has_large = difference == LARGE_TENSOR || seed % 3 == 0;
    if (has_set) {
        make_set(game);
        game->odd_rank = 1 + (int)(seed % 2);
    } else {
        game->odd_rank = (int)(seed % (unsigned)game->size);
    }
    /* seed % 3 chooses when the ranks differ: at the first calls, once tensors have ids,
     * or in a replay. */
    game->at = 1 + (int)(seed % 3) * 24 + (int)(seed % 5);
    game->calls = game->at + 6;
    game->unordered_from = difference == NEW_TENSOR ? game->at + 1 : 0;
    leave_out_others(game);
}

/* Returns whether any batch was replayed. */
static bool try_difference(const int *nodes, bool has_set, enum difference difference,
                           unsigned seed, char *fault, size_t bytes)
{
    struct game game;
    bool is_replayed;

    begin(&game, nodes, has_set, difference, seed);
    play(&game, false);
    is_replayed = try_counts(&game.sim, game.odd_rank).replayed > 0;
    sim_pass(&game.sim, soon_ns);
    play(&game, false);
    sim_pass(&game.sim, soon_ns);
    check_told(&game, fault, bytes);
    check_others(&game, fault, bytes);
    if (game.sim.fault[0] != '\0') {
        snprintf(fault, bytes, "%.300s", game.sim.fault);
    }
    if (fault[0] != '\0') {
        tap_note("layout of %d ranks, set %d, seed %u, call %d of rank %d", game.size,
                 game.set, seed, game.at, game.odd_rank);
    }
    finish(&game);
    return is_replayed;
}

static void test_difference(enum difference difference, bool has_set, unsigned seed)
{
    char fault[400] = "";
    int replayed = 0;

    for (int i = 1; i < TRY_LAYOUTS && fault[0] == '\0'; i++) {
        if (try_size(try_layouts[i]) < (has_set ? 3 : 2)) {
            continue;
        }
        for (unsigned k = 0; k < SEEDS && fault[0] == '\0'; k++) {
            replayed += try_difference(try_layouts[i], has_set, difference, seed + k,
                                       fault, sizeof(fault))
                            ? 1
                            : 0;
        }
    }
    if (!tap_ok(fault[0] == '\0', "%s%s: all ranks get the error", names_of[difference],
                has_set ? " of a set" : "")) {
        tap_note("%s", fault);
    }
    tap_ok(replayed > 0, "%d batches were replayed meanwhile", replayed);
}

/* Tests ranks that are only late: their pauses are longer than the time after which calls
 * are compared. */
static void test_late_ranks(unsigned seed, bool has_unordered)
{
    char fault[1000] = "";
    int replayed = 0;

    for (int i = 1; i < TRY_LAYOUTS && fault[0] == '\0'; i++) {
        for (unsigned k = 0; k < 2 * SEEDS && fault[0] == '\0'; k++) {
            struct game game;

            begin(&game, try_layouts[i], k % 2 == 1 && try_size(try_layouts[i]) > 2,
                  NO_DIFFERENCE, seed + k);
            game.calls = MOST_CALLS;
            game.unordered_from = has_unordered ? 1 : 0;
            leave_out_others(&game);
            play(&game, true);
            sim_pass(&game.sim, soon_ns);
            for (int rank = 0; rank < game.size; rank++) {
                for (int c = 0; is_member(&game, rank) && c < game.calls; c++) {
                    if (c >= game.callers[rank].calls ||
                        atomic_load(&game.callers[rank].requests[c]->status) != 0) {
                        snprintf(fault, sizeof(fault), "seed %u: call %d of rank %d: %s",
                                 seed + k, c + 1, rank,
                                 c >= game.callers[rank].calls
                                     ? "not made"
                                     : game.callers[rank].requests[c]->error.text);
                    }
                }
            }
            if (game.sim.fault[0] != '\0') {
                snprintf(fault, sizeof(fault), "%.300s", game.sim.fault);
            }
            replayed += try_counts(&game.sim, 0).replayed > 0 ? 1 : 0;
            finish(&game);
        }
    }
    if (!tap_ok(fault[0] == '\0', "ranks that are late by seconds are waited for%s",
                has_unordered ? ", also if calls are unordered" : "")) {
        tap_note("%s", fault);
    }
    tap_ok(replayed > 0, "%d batches were replayed meanwhile", replayed);
}

int main(void)
{
    unsigned seed = tap_seed(5);

    hvd_log_least(HVD_LOG_ERROR);
    for (int difference = NEW_TENSOR; difference < DIFFERENCES; difference++) {
        test_difference((enum difference)difference, false, seed);
        test_difference((enum difference)difference, true, seed);
    }
    test_late_ranks(seed, false);
    test_late_ranks(seed, true);
    return tap_done();
}
