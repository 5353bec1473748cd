/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a tensor. */
#include "collectives/core/completion.h"

#include "collectives/core/failure_text.h"
#include "collectives/core/grace.h"
#include "collectives/core/job_state.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/trace/ranges.h"
#include "collectives/trace/timeline.h"

void hvd_completion_finish(struct hvd_job *job, struct hvd_entry *entry, int status,
                           const char *text)
{
    const uint64_t range = entry->request->range;
    struct hvd_request *kept = entry->request->is_kept ? entry->request : NULL;
    struct hvd_error told;

    if (status == HVD_ERR_SHUTDOWN) {
        hvd_grace_begin();
    }
    if (status == HVD_ERR_SHUTDOWN ||
        (status < 0 && hvd_failure_has_come(&job->failure))) {
        hvd_failure_text(&told, status, text, "in", entry);
        text = told.text;
    }
    if (hvd_entry_end(entry, status, text)) {
        if (range != 0) {
            hvd_range_end(HVD_RANGES_OPS, range);
        }
        hvd_waiters_tell(&job->waiters);
        if (kept != NULL) {
            hvd_request_drop(kept);
        }
    }
}

/* Does not launch an entry whose result does not fit: such an entry fails when the device
 * is done, because until then the library's buffer for the result is in use. */
void hvd_completion_launch(struct hvd_job *job, struct hvd_entry *entry)
{
    hvd_gpu_park(entry);
    if (hvd_entry_check_room(entry, NULL) == 0 && hvd_entry_launch(entry)) {
        hvd_waiters_tell(&job->waiters);
    }
}

void hvd_completion_end(void *context, struct hvd_entry *entry, int status,
                        const char *text)
{
    struct hvd_job *job = context;
    struct hvd_error lacks_room;

    hvd_live_end(&job->live);
    if (status == 0 && entry->done == NULL && entry->output_bytes > 0 &&
        hvd_entry_check_room(entry, &lacks_room) != 0) {
        status = lacks_room.status;
        text = lacks_room.text;
    }
    if (entry->descriptor.kind == HVD_KIND_JOIN) {
        hvd_sets_recount(&job->sets);
    }
    if (job->timeline != NULL) {
        hvd_timeline_ended(job->timeline, entry, status);
    }
    if (status == 0 && entry->done != NULL) {
        hvd_completion_launch(job, entry);
    } else {
        hvd_completion_finish(job, entry, status, text);
    }
}
