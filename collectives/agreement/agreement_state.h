/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement's parts. Each changes its own struct, and what it promises stands in its header:
 *
 *   agreement.c        life, submissions, and messages: what is due, and to which part it goes
 *   event_queue        what the caller is to do
 *   tensor_table       names: what this rank has in flight, and what is in the cache
 *   reports            up the tree        decisions     down the tree
 *   batch_decisions    batches that all have agreed on
 *   replay             batches that repeat, which nobody asks for
 *   set_creations      sets that their members create alone
 *   set_aborts         sets that a member has given up, or whose ranks disagree
 *   call_order         numbered calls, which all ranks make in one order
 *   joins   set_changes   stall_inspector */
#ifndef HVD_AGREEMENT_STATE_H
#define HVD_AGREEMENT_STATE_H

#include "collectives/agreement/aborted_sets.h"
#include "collectives/agreement/agreement.h"
#include "collectives/agreement/call_order.h"
#include "collectives/agreement/decisions.h"
#include "collectives/agreement/event_queue.h"
#include "collectives/agreement/joins.h"
#include "collectives/agreement/replay.h"
#include "collectives/agreement/reports.h"
#include "collectives/agreement/set_changes.h"
#include "collectives/agreement/set_creations.h"
#include "collectives/agreement/stall_inspector.h"

struct hvd_agreement {
    struct hvd_agreement_settings settings;
    int rank;
    bool is_root; /* it is rank 0 */

    struct hvd_membership membership;
    struct hvd_tensor_cache cache;
    struct hvd_tensor_table *tensors; /* borrowed */
    struct hvd_reports reports;
    struct hvd_decisions decisions;
    struct hvd_replays replays;
    struct hvd_joins joins;
    struct hvd_set_changes set_changes;
    struct hvd_aborted_sets aborted_sets;
    struct hvd_call_order call_order;
    struct hvd_stall_inspector stall_inspector;
    struct hvd_agreement_counts counts;
    struct hvd_event_queue events; /* for the caller */
    bool wants_heard; /* HEARD events */

    /* rank 0 */
    struct hvd_coordinator *coordinator;
    bool is_settling; /* no replay any more */
    bool has_more; /* decisions, for the next message */
    struct hvd_set_creations set_creations;
};

#endif
