/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of calls: rounds of random calls, and steps that repeat. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/collectives/soak/soak.h"

/* The order in which a rank makes the calls of a step. */
enum order {
    ORDER_ALIKE, /* the same on all ranks */
    ORDER_OWN, /* one order for each rank, the same in all steps */
    ORDER_ANEW, /* one order for each rank and step */
    ORDERS
};

/* The way in which a rank waits for its calls. */
enum style {
    STYLE_TOGETHER, /* starts all, then waits for all */
    /* waits for a tensor's previous call just before it starts the next one */
    STYLE_OVERLAPPING,
    /* waits for each call before it starts the next; needs the same order on all ranks */
    STYLE_ONE_BY_ONE,
    STYLES
};

/* A disturbance that happens once, in the middle of steps that repeat. */
enum disturbance {
    NOTHING,
    LATE_RANK,
    MORE_CALLS,
    OTHER_CALL, /* one tensor has another shape */
    FAULTY_CALL,
    LAST_CALL, /* one rank starts a call only after its other calls have ended */
    DISTURBANCES
};

static void shuffle(struct soak_random *random, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int other = (int)soak_pick(random, (uint32_t)(i + 1));

        order[i] = order[other];
        order[other] = i;
    }
}

static void in_turn(int *order, int count)
{
    for (int i = 0; i < count; i++) {
        order[i] = i;
    }
}

/* Waits a short random time, as between the gradients of a step; rarely a long time. */
static void dawdle(struct soak *soak)
{
    if (soak_chance(&soak->own, 400)) {
        usleep(20000);
    } else if (soak_chance(&soak->own, 8)) {
        usleep(soak_pick(&soak->own, 300));
    }
}

void soak_start_next(struct soak *soak, const struct soak_call *call,
                     struct soak_flight *flight)
{
    dawdle(soak);
    soak_start(soak, call, flight);
    if (soak_chance(&soak->own, 8)) {
        soak_glance(soak, flight);
    }
}

void soak_finish_all(struct soak *soak, struct soak_flight *flights, int count)
{
    for (int i = 0; i < count; i++) {
        soak_finish(soak, &flights[i]);
    }
}

/* --- rounds --- */

int soak_start_some(struct soak *soak, int most, struct soak_call *calls,
                    struct soak_flight *flights)
{
    int count = 1 + (int)soak_pick(&soak->shared, (uint32_t)most);
    int order[SOAK_MOST_CALLS];

    for (int i = 0; i < count; i++) {
        int slot = (int)soak_pick(&soak->shared, (uint32_t)(2 * soak->set_count));

        slot = slot < soak->set_count ? slot : 0;
        calls[i] = soak_draw(&soak->shared, slot, soak->sets[slot].count, 40);
        if (soak_chance(&soak->shared, 15)) {
            soak_draw_fault(&soak->shared, soak->sets[slot].count, &calls[i]);
        }
        if (soak_chance(&soak->shared, 3)) {
            snprintf(calls[i].name, sizeof(calls[i].name), "%snew.%u", soak->prefix,
                     soak_pick(&soak->shared, UINT32_MAX));
        } else {
            snprintf(calls[i].name, sizeof(calls[i].name), "%sw.%d", soak->prefix, i);
        }
    }
    shuffle(&soak->own, order, count);
    if (soak_chance(&soak->shared, 3)) {
        in_turn(order, count);
    }
    for (int i = 0; i < count; i++) {
        soak_start_next(soak, &calls[order[i]], &flights[order[i]]);
    }
    return count;
}

void soak_round(struct soak *soak)
{
    struct soak_call calls[SOAK_MOST_CALLS];
    struct soak_flight flights[SOAK_MOST_CALLS];
    int order[SOAK_MOST_CALLS];
    int count;

    soak_note(soak, "a round");
    count = soak_start_some(soak, SOAK_MOST_CALLS, calls, flights);
    shuffle(&soak->own, order, count);
    for (int i = 0; i < count; i++) {
        soak_finish(soak, &flights[order[i]]);
    }
}

/* --- steps that repeat --- */

enum {
    EXTRA_CALLS = 4
};

struct steady {
    struct soak_call calls[SOAK_MOST_CALLS]; /* calls of the current step */
    struct soak_flight flights[SOAK_MOST_CALLS];
    struct soak_call extra[EXTRA_CALLS];
    int count;
    int order[SOAK_MOST_CALLS];
    enum order order_kind;
    enum style style;
    enum disturbance disturbance;
    int at; /* number of the disturbed step */
    int victim; /* index of the call that is disturbed */
    int culprit; /* the rank that causes the disturbance */
};

