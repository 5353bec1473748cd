/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: what happened to each tensor and when, for chrome://tracing and Perfetto.
 *
 * A timeline shows one rank, as Horovod's does, or all ranks. The picture of one rank
 * shows rank 0, which writes the file. Each tensor has a row with these activities:
 *
 *   NEGOTIATE_ALLREDUCE    from the first rank that has the tensor until it is certain
 *                          that the tensor runs: all ranks have it, or it is replayed
 *                          (replay.h)
 *     0   1   2  ...       marks in it, when the rank of that number submits the tensor
 *   ALLREDUCE              until the tensor is done; the end shows dtype and shape (of
 *                          the output if the library allocates it, else of the input)
 *     QUEUE                earlier batches of the queue run
 *     SHM_ALLREDUCE        the tensor runs on one node, or
 *     NET_ALLREDUCE        the tensor runs on several nodes
 *   ERROR                  instead of ALLREDUCE: the tensor failed
 *
 * The other collectives look the same: ALLGATHER, BROADCAST (SHM_BCAST), ALLTOALL,
 * REDUCESCATTER, ADASUM (SHM_ADASUM_ALLREDUCE), BARRIER and JOIN. For a tensor on a GPU,
 * the last activity is LAUNCH: the host is done with it once it is on the GPU's stream.
 * The GPU may still work on it when the host submits the tensor of the next step; so the
 * row has a second half for the GPU, with times measured there:
 *
 *   ALLREDUCE                   since the launch
 *     QUEUE                     the stream still does earlier work
 *     INIT_NCCL                 the first time: NCCL connects, on the host
 *     WAIT_FOR_DATA             the stream waits for the tensors to be computed
 *     MEMCPY_IN_FUSION_BUFFER   several tensors are copied into one buffer
 *     NCCL_ALLREDUCE            or NCCL_ALLGATHER, NCCL_BCAST, NCCL_ALLTOALL, ...
 *     MEMCPY_OUT_FUSION_BUFFER
 *
 * A tensor that goes through host memory has MEMCPY_IN_HOST_BUFFER, SHM_ALLREDUCE (on the
 * host) and MEMCPY_OUT_HOST_BUFFER instead. If NCCL reduces within nodes first,
 * NCCL_REDUCESCATTER comes before these and NCCL_ALLGATHER after them, and NET_ALLREDUCE
 * replaces SHM_ALLREDUCE. If an allreduce runs in pieces, the copy in is that of the
 * first piece, and the copy out that of the last one.
 * Horovod's other activities (MPI_, GLOO_, CCL_) do not exist here.
 *
 * A replayed tensor starts without a message to rank 0: it has only rank 0's mark, and
 * the wait for the other ranks is part of SHM_ALLREDUCE. CYCLE_START, if wanted, marks
 * when rank 0 decides, and when a replayed batch is complete. Only the tensors of rank 0
 * are shown.
 *
 * The picture of all ranks is one file, too. Each rank has its own rows, in which
 * NEGOTIATE begins when that rank has the tensor, so that late ranks can be seen; there
 * are no marks. The ranks send their events up the tree to rank 0 ten times a second, and
 * rank 0 writes them. Times are those of rank 0's clock, and the trace says how exact
 * they are (clock_sync.h).
 *
 * A message between two ranks has a row for its direction and the other rank, "send to 1"
 * or "receive from any rank", with SEND or RECEIVE until it has ended, followed by ERROR
 * if it failed. If several are in flight at once, the second one has a row "send to 1
 * (2)", and so on. The picture of one rank shows the messages of rank 0.
 *
 * Events are queued, and a thread of the timeline writes them. If the disk or rank 0 does
 * not keep up, events are lost, but the job is not delayed: whole tensors are left out,
 * and the trace contains the number of lost events. The file is valid JSON at any moment
 * (trace_file.h). If it cannot be written, there is one warning, and the timeline ends.
 *
 * Threads: one at a time, under the progress lock. All functions but create accept NULL,
 * for a timeline that is off. */
#ifndef HVD_TIMELINE_H
#define HVD_TIMELINE_H

#include <stdbool.h>

#include "collectives/request/batch.h"
#include "collectives/trace/trace_text.h"
#include "collectives/transport/control/uplink.h"
#include "pmix_boot/boot.h"

struct hvd_timeline;

