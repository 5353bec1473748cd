/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/hvdrun/elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/hvdrun/discovery.h"
#include "pmix_boot/hvdrun/service.h"

static const int start_default_s = 60;

/* --- begin and end ------------------------------------------------------------------ */

static int start_seconds(const struct hvdrun_options *options)
{
    const char *text =
        hvdrun_string_list_get_variable(&options->settings, HVD_ENV_START_TIMEOUT);
    int seconds;

    text = text != NULL ? text : getenv(HVD_ENV_START_TIMEOUT);
    seconds = text != NULL ? atoi(text) : 0;
    return seconds > 0 ? seconds : start_default_s;
}

int hvdrun_elastic_begin(struct hvdrun_elastic *elastic, struct hvd_error *err)
{
    const struct hvdrun_options *options = elastic->options;
    const struct hvd_rendezvous_rules rules = {
        .np = options->ranks,
        .min = options->elastic.min,
        .max = options->elastic.max - options->elastic.spares,
        .start_s = start_seconds(options),
        .timeout_s = options->elastic.timeout_s,
        .reset_limit =
            options->elastic.has_reset_limit ? options->elastic.reset_limit : -1,
        .is_here = true,
    };
    int status;

    elastic->slot_count = options->elastic.max;
    elastic->slots = calloc((size_t)elastic->slot_count, sizeof(*elastic->slots));
    if (elastic->slots == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks",
                        elastic->slot_count);
    }
    status = hvdrun_service_start(&rules, &elastic->service, err);
    if (status == 0 && options->elastic.discovery != NULL) {
        status = hvdrun_discovery_create(options->elastic.discovery,
                                         options->elastic.slots_per_host,
                                         &elastic->discovery, err);
    }
    return status;
}

void hvdrun_elastic_end(struct hvdrun_elastic *elastic)
{
    hvdrun_discovery_destroy(elastic->discovery);
    hvd_rendezvous_stop(&elastic->service);
    free(elastic->slots);
    elastic->slots = NULL;
}

/* --- ranks that end ----------------------------------------------------------------- */

static int count_running(const struct hvdrun_elastic *elastic)
{
    int running = 0;

    for (int i = 0; i < elastic->slot_count; i++) {
        running += elastic->slots[i].is_running;
    }
    return running;
}

static int count_pending(const struct hvdrun_elastic *elastic)
{
    int pending = 0;

    for (int i = 0; i < elastic->slot_count; i++) {
        pending += elastic->slots[i].again_ms > 0;
    }
    return pending;
}

/* Returns how many seconds to wait before a restart: doubled with each failure, plus a
 * random part. */
static double cooldown_s(const struct hvdrun_elastic_options *options, int failures)
{
    double low = options->cooldown_min_s;
    double seconds = low * (random() / (double)RAND_MAX);

    for (int i = 0; i <= failures && low < options->cooldown_max_s; i++) {
        low *= i > 0 ? 2 : 1;
    }
    seconds += low;
    return seconds < options->cooldown_max_s ? seconds : options->cooldown_max_s;
}

static void plan_again(struct hvdrun_elastic *elastic, struct hvdrun_elastic_slot *slot,
                       long long now_ms)
{
    const struct hvdrun_elastic_options *options = &elastic->options->elastic;

    if (options->cooldown_max_s > 0 && elastic->successes == 0) {
        slot->again_ms = now_ms + (long long)(1000 * cooldown_s(options, slot->failures));
    }
    slot->failures++;
}

static void tell_failure(const struct hvdrun_failure *end, const char *rest)
{
    struct hvd_error text;

    hvdrun_failure_describe(end, 1, &text);
    hvd_log(HVD_LOG_WARN, "%s%s", text.text, rest);
}

void hvdrun_elastic_on_start(struct hvdrun_elastic *elastic, int slot)
{
    struct hvdrun_elastic_slot *started = &elastic->slots[slot];

    *started =
        (struct hvdrun_elastic_slot){.is_running = true, .failures = started->failures};
}

/* Handles an exit with status 0: the rank has left as it was told, or the job has
 * succeeded. */
