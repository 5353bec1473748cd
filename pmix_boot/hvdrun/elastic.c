/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/hvdrun/elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/hvdrun/discovery.h"
#include "pmix_boot/hvdrun/service.h"

static const int start_default_s = 60;

/* --- life -------------------------------------------------------------------------------- */

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
        .max = options->elastic.max,
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

/* --- ranks that end ---------------------------------------------------------------------- */

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

/* Seconds before the slot is used again: twice as long each time, and somewhat at random. */
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

static void tell(const struct hvdrun_failure *end, const char *rest)
{
    struct hvd_error text;

    hvdrun_failure_describe(end, 1, &text);
    hvd_log(HVD_LOG_WARN, "%s%s", text.text, rest);
}

void hvdrun_elastic_on_start(struct hvdrun_elastic *elastic, int slot)
{
    elastic->slots[slot].is_running = true;
    elastic->slots[slot].again_ms = 0;
}

void hvdrun_elastic_on_end(struct hvdrun_elastic *elastic, int slot,
                           const struct hvdrun_failure *end, long long now_ms,
                           struct hvdrun_failure *job_end, bool *must_end)
{
    int running, pending;

    elastic->slots[slot].is_running = false;
    *must_end = false;
    if (end->kind == HVDRUN_FAILURE_NONE) {
        if (elastic->successes++ == 0) {
            *job_end = *end; /* it was done without those that failed before */
        }
        return;
    }
    *job_end = *end; /* unless others succeed */
    plan_again(elastic, &elastic->slots[slot], now_ms);
    running = count_running(elastic);
    pending = count_pending(elastic);
    hvd_rendezvous_expect(&elastic->service,
                          elastic->slots[slot].again_ms > 0 ? -1 : slot,
                          running + pending);
    if (elastic->successes > 0 || running == 0) {
        return;
    }
    *must_end =
        running + pending < elastic->options->elastic.min && elastic->discovery == NULL;
    tell(end, *must_end ? "; fewer ranks are left than --min-np"
                        : "; the other ranks continue");
}

/* --- ranks that begin -------------------------------------------------------------------- */

static void start_slot(struct hvdrun_elastic *elastic, int slot)
{
    struct hvd_error err = {0};

    elastic->slots[slot].again_ms = 0;
    if (elastic->start(elastic->job, slot, &err) < 0) {
        hvd_log(HVD_LOG_WARN, "cannot start rank %d: %s", slot, err.text);
    }
}

/* The script says that there is room for more. */
static void fill_room(struct hvdrun_elastic *elastic)
{
    int room = hvdrun_discovery_slots(elastic->discovery) - count_running(elastic) -
               count_pending(elastic);

    for (int slot = 0; slot < elastic->slot_count && room > 0; slot++) {
        const struct hvdrun_elastic_slot *free_one = &elastic->slots[slot];

        if (!free_one->is_running && free_one->again_ms == 0 && free_one->failures == 0) {
            start_slot(elastic, slot);
            room--;
        }
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
        fill_room(elastic);
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
