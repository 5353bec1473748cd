/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement's parts. Each part changes only its own struct, and its header describes
 * it:
 *
 *   agreement.c        lifetime, submissions, and messages, which it hands to the parts
 *   event_queue        the events for the caller
 *   tensor_table       names: tensors of this rank in flight, and those in the cache
 *   reports            messages up the tree
 *   relay              messages down the tree
 *   agreed_batch       batches that all ranks have agreed on
 *   replay             batches that repeat, which ranks start without messages
 *   set_creations      sets that their members create alone
 *   set_aborts         sets that a member aborts, or whose ranks disagree
 *   call_order         numbered calls, which all ranks make in one order
 *   late_stacks        where ranks are that hold others up
 *   joins   set_changes   stall_inspector
 *   coordinator        rank 0: decides; fusion and replay_decisions belong to it */
#ifndef HVD_AGREEMENT_STATE_H
#define HVD_AGREEMENT_STATE_H

#include "collectives/agreement/agreement.h"
#include "collectives/agreement/call_order.h"
#include "collectives/agreement/coordinator.h"
#include "collectives/agreement/event_queue.h"
#include "collectives/agreement/joins.h"
#include "collectives/agreement/late_stacks.h"
#include "collectives/agreement/relay.h"
#include "collectives/agreement/replay.h"
#include "collectives/agreement/replay_decisions.h"
#include "collectives/agreement/reports.h"
#include "collectives/agreement/response_cache.h"
#include "collectives/agreement/set_changes.h"
#include "collectives/agreement/set_creations.h"
#include "collectives/agreement/stall_inspector.h"
#include "collectives/agreement/tensor_table.h"

struct hvd_agreement {
    struct hvd_agreement_settings settings;
    int rank;
    bool is_root; /* this is rank 0 */

    struct hvd_sets *sets; /* borrowed */
    struct hvd_response_cache cache;
    struct hvd_tensor_table *tensors; /* borrowed */
    struct hvd_reports reports;
    struct hvd_relay relay;
    struct hvd_replays replays;
    struct hvd_joins joins;
    struct hvd_set_changes set_changes;
    struct hvd_call_order call_order;
    struct hvd_stall_inspector stall_inspector;
    struct hvd_late_stacks late_stacks;
    struct hvd_agreement_counts counts;
    struct hvd_event_queue events; /* not yet taken by the caller */
    /* The message of decisions that has been passed down but is still to be carried out
     * here, if has_message is set. */
    struct hvd_decision_parts message;
    int64_t message_ns; /* when the message came */
    bool has_message;
    bool wants_heard; /* queue HEARD events */

    /* on rank 0 only */
    struct hvd_coordinator *coordinator;
    struct hvd_writer decisions; /* memory for rank 0's next message */
    struct hvd_set_creations set_creations;
};

#endif
