/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: what happened to each tensor, and when, for chrome://tracing and
 * Perfetto.
 *
 * The picture of one rank is Horovod's: rank 0 writes, each tensor has a row, and in it
 *
 *   NEGOTIATE_ALLREDUCE    from the first rank that has the tensor until it is certain that it
 *                          runs: all have it, or it is replayed (replay.h)
 *     0   1   2  ...       in it marks: this rank has become ready
 *   ALLREDUCE              until it is done; the end tells dtype and shape (of the output where
 *                          the library allocates it, else of the input)
 *     QUEUE                the batches before it run
 *     SHM_ALLREDUCE        it runs, all its ranks are on one node; or
 *     NET_ALLREDUCE        it runs, on several nodes
 *   ERROR                  instead of ALLREDUCE and what is in it: the tensor failed
 *
 * and so for ALLGATHER, BROADCAST (SHM_BCAST), ALLTOALL, REDUCESCATTER, ADASUM
 * (SHM_ADASUM_ALLREDUCE), BARRIER and JOIN. Of a tensor on a GPU the last is LAUNCH: for
 * the host it is over when it has been put on the GPU's stream. What the GPU does goes on
 * while the host submits the tensor of the next step, so it has a half of the row for
 * itself, with times measured on the device:
 *
 *   ALLREDUCE                   since it was launched
 *     QUEUE                     the stream is not there yet
 *     INIT_NCCL                 the first time: NCCL connects, on the host
 *     WAIT_FOR_DATA             the stream is there, the tensors are not
 *     MEMCPY_IN_FUSION_BUFFER   tensors that go together
 *     NCCL_ALLREDUCE            and so NCCL_ALLGATHER, NCCL_BCAST, NCCL_ALLTOALL, ...
 *     MEMCPY_OUT_FUSION_BUFFER
 *
 * or, through host memory, MEMCPY_IN_HOST_BUFFER, SHM_ALLREDUCE (on the host),
 * MEMCPY_OUT_HOST_BUFFER; within nodes first, NCCL_REDUCESCATTER before and
 * NCCL_ALLGATHER behind those, with NET_ALLREDUCE. Of an allreduce in pieces the first is
 * shown on its way to the host, the last on its way back. Horovod's other activities
 * (MPI_, GLOO_, CCL_) have no meaning here. What is replayed starts without a word to
 * rank 0: it has rank 0's mark only, and the wait for the others is part of
 * SHM_ALLREDUCE. CYCLE_START marks, if wanted, when rank 0 decides, and when something
 * replayed is complete. Only tensors that rank 0 has are shown.
 *
 * The picture of all ranks is one file too: each rank has its rows, in which NEGOTIATE
 * begins when that rank has the tensor, so that one sees who was late; there are no
 * marks. The ranks send what they have ten times a second up the tree to rank 0, which
 * writes it; times are those of rank 0's clock, and the trace says how exact they are
 * (clock_sync.h).
 *
 * A message has a row for its direction and the other rank, "send to 1" or "receive from
 * any rank", and in it SEND or RECEIVE, until it has ended, or ERROR after it. Of several
 * under way at once, the others have rows "send to 1 (2)", ... Messages are those of rank
 * 0, or of all ranks.
 *
 * Events are queued and written by a thread of the timeline's own. A disk, or a rank 0,
 * that does not keep up costs events, which are counted in the trace, never time: tensors
 * are then left out as a whole. The file is good JSON at any moment (trace_file.h). If it
 * cannot be written, that is one warning, and the end of the timeline.
 *
 * Threads: one at a time, the driver's. All functions but create take NULL, as a timeline
 * that is off. */
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
    /* Any thread: has the driver call progress soon. */
    void (*wake)(void *context);
    void *context;
    bool of_all_ranks; /* rank 0's wish: the others learn it */
};

/* On every rank, once connected; nothing is recorded yet. The caller owns *out. */
int hvd_timeline_create(const struct hvd_timeline_config *config,
                        struct hvd_timeline **out, struct hvd_error *err);

/* Closes what is open. Before the uplink is destroyed. */
void hvd_timeline_destroy(struct hvd_timeline *timeline);

/* Rank 0 is recording to this path. */
bool hvd_timeline_records_to(const struct hvd_timeline *timeline, const char *path);

/* Rank 0: begins to record to a file; does nothing on other ranks. What is recorded to
 * the same path already goes on, what goes to another is closed. Returns 0, or the reason
 * why there is no timeline in err. */
int hvd_timeline_begin(struct hvd_timeline *timeline, const char *path, bool marks_cycles,
                       struct hvd_error *err);

/* Other ranks: rank 0 is going to begin to record all ranks; what happens before its word
 * is here is kept for it. */
void hvd_timeline_expect(struct hvd_timeline *timeline);

/* Rank 0: records no more; what GPUs of other ranks have under way then may be missing.
 * The file is whole and closed after close, which should wait until progress on all ranks
 * has brought their last events: has_ended. */
void hvd_timeline_end(struct hvd_timeline *timeline);
bool hvd_timeline_has_ended(const struct hvd_timeline *timeline);
void hvd_timeline_close(struct hvd_timeline *timeline);

/* Every rank, when its last tensor has ended, before it says so to its parent: rank 0
 * gets this rank's last events before that word. */
void hvd_timeline_leave(struct hvd_timeline *timeline);

/* Every rank: sends what is due. Often. */
void hvd_timeline_progress(struct hvd_timeline *timeline);

/* A message that may be for the timeline. Returns whether it was. */
bool hvd_timeline_on_message(struct hvd_timeline *timeline,
                             const struct hvd_uplink_event *event);

/* The marks of ranks that are ready are wanted. */
bool hvd_timeline_wants_marks(const struct hvd_timeline *timeline);

/* --- what happens --- */

/* This rank has submitted the tensor; every rank calls it. */
void hvd_timeline_proposed(struct hvd_timeline *timeline, const struct hvd_entry *entry);

/* Rank 0 has heard that another rank has a tensor; that rank 0 will have it too is
 * certain. */
void hvd_timeline_ready(struct hvd_timeline *timeline,
                        const struct hvd_descriptor *descriptor, int rank);

/* All ranks run this batch, or it is replayed and this rank has all its tensors. */
void hvd_timeline_agreed(struct hvd_timeline *timeline, const struct hvd_batch *batch);

/* It runs from now on. */
void hvd_timeline_started(struct hvd_timeline *timeline, const struct hvd_batch *batch,
                          bool crosses_nodes);

/* This rank's tensor has ended; before its request may be freed. */
void hvd_timeline_ended(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                        int status);

/* A message starts, before it may end; and has ended, before its request may be freed. */
void hvd_timeline_p2p_started(struct hvd_timeline *timeline,
                              const struct hvd_entry *entry);
void hvd_timeline_p2p_ended(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                            int status);

/* The recording goes on: GPUs are to be watched. */
bool hvd_timeline_is_on(const struct hvd_timeline *timeline);

/* A GPU has done with the tensor what it was given at since_ns: spans, one after the
 * other, at most HVD_TRACE_MOST_SPANS - 2. May come after hvd_timeline_ended, and after
 * the tensor was proposed anew. */
void hvd_timeline_device(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                         int64_t since_ns, const struct hvd_trace_span *spans, int count);

/* Rank 0 begins a round of agreement. */
void hvd_timeline_cycle(struct hvd_timeline *timeline);

#endif