static void on_success(struct hvdrun_elastic *elastic, int slot,
                       struct hvdrun_failure *job_end)
{
    if (elastic->slots[slot].is_leaving) {
        hvd_rendezvous_expect(&elastic->service, slot,
                              count_running(elastic) + count_pending(elastic));
    } else if (elastic->successes++ == 0) {
        /* the job succeeds in spite of earlier failures */
        *job_end = (struct hvdrun_failure){0};
        hvd_rendezvous_done(&elastic->service);
    }
}

void hvdrun_elastic_on_end(struct hvdrun_elastic *elastic, int slot,
                           const struct hvdrun_failure *end, long long now_ms,
                           struct hvdrun_failure *job_end, bool *must_end)
{
    struct hvdrun_elastic_slot *ended = &elastic->slots[slot];
    struct hvdrun_failure failure = *end;
    int running, pending;

    ended->is_running = false;
    *must_end = false;
    if (end->kind == HVDRUN_FAILURE_NONE) {
        on_success(elastic, slot, job_end);
        return;
    }
    if (elastic->successes > 0 && (ended->is_dropped || ended->is_leaving ||
                                   (elastic->has_begun && !ended->has_begun))) {
        return;
    }
    if (ended->is_dropped) {
        snprintf(failure.text, sizeof(failure.text),
                 "it did not rejoin in time and was ended");
    }
    *job_end = failure; /* cleared if another rank succeeds */
    if (!ended->is_leaving) {
        plan_again(elastic, ended, now_ms);
    }
    running = count_running(elastic);
    pending = count_pending(elastic);
    hvd_rendezvous_expect(&elastic->service, ended->again_ms > 0 ? -1 : slot,
                          running + pending);
    if (elastic->successes > 0 || running == 0) {
        return;
    }
    *must_end =
        running + pending < elastic->options->elastic.min && elastic->discovery == NULL;
    tell_failure(&failure, *must_end ? "; fewer ranks are left than --min-np"
                                     : "; the other ranks continue");
}

/* Returns whether a process that was in a generation still runs. The service sees only
 * that its connection is closed, while the process may still write its results. */
static bool has_running_member(const struct hvdrun_elastic *elastic)
{
    for (int i = 0; i < elastic->slot_count; i++) {
        if (elastic->slots[i].is_running && elastic->slots[i].has_begun) {
            return true;
        }
    }
    return false;
}

bool hvdrun_elastic_next_order(struct hvdrun_elastic *elastic,
                               enum hvdrun_elastic_order *order, int *slot)
{
    enum hvd_rendezvous_event event;
    int status;

    while ((status = hvd_rendezvous_next_event(&elastic->service, &event, slot)) == 0) {
        elastic->is_over |= event == HVD_RENDEZVOUS_OVER;
        if (*slot < 0 || *slot >= elastic->slot_count ||
            !elastic->slots[*slot].is_running) {
            continue;
        }
        if (event == HVD_RENDEZVOUS_BEGUN) {
            elastic->has_begun = true;
            elastic->slots[*slot].has_begun = true;
        } else if (event == HVD_RENDEZVOUS_DROPPED) {
            elastic->slots[*slot].is_dropped = true;
            *order = HVDRUN_ELASTIC_KILL;
            return true;
        }
    }
    if (status < 0 && elastic->service.events >= 0) {
        close(elastic->service.events);
        elastic->service.events = -1;
        hvd_log(HVD_LOG_ERROR,
                "the rendezvous service has ended: ranks can no longer rejoin");
    }
    *order = HVDRUN_ELASTIC_END;
    return elastic->is_over && elastic->successes > 0 && !has_running_member(elastic);
}

/* --- ranks that begin --------------------------------------------------------------- */

static void start_slot(struct hvdrun_elastic *elastic, int slot)
{
    struct hvd_error err = {0};

    elastic->slots[slot].again_ms = 0;
    if (elastic->start(elastic->job, slot, &err) < 0) {
        hvd_log(HVD_LOG_WARN, "cannot start rank %d: %s", slot, err.text);
    }
}

/* Counts the ranks that run and were not told to leave, and those that wait to be
 * restarted. */
