/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of an elastic job. When a rank fails, the others continue if at least
 * --min-np are left. They form a new generation: the ranks that train together until
 * ranks come or leave. With --blacklist-cooldown-range, the failed rank is restarted
 * after a cool-down. A discovery script can add ranks when this machine has free slots,
 * and remove those with the highest numbers when it has fewer.
 *
 * The job succeeds as soon as a rank exits with 0, even if others failed before. A rank
 * that fails after that makes the job fail, unless it was told to leave, was killed
 * because it did not end in time, or was never in a generation. */
#ifndef HVDRUN_ELASTIC_H
#define HVDRUN_ELASTIC_H

#include "pmix_boot/rendezvous/start.h"
#include "pmix_boot/hvdrun/failure.h"
#include "pmix_boot/hvdrun/options.h"

struct hvdrun_discovery;

/* Room for one process. Its index is the number by which hvdrun and the rendezvous
 * service know the process. */
struct hvdrun_elastic_slot {
    bool is_running;
    bool has_begun; /* the process has been in a generation */
    bool is_dropped; /* the process did not rejoin in time and is killed */
    bool is_leaving; /* the process was told to leave at the next commit */
    int failures;
    long long again_ms; /* when to restart it; 0: no restart is planned */
};

struct hvdrun_elastic {
    const struct hvdrun_options *options;
    struct hvd_rendezvous_service service;
    struct hvdrun_elastic_slot *slots; /* [slot_count] */
    int slot_count;
    struct hvdrun_discovery *discovery; /* NULL: no script */
    bool has_begun; /* a generation has begun */
    bool is_over; /* the service has reported that no rank is in a generation any more */
    bool is_short; /* the script printed fewer slots than --min-np, which was logged */
    int successes;
    int (*start)(void *job, int slot, struct hvd_error *err);
    void *job;
};

/* Starts the rendezvous service and prepares the discovery script. The caller has set
 * options, start and job; start(job, slot) will start ranks later. */
int hvdrun_elastic_begin(struct hvdrun_elastic *elastic, struct hvd_error *err);

/* Ends the service and the discovery script. Does nothing if the job was not begun. */
void hvdrun_elastic_end(struct hvdrun_elastic *elastic);

/* Call these when the process of a slot has started or has ended. *job_end gets the
 * failure of the job, unless another rank succeeds later. *must_end is set if too few
 * ranks are left and no discovery script can add any. */
void hvdrun_elastic_on_start(struct hvdrun_elastic *elastic, int slot);
void hvdrun_elastic_on_end(struct hvdrun_elastic *elastic, int slot,
                           const struct hvdrun_failure *end, long long now_ms,
                           struct hvdrun_failure *job_end, bool *must_end);

/* Restarts the ranks that are due and runs the discovery script. */
void hvdrun_elastic_progress(struct hvdrun_elastic *elastic, long long now_ms);

/* Reads events of the service until hvdrun has something to do: *order. Returns false if
 * there is nothing to do now. */
enum hvdrun_elastic_order {
    HVDRUN_ELASTIC_KILL, /* kill the process of *slot */
    HVDRUN_ELASTIC_END, /* end all processes: the job is done */
};
bool hvdrun_elastic_next_order(struct hvdrun_elastic *elastic,
                               enum hvdrun_elastic_order *order, int *slot);

/* Returns when hvdrun_elastic_progress must be called at the latest (hvd_clock_ms); -1:
 * only after the next event. */
long long hvdrun_elastic_next_ms(const struct hvdrun_elastic *elastic);

/* Returns whether a rank is waiting to be restarted. */
bool hvdrun_elastic_is_pending(const struct hvdrun_elastic *elastic);

#endif
