/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of one rank, put together. Only the pair of files that defines a struct
 * reads and changes its fields; others call its functions
 * (tests/structure/owners_test.py).
 *
 * The path of a tensor:  submissions.h  negotiation.h  (run/teams.h)  completion.h
 *
 * job.c opens and closes all parts. The progress lock (progress.h) protects them, except
 * for four parts with locks of their own: submissions, waiters, process sets, and the
 * muting of eventfds. */
#ifndef HVD_JOB_STATE_H
#define HVD_JOB_STATE_H

#include "collectives/core/addresses.h"
#include "collectives/core/algorithms.h"
#include "collectives/core/failure.h"
#include "collectives/core/gpu_tensors.h"
#include "collectives/core/job.h"
#include "collectives/core/live.h"
#include "collectives/core/loop.h"
#include "collectives/core/metrics.h"
#include "collectives/core/negotiation.h"
#include "collectives/core/network.h"
#include "collectives/core/oversubscription.h"
#include "collectives/core/p2p_source.h"
#include "collectives/core/progress.h"
#include "collectives/core/recording.h"
#include "collectives/core/settings.h"
#include "collectives/core/shutdown.h"
#include "collectives/core/stacks.h"
#include "collectives/core/submissions.h"
#include "collectives/core/talk.h"
#include "collectives/core/tuning.h"
#include "collectives/core/waiters.h"
#include "collectives/core/wakeup.h"
#include "collectives/schedule/schedule.h"
#include "collectives/set/sets.h"

struct hvd_job {
    struct hvd_job_settings settings;

    /* The job and its connections, opened by connect.c. */
    struct hvd_boot *boot;
    struct hvd_control *control;
    struct hvd_uplink *uplink;
    struct hvd_shm *shm;
    struct hvd_mail *mail; /* messages between the ranks of the node */
    struct hvd_net *net; /* NULL: the job has one node */
    struct hvd_geometry geometry; /* of every team */
    struct hvd_algorithms algorithms;
    /* the network addresses of all ranks, while connecting */
    struct hvd_addresses addresses;

    /* The parts that a tensor passes through. */
    struct hvd_submissions submissions;
    struct hvd_negotiation negotiation;
    struct hvd_p2p_source p2p_source; /* sends and receives, which need no agreement */
    struct hvd_teams *teams; /* runs the batches that all ranks have agreed on */
    struct hvd_gpu_runtime *gpu;
    struct hvd_gpu_tensors gpu_tensors;
    struct hvd_sets sets; /* the process sets, as of the decisions carried out so far */

    /* The threads that drive the job, and those that wait. */
    struct hvd_progress progress;
    struct hvd_loop loop; /* polls all sources of events */
    struct hvd_talk talk;
    struct hvd_network network;
    struct hvd_waiters waiters;
    struct hvd_wakeup wakeup;
    struct hvd_oversubscription oversubscription;

    /* The end of the job. */
    struct hvd_shutdown shutdown;
    struct hvd_failure failure;

    /* Observers. */
    struct hvd_live live;
    struct hvd_stacks stacks;
    struct hvd_timeline *timeline;
    struct hvd_recording recording;
    /* NULL: neither a report nor metrics were asked for */
    struct hvd_straggler_report *report;
    struct hvd_metrics metrics;
    struct hvd_tuning *tuning; /* NULL: this rank does not tune */
};

#endif