static int count_staying(const struct hvdrun_elastic *elastic)
{
    int staying = 0;

    for (int i = 0; i < elastic->slot_count; i++) {
        const struct hvdrun_elastic_slot *slot = &elastic->slots[i];

        staying += (slot->is_running && !slot->is_leaving) || slot->again_ms > 0;
    }
    return staying;
}

/* Adds up to `room` ranks: a rank that was told to leave stays, or an unused slot gets a
 * rank. */
static void fill_room(struct hvdrun_elastic *elastic, int room)
{
    for (int i = 0; i < elastic->slot_count && room > 0; i++) {
        struct hvdrun_elastic_slot *slot = &elastic->slots[i];

        if (slot->is_running && slot->is_leaving) {
            slot->is_leaving = false;
            hvd_rendezvous_stay(&elastic->service, i);
            room--;
        } else if (!slot->is_running && slot->again_ms == 0 && slot->failures == 0) {
            hvd_rendezvous_stay(&elastic->service, i);
            start_slot(elastic, i);
            room--;
        }
    }
}

/* Removes `excess` ranks: first those that wait to be restarted, then running ones.
 * Highest slots go first. */
static void empty_slots(struct hvdrun_elastic *elastic, int excess)
{
    for (int i = elastic->slot_count - 1; i >= 0 && excess > 0; i--) {
        if (elastic->slots[i].again_ms > 0) {
            elastic->slots[i].again_ms = 0;
            elastic->slots[i].failures = 0;
            excess--;
        }
    }
    for (int i = elastic->slot_count - 1; i >= 0 && excess > 0; i--) {
        struct hvdrun_elastic_slot *slot = &elastic->slots[i];

        if (slot->is_running && !slot->is_leaving) {
            slot->is_leaving = true;
            hvd_rendezvous_leave(&elastic->service, i);
            excess--;
        }
    }
}

/* Returns how many ranks to keep when the discovery script has printed this many slots:
 * at least --min-np, because a script that fails half-way must not end the job. */
static int kept_slots(struct hvdrun_elastic *elastic, int slots)
{
    const int min = elastic->options->elastic.min;

    if (slots < min && !elastic->is_short) {
        hvd_log(
            HVD_LOG_WARN,
            "--host-discovery-script prints %d slots, fewer than --min-np %d: the job "
            "keeps --min-np ranks",
            slots, min);
    }
    elastic->is_short = slots < min;
    return slots < min ? min : slots;
}

static void follow_script(struct hvdrun_elastic *elastic)
{
    const int slots = hvdrun_discovery_slots(elastic->discovery);
    const int kept = kept_slots(elastic, slots);
    const int staying = count_staying(elastic);

    if (slots > staying) {
        fill_room(elastic, slots - staying);
    } else if (kept < staying) {
        empty_slots(elastic, staying - kept);
    }
}

void hvdrun_elastic_progress(struct hvdrun_elastic *elastic, long long now_ms)
{
    if (elastic->successes > 0) {
        return; /* the job ends */
    }
    for (int slot = 0; slot < elastic->slot_count; slot++) {
        if (elastic->slots[slot].again_ms > 0 &&
            elastic->slots[slot].again_ms <= now_ms) {
            start_slot(elastic, slot);
        }
    }
    if (elastic->discovery != NULL &&
        hvdrun_discovery_progress(elastic->discovery, now_ms)) {
        follow_script(elastic);
    }
}

long long hvdrun_elastic_next_ms(const struct hvdrun_elastic *elastic)
{
    long long next =
        elastic->discovery != NULL ? hvdrun_discovery_next_ms(elastic->discovery) : -1;

    for (int slot = 0; slot < elastic->slot_count; slot++) {
        long long again = elastic->slots[slot].again_ms;

        if (again > 0 && (next < 0 || again < next)) {
            next = again;
        }
    }
    return elastic->successes > 0 ? -1 : next;
}

bool hvdrun_elastic_is_pending(const struct hvdrun_elastic *elastic)
{
    return elastic->successes == 0 && count_pending(elastic) > 0;
}
