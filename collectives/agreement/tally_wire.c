/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of one tensor on the wire: a record (its count is the rows, its id the tensor's, 0 when
 * it is described in full), whether more follows and whether a rank lacks it, the largest
 * block, the description, the rows. */
#include <string.h>

#include "collectives/agreement/tally.h"

enum {
    HAS_MORE = 1,
    IS_PARTIAL = 2
};

void hvd_put_tensor_report(struct hvd_writer *writer,
                           const struct hvd_tensor_report *report)
{
    bool is_named = report->known != NULL && !report->known->is_evicted;

    hvd_put_record(writer, HVD_REPORT_TENSOR, report->row_count,
                   is_named ? report->known->id : 0);
    hvd_put_int(writer, (report->has_more ? HAS_MORE : 0) |
                            (report->is_partial ? IS_PARTIAL : 0));
    hvd_put_int(writer, report->max_block);
    if (!is_named) {
        hvd_put_proposal(writer, report->known != NULL ? report->known->proposal
                                                       : report->proposal);
    }
    hvd_put(writer, report->rows, report->row_count * sizeof(struct hvd_rows));
}

void hvd_put_tally(struct hvd_writer *writer, const struct hvd_tally *tally)
{
    int count = tally->described + (tally->known != NULL ? 1 : 0);

    for (int i = 0; i < count; i++) {
        bool is_last = i == count - 1;
        int described = tally->known != NULL ? i - 1 : i;
        struct hvd_tensor_report report = {
            .known = described < 0 ? tally->known : NULL,
            .proposal = described < 0 ? NULL : tally->descriptions[described],
            .has_more = !is_last,
            .is_partial = tally->is_partial,
            .max_block = tally->max_block,
            .rows = is_last ? tally->rows : NULL,
            .row_count = is_last ? tally->row_count : 0,
        };

        hvd_put_tensor_report(writer, &report);
    }
}

int hvd_take_tensor_report(struct hvd_reader *reader, const struct hvd_record *record,
                           struct hvd_proposal *proposal,
                           struct hvd_tensor_report *report)
{
    int64_t flags = hvd_take_int(reader);

    *report = (struct hvd_tensor_report){.row_count = record->count};
    report->has_more = (flags & HAS_MORE) != 0;
    report->is_partial = (flags & IS_PARTIAL) != 0;
    report->max_block = hvd_take_int(reader);
    if (record->id == 0) {
        if (hvd_take_proposal(reader, proposal) != 0) {
            return HVD_ERR_ARG;
        }
        report->proposal = proposal;
    }
    report->rows = hvd_take(reader, (size_t)record->count * sizeof(struct hvd_rows));
    return reader->failed ? HVD_ERR_ARG : 0;
}