static void draw_steady(struct soak *soak, struct steady *steady, int steps)
{
    struct soak_random *random = &soak->shared;

    steady->count = 1 + (int)soak_pick(random, soak_chance(random, 2) ? 6 : 24);
    for (int i = 0; i < steady->count; i++) {
        steady->calls[i] = soak_chance(random, 30) ? soak_draw(random, 0, soak->size, 100)
                                                   : soak_draw_gradient(random);
        snprintf(steady->calls[i].name, sizeof(steady->calls[i].name), "%sgrad.%d",
                 soak->prefix, i);
    }
    for (int i = 0; i < EXTRA_CALLS; i++) {
        int slot = (int)soak_pick(random, (uint32_t)soak->set_count);

        steady->extra[i] = soak_draw(random, slot, soak->sets[slot].count, 20);
        snprintf(steady->extra[i].name, sizeof(steady->extra[i].name), "%sextra.%d",
                 soak->prefix, i);
    }
    steady->style = (enum style)soak_pick(random, STYLES);
    steady->order_kind = steady->style == STYLE_ONE_BY_ONE
                             ? ORDER_ALIKE
                             : (enum order)soak_pick(random, ORDERS);
    steady->disturbance = (enum disturbance)soak_pick(random, DISTURBANCES);
    steady->at = (int)soak_pick(random, (uint32_t)steps);
    steady->victim = (int)soak_pick(random, (uint32_t)steady->count);
    steady->culprit = (int)soak_pick(random, (uint32_t)soak->size);
    shuffle(&soak->own, steady->order, steady->count);
    if (steady->order_kind == ORDER_ALIKE) {
        in_turn(steady->order, steady->count);
    }
}

/* Chooses a new order for the step. The order must not change while calls of the previous
 * step are in flight. */
static void begin_step(struct soak *soak, struct steady *steady)
{
    if (steady->order_kind == ORDER_ANEW && steady->style == STYLE_TOGETHER) {
        shuffle(&soak->own, steady->order, steady->count);
    }
}

static void start_call(struct soak *soak, struct steady *steady, int i, int step,
                       bool is_disturbed)
{
    struct soak_call *call = &steady->calls[i];

    call->seed += 1 + (uint32_t)step;
    call->fault = SOAK_NO_FAULT;
    if (is_disturbed && steady->victim == i) {
        if (steady->disturbance == OTHER_CALL) {
            call->rows[0] += 3;
        } else if (steady->disturbance == FAULTY_CALL) {
            struct soak_random random = soak_seeded(call->seed, 99);

            soak_draw_fault(&random, soak->size, call);
        }
    }
    soak_start_next(soak, call, &steady->flights[i]);
}

static void start_extra(struct soak *soak, struct steady *steady,
                        struct soak_flight *flights)
{
    for (int i = 0; i < EXTRA_CALLS; i++) {
        soak_start(soak, &steady->extra[i], &flights[i]);
    }
}

/* Whether this rank delays one call until its other calls have ended. */
static bool holds_back(const struct soak *soak, const struct steady *steady,
                       bool is_disturbed)
{
    return is_disturbed && steady->disturbance == LAST_CALL &&
           steady->culprit == soak->rank && steady->style == STYLE_TOGETHER;
}

static void play_step(struct soak *soak, struct steady *steady, int step)
{
    bool is_disturbed = step == steady->at;
    bool has_more = is_disturbed && steady->disturbance == MORE_CALLS;
    int held = holds_back(soak, steady, is_disturbed) ? steady->victim : -1;
    struct soak_flight extra[EXTRA_CALLS];

    begin_step(soak, steady);
    if (is_disturbed && steady->disturbance == LATE_RANK &&
        steady->culprit == soak->rank) {
        usleep(30000);
    }
    for (int n = 0; n < steady->count; n++) {
        int i = steady->order[n];

        if (steady->style == STYLE_OVERLAPPING) {
            soak_finish(soak, &steady->flights[i]);
        }
        if (i != held) {
            start_call(soak, steady, i, step, is_disturbed);
        }
        if (has_more && n == steady->count / 2) {
            start_extra(soak, steady, extra);
        }
        if (steady->style == STYLE_ONE_BY_ONE) {
            soak_finish(soak, &steady->flights[i]);
        }
    }
    if (steady->style == STYLE_TOGETHER) {
        soak_finish_all(soak, steady->flights, steady->count);
    }
    if (held >= 0) {
        start_call(soak, steady, held, step, is_disturbed);
        soak_finish(soak, &steady->flights[held]);
    }
    if (has_more) {
        soak_finish_all(soak, extra, EXTRA_CALLS);
    }
}

void soak_steady(struct soak *soak)
{
    struct steady *steady = calloc(1, sizeof(*steady));
    int steps = 4 + (int)soak_pick(&soak->shared, 40);

    soak_note(soak, "steps that repeat");
    draw_steady(soak, steady, steps);
    for (int step = 0; step < steps; step++) {
        play_step(soak, steady, step);
    }
    soak_finish_all(soak, steady->flights, steady->count);
    free(steady);
}