struct hvd_timeline_config {
    const struct hvd_boot *boot; /* borrowed */
    struct hvd_uplink *uplink; /* borrowed; may be NULL in a job of one rank */
    /* Called by any thread: lets the progress thread call hvd_timeline_progress soon. */
    void (*wake)(void *context);
    void *context;
    bool of_all_ranks; /* set by rank 0; the other ranks learn it from rank 0 */
};

/* Creates the timeline of a rank that is connected. Nothing is recorded yet. The caller
 * owns *out. */
int hvd_timeline_create(const struct hvd_timeline_config *config,
                        struct hvd_timeline **out, struct hvd_error *err);

/* Closes the recording, if there is one. Must be called before the uplink is
 * destroyed. */
void hvd_timeline_destroy(struct hvd_timeline *timeline);

/* Whether rank 0 is recording to this path. */
bool hvd_timeline_records_to(const struct hvd_timeline *timeline, const char *path);

/* Rank 0: begins to record to a file; does nothing on other ranks. A recording to the
 * same path continues, one to another path is closed. Returns 0, or a failure with the
 * reason in err. */
int hvd_timeline_begin(struct hvd_timeline *timeline, const char *path, bool marks_cycles,
                       struct hvd_error *err);

/* To be called on ranks other than 0 if rank 0 will soon begin to record all ranks.
 * Events are kept until rank 0's START arrives. */
void hvd_timeline_expect(struct hvd_timeline *timeline);

/* Rank 0: stops recording. Work that GPUs of other ranks are still doing may be missing.
 * The caller should wait until has_ended returns true (progress on all ranks sends their
 * last events), and then call close, which completes the file. */
void hvd_timeline_end(struct hvd_timeline *timeline);
bool hvd_timeline_has_ended(const struct hvd_timeline *timeline);
void hvd_timeline_close(struct hvd_timeline *timeline);

/* Called on every rank when its last tensor has ended, before it reports that to its
 * parent: rank 0 then gets this rank's last events before that report. */
void hvd_timeline_leave(struct hvd_timeline *timeline);

/* Sends events that are due. Every rank must call it often. */
void hvd_timeline_progress(struct hvd_timeline *timeline);

/* Handles a message if it belongs to the timeline. Returns whether it does. */
bool hvd_timeline_on_message(struct hvd_timeline *timeline,
                             const struct hvd_uplink_event *event);

/* Whether marks of ranks that have submitted a tensor are shown. */
bool hvd_timeline_wants_marks(const struct hvd_timeline *timeline);

/* --- events: each function records that this has happened --- */

/* This rank has submitted the tensor. Called on every rank, not only on rank 0. */
void hvd_timeline_proposed(struct hvd_timeline *timeline, const struct hvd_entry *entry);

/* Another rank has submitted a tensor; rank 0 will submit it, too. */
void hvd_timeline_ready(struct hvd_timeline *timeline,
                        const struct hvd_descriptor *descriptor, int rank);

/* All ranks run this batch, or it is replayed and this rank has all its tensors. */
void hvd_timeline_agreed(struct hvd_timeline *timeline, const struct hvd_batch *batch);

/* The batch runs from now on. */
void hvd_timeline_started(struct hvd_timeline *timeline, const struct hvd_batch *batch,
                          bool crosses_nodes);

/* This rank's tensor has ended. Call it before the tensor's request may be freed. */
void hvd_timeline_ended(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                        int status);

/* A message to or from another rank starts, or has ended. Call started before the message
 * may end, and ended before its request may be freed. */
void hvd_timeline_p2p_started(struct hvd_timeline *timeline,
                              const struct hvd_entry *entry);
void hvd_timeline_p2p_ended(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                            int status);

/* Whether the timeline is recording, so that GPUs are to be watched. */
bool hvd_timeline_is_on(const struct hvd_timeline *timeline);

/* A GPU has finished with a tensor that it was given at since_ns. spans: what the GPU
 * did, one after the other; at most HVD_TRACE_MOST_SPANS - 2. May be called after
 * hvd_timeline_ended, and after the tensor was submitted again. */
void hvd_timeline_device(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                         int64_t since_ns, const struct hvd_trace_span *spans, int count);

/* Rank 0 begins a round of agreement. */
void hvd_timeline_cycle(struct hvd_timeline *timeline);

#endif
