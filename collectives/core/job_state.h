/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of one rank, put together. The fields of each struct belong to the pair of
 * files that defines it; others call its functions (tests/structure/owners_test.py).
 *
 * One tensor:  submissions.h  negotiation.h  (run/teams.h)  completion.h
 *
 * job.c opens all of this and closes it; between, what the progress lock
 * (progress.h) does not guard has a lock of its own: submissions, waiters, process sets,
 * the muting of eventfds. */
#ifndef HVD_JOB_STATE_H
#define HVD_JOB_STATE_H

#include "collectives/core/addresses.h"
#include "collectives/core/algorithms.h"
#include "collectives/core/failure.h"
#include "collectives/core/gpu_tensors.h"
#include "collectives/core/job.h"
#include "collectives/core/loop.h"
#include "collectives/core/negotiation.h"
#include "collectives/core/network.h"
#include "collectives/core/oversubscription.h"
#include "collectives/core/p2p_source.h"
#include "collectives/core/progress.h"
#include "collectives/core/recording.h"
#include "collectives/core/settings.h"
#include "collectives/core/shutdown.h"
#include "collectives/core/submissions.h"
#include "collectives/core/talk.h"
#include "collectives/core/tuning.h"
#include "collectives/core/waiters.h"
#include "collectives/core/wakeup.h"
#include "collectives/schedule/schedule.h"
#include "collectives/set/sets.h"

struct hvd_job {
    struct hvd_job_settings settings;

    /* The job, as connect.c finds it. */
    struct hvd_boot *boot;
    struct hvd_control *control;
    struct hvd_uplink *uplink;
    struct hvd_shm *shm;
    struct hvd_mail *mail; /* with the other ranks of the node */
    struct hvd_net *net; /* NULL: one node */
    struct hvd_geometry geometry; /* of every team */
    struct hvd_algorithms algorithms;
    struct hvd_addresses addresses; /* of the network, while connecting */

    /* What a tensor passes through. */
    struct hvd_submissions submissions;
    struct hvd_negotiation negotiation;
    struct hvd_p2p_source p2p_source; /* sends and receives, which nobody agrees on */
    struct hvd_teams *teams; /* and the batches that all ranks have agreed on */
    struct hvd_gpu_runtime *gpu;
    struct hvd_gpu_tensors gpu_tensors;
    struct hvd_sets sets; /* as far as decisions have been carried out */

    /* Who moves it, and waits. */
    struct hvd_progress progress;
    struct hvd_loop loop; /* over all parts that something can come from */
    struct hvd_talk talk;
    struct hvd_network network;
    struct hvd_waiters waiters;
    struct hvd_wakeup wakeup;
    struct hvd_oversubscription oversubscription;

    /* How it ends. */
    struct hvd_shutdown shutdown;
    struct hvd_failure failure;

    /* What watches. */
    struct hvd_timeline *timeline;
    struct hvd_recording recording;
    struct hvd_straggler_report *report; /* NULL: nobody asked for it */
    struct hvd_tuning *tuning; /* NULL: this rank does not tune */
};

#endif
