/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/agreement/late_stacks.h"

#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/boot.h"

/* How long rank 0 waits for the answers. A rank takes milliseconds, and half a second if
 * its main thread computes and takes no signals. */
static const int64_t patience_ns = 3000000000;

int hvd_late_stacks_ask(struct hvd_agreement *agreement, const int *ranks, int count)
{
    struct hvd_late_stacks *late = &agreement->late_stacks;
    struct hvd_writer *writer = &hvd_coordinator_writers(agreement->coordinator)->global;

    if (late->count > 0) {
        return 0; /* the time of the last questions is not over */
    }
    late->count = count < HVD_LATE_STACKS_MOST ? count : HVD_LATE_STACKS_MOST;
    late->until_ns = 0;
    for (int i = 0; i < late->count; i++) {
        late->ranks[i] = ranks[i];
        hvd_put_record(writer, HVD_DECISION_STACK, 1, (uint64_t)ranks[i]);
    }
    return writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_late_stacks_take_question(struct hvd_agreement *agreement, uint64_t rank)
{
    const struct hvd_agreement_event event = {.kind = HVD_AGREEMENT_SHOW_STACK};

    if (rank >= (uint64_t)agreement->sets->layout->size) {
        return HVD_ERR_NET;
    }
    if (rank == (uint64_t)agreement->rank) {
        hvd_event_queue_put(&agreement->events, &event, NULL);
    }
    return 0;
}

/* Removes a rank from those that have not answered. Returns whether it was one. */
static bool note_answer(struct hvd_late_stacks *late, int rank)
{
    for (int i = 0; i < late->count; i++) {
        if (late->ranks[i] == rank) {
            late->ranks[i] = late->ranks[--late->count];
            return true;
        }
    }
    return false;
}

/* Takes an answer on rank 0. Ignores one that comes too late. text: [bytes], without a
 * null byte. */
static void conclude_answer(struct hvd_agreement *agreement, int rank, const char *text,
                            size_t bytes)
{
    char copy[HVD_LATE_STACKS_BYTES] = "";
    const size_t length = strnlen(text, bytes);
    const struct hvd_agreement_event event = {
        .kind = HVD_AGREEMENT_STACK, .data = copy, .bytes = length + 1, .late = rank};

    if (note_answer(&agreement->late_stacks, rank) && length > 0) {
        memcpy(copy, text, length);
        hvd_event_queue_put(&agreement->events, &event, NULL);
    }
}

static int put_answer(struct hvd_agreement *agreement, uint64_t rank, const char *text,
                      size_t bytes)
{
    struct hvd_writer *up =
        hvd_reports_put(&agreement->reports, HVD_REPORT_STACK, (uint32_t)bytes, rank);

    hvd_put(up, text, bytes);
    return up->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_late_stacks_tell(struct hvd_agreement *agreement, const char *text)
{
    const size_t bytes = strnlen(text, HVD_LATE_STACKS_BYTES - 1);

    if (!agreement->is_root) {
        return put_answer(agreement, (uint64_t)agreement->rank, text, bytes);
    }
    conclude_answer(agreement, agreement->rank, text, bytes);
    return 0;
}

int hvd_late_stacks_take_answer(struct hvd_agreement *agreement,
                                struct hvd_branch_message *message,
                                const struct hvd_record *record)
{
    const char *text = hvd_take(&message->reader, record->count);

    if (text == NULL || record->count >= HVD_LATE_STACKS_BYTES ||
        !hvd_sets_is_in_branch(agreement->sets, record->id, message->branch)) {
        return HVD_ERR_NET;
    }
    if (!agreement->is_root) {
        return put_answer(agreement, record->id, text, record->count);
    }
    conclude_answer(agreement, (int)record->id, text, record->count);
    return 0;
}

void hvd_late_stacks_look(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_late_stacks *late = &agreement->late_stacks;

    if (late->until_ns == 0) {
        late->until_ns = now_ns + patience_ns;
    }
    if (now_ns < late->until_ns) {
        return;
    }
    for (int i = 0; i < late->count; i++) {
        const struct hvd_boot_peer *peer = &agreement->settings.peers[late->ranks[i]];

        hvd_log(
            HVD_LOG_WARN,
            "rank %d on %s (pid %d) has not sent its stack within %d seconds: it, or a "
            "rank between it and rank 0, may be stopped, starved of cpu, or waiting "
            "for a file system",
            late->ranks[i], peer->host, agreement->settings.pid_of(peer),
            (int)(patience_ns / 1000000000));
    }
    late->count = 0;
}

int64_t hvd_late_stacks_deadline(const struct hvd_late_stacks *late, int64_t now_ns)
{
    if (late->count == 0) {
        return -1;
    }
    return late->until_ns == 0 ? now_ns : late->until_ns;
}
