/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of an elastic job: when one fails, the others continue while they are enough;
 * a failed rank is restarted after a cool-down, more are started when hosts have free
 * slots, and the last ones are removed when hosts have fewer.
 *
 * The job succeeds as soon as a rank exits with 0, even if others failed before. A rank
 * that fails later is a failure of the job, but not one that was in none of its
 * generations. */
#ifndef HVDRUN_ELASTIC_H
#define HVDRUN_ELASTIC_H

#include "pmix_boot/rendezvous/start.h"
#include "pmix_boot/hvdrun/failure.h"
#include "pmix_boot/hvdrun/options.h"

struct hvdrun_discovery;

/* The launcher's numbers of ranks are 0 to slots - 1. */
struct hvdrun_elastic_slot {
    bool is_running;
    bool has_begun; /* its process was in a generation */
    bool is_dropped; /* and is given up: it did not rejoin */
    bool is_leaving; /* is to leave at the next commit */
    int failures;
    long long again_ms; /* when to start it again; 0: not */
};

struct hvdrun_elastic {
    const struct hvdrun_options *options;
    struct hvd_rendezvous_service service;
    struct hvdrun_elastic_slot *slots; /* [slot_count] */
    int slot_count;
    struct hvdrun_discovery *discovery; /* NULL: no script */
    bool has_begun; /* there was a generation */
    bool is_over; /* nobody is in a generation any more, the service says */
    bool is_short; /* said: fewer slots than --min-np */
    int successes;
    int (*start)(void *job, int slot, struct hvd_error *err);
    void *job;
};

/* Starts the service and the search for hosts; start(job, slot) starts a rank later
 * on. */
int hvdrun_elastic_begin(struct hvdrun_elastic *elastic, struct hvd_error *err);

/* Ends both. One that was not begun is fine. */
void hvdrun_elastic_end(struct hvdrun_elastic *elastic);

/* A rank of that slot runs, has ended. job_end gets why, and must_end is true, when the
 * job cannot go on. */
void hvdrun_elastic_on_start(struct hvdrun_elastic *elastic, int slot);
void hvdrun_elastic_on_end(struct hvdrun_elastic *elastic, int slot,
                           const struct hvdrun_failure *end, long long now_ms,
                           struct hvdrun_failure *job_end, bool *must_end);

/* Starts what is due. */
void hvdrun_elastic_progress(struct hvdrun_elastic *elastic, long long now_ms);

/* Takes the next order of the service to hvdrun. False: there is none now. */
enum hvdrun_elastic_order {
    HVDRUN_ELASTIC_KILL, /* the process of *slot */
    HVDRUN_ELASTIC_END, /* all processes: the job is done */
};
bool hvdrun_elastic_next_order(struct hvdrun_elastic *elastic,
                               enum hvdrun_elastic_order *order, int *slot);

/* When to call progress; -1: only events count. */
long long hvdrun_elastic_next_ms(const struct hvdrun_elastic *elastic);

/* Whether a rank will be started, though none may run. */
bool hvdrun_elastic_is_pending(const struct hvdrun_elastic *elastic);

#endif
