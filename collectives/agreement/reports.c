/* SPDX-License-Identifier: Apache-2.0 */
/* Reports up the tree. */
#include "collectives/agreement/reports.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"

void hvd_reports_init(struct hvd_reports *reports, const struct hvd_sets *sets)
{
    hvd_ready_table_init(&reports->ready_tensor, sets);
}

void hvd_reports_finish(struct hvd_reports *reports)
{
    hvd_ready_table_finish(&reports->ready_tensor);
    hvd_writer_finish(&reports->writer);
}

/* --- the message to the parent --- */

/* Begins the message with the sender's position, which is filled in when the message is
 * sent. */
static void begin_message(struct hvd_reports *reports)
{
    if (reports->writer.bytes == 0) {
        hvd_put_int(&reports->writer, 0);
    }
}

struct hvd_writer *hvd_reports_put(struct hvd_reports *reports, enum hvd_report_kind kind,
                                   uint32_t count, uint64_t id)
{
    begin_message(reports);
    hvd_put_ids_end(&reports->writer, HVD_REPORT_CACHED, &reports->range);
    hvd_put_record(&reports->writer, kind, count, id);
    return &reports->writer;
}

/* Sends the message. */
static int flush_reports(struct hvd_agreement *agreement)
{
    struct hvd_reports *reports = &agreement->reports;
    struct hvd_writer *writer = &reports->writer;
    uint64_t position = agreement->relay.position;
    struct hvd_agreement_event event = {.kind = HVD_AGREEMENT_SEND_UP};

    hvd_put_ids_end(writer, HVD_REPORT_CACHED, &reports->range);
    if (writer->failed) {
        return HVD_ERR_NOMEM;
    }
    memcpy(writer->data, &position, sizeof(position));
    reports->said_position = position;
    agreement->counts.messages_up++;
    agreement->counts.bytes_sent += writer->bytes;
    event.data = writer->data;
    event.bytes = writer->bytes;
    hvd_event_queue_put(&agreement->events, &event, NULL);
    writer->bytes = 0;
    return 0;
}

static void put_ready_tensor(struct hvd_reports *reports,
                             struct hvd_ready_tensor *ready_tensor)
{
    const struct hvd_cached_tensor *cached = ready_tensor->cached;

    begin_message(reports);
    if (cached != NULL && !cached->is_evicted && ready_tensor->described == 0 &&
        !ready_tensor->is_partial && ready_tensor->row_count == 0 &&
        ready_tensor->max_block == 0) { /* the id alone suffices */
        hvd_put_id(&reports->writer, HVD_REPORT_CACHED, &reports->range, cached->id);
        return;
    }
    hvd_put_ids_end(&reports->writer, HVD_REPORT_CACHED, &reports->range);
    hvd_ready_tensor_find_rank(&reports->ready_tensor, ready_tensor);
    hvd_put_ready_tensor(&reports->writer, ready_tensor);
}

/* --- tensors of this rank and of branches --- */

/* Makes this rank's report of an entry. rows: memory for its row count. */
static struct hvd_tensor_report report_of(const struct hvd_entry *entry,
                                          struct hvd_rows *rows)
{
    const struct hvd_descriptor *descriptor = &entry->descriptor;
    struct hvd_tensor_report report = {
        .cached = entry->cached,
        .rank = descriptor->rank,
        .descriptor = entry->cached == NULL ? descriptor : NULL,
        .max_block = descriptor->max_block,
    };

    if (hvd_kind_has_rows(descriptor->kind) && descriptor->ndim > 0) {
        *rows = (struct hvd_rows){.rank = descriptor->rank, .rows = descriptor->shape[0]};
        report.rows = rows;
        report.row_count = 1;
    }
    return report;
}

int hvd_reports_add(struct hvd_agreement *agreement, const struct hvd_entry *entry)
{
    struct hvd_rows rows;
    const struct hvd_tensor_report report = report_of(entry, &rows);

    return hvd_ready_table_add(&agreement->reports.ready_tensor, &entry->tensor->key, 0,
                               &report);
}

int hvd_reports_submit(struct hvd_agreement *agreement, const struct hvd_entry *entry)
{
    struct hvd_reports *reports = &agreement->reports;
    struct hvd_rows rows;
    struct hvd_tensor_report report;

    if (agreement->is_root || agreement->sets->branches > 1 ||
        reports->ready_tensor.complete != NULL) {
        return hvd_reports_add(agreement, entry);
    }
    report = report_of(entry, &rows);
    begin_message(reports);
    if (report.cached != NULL && report.row_count == 0 && report.max_block == 0) {
        hvd_put_id(&reports->writer, HVD_REPORT_CACHED, &reports->range,
                   report.cached->id);
    } else {
        hvd_put_ids_end(&reports->writer, HVD_REPORT_CACHED, &reports->range);
        hvd_put_tensor_report(&reports->writer, &report);
    }
    return reports->writer.bytes >= HVD_MESSAGE_BYTES ? flush_reports(agreement) : 0;
}

/* Whether a report is outdated: at the position where it was sent, its sender did not
 * know yet that the tensor is replayed or that its set has been aborted. cached may be
 * NULL. */
static bool is_outdated(const struct hvd_agreement *agreement,
                        const struct hvd_cached_tensor *cached,
                        const struct hvd_descriptor *descriptor, uint64_t position)
{
    return (cached != NULL && position < cached->replayed_at) ||
           hvd_sets_refuse(agreement->sets, descriptor);
}

/* Queues a HEARD event for each rank of the branch that has the tensor: the members of
 * its set that have not joined. Queues none if this rank does not take part in the
 * tensor. */
static void tell_heard(struct hvd_agreement *agreement, int branch,
                       const struct hvd_descriptor *descriptor)
{
    const struct hvd_sets *members = agreement->sets;
    const struct hvd_set *set = hvd_sets_find(members, descriptor->set);

    if (set == NULL || !set->is_member || members->has_joined[members->rank]) {
        return;
    }
    for (int i = 0; i < set->count; i++) {
        int rank = set->ranks[i];
        const struct hvd_agreement_event event = {
            .kind = HVD_AGREEMENT_HEARD,
            .data = descriptor->name,
            .bytes = strlen(descriptor->name) + 1,
            .heard = {.rank = rank, .set = descriptor->set, .kind = descriptor->kind},
        };

        if (members->branch_of[rank] == branch && !members->has_joined[rank]) {
            hvd_event_queue_put(&agreement->events, &event, NULL);
        }
    }
}

int hvd_reports_take_cached(struct hvd_agreement *agreement,
                            struct hvd_branch_message *message,
                            const struct hvd_record *record)
{
    for (uint32_t i = 0; i < record->count; i++) {
        struct hvd_cached_tensor *cached =
            hvd_response_cache_by_id(&agreement->cache, record->id + i);
        struct hvd_tensor_report report = {.cached = cached, .rank = -1};
        int status;

        if (cached == NULL) {
            return HVD_ERR_NET;
        }
        if (is_outdated(agreement, cached, cached->descriptor, message->position)) {
            continue;
        }
        status = hvd_ready_table_add(&agreement->reports.ready_tensor, &cached->key,
                                     message->branch, &report);
        if (status != 0) {
            return status;
        }
        if (agreement->wants_heard) {
            tell_heard(agreement, message->branch, cached->descriptor);
        }
    }
    return 0;
}

/* Parses one record of a branch's report of a tensor. descriptor: memory for a
 * description. */
static int take_record(struct hvd_agreement *agreement,
                       struct hvd_branch_message *message,
                       const struct hvd_record *record, struct hvd_descriptor *descriptor,
                       struct hvd_tensor_report *report)
{
    if (hvd_take_tensor_report(&message->reader, record, descriptor, report) != 0) {
        return HVD_ERR_NET;
    }
    if (record->id != 0) {
        report->cached = hvd_response_cache_by_id(&agreement->cache, record->id);
        return report->cached != NULL && report->rank < agreement->sets->layout->size
                   ? 0
                   : HVD_ERR_NET;
    }
    return descriptor->rank < agreement->sets->layout->size &&
                   hvd_sets_find(agreement->sets, descriptor->set) != NULL
               ? 0
               : HVD_ERR_NET;
}

static struct hvd_key key_of(const struct hvd_tensor_report *report)
{
    return report->cached != NULL
               ? report->cached->key
               : hvd_key_make(report->descriptor->set, report->descriptor->name);
}

static const struct hvd_descriptor *descriptor_of(const struct hvd_tensor_report *report)
{
    return report->cached != NULL ? report->cached->descriptor : report->descriptor;
}

/* Adds a branch's report of one tensor, which may have several records. */
static int take_records(struct hvd_agreement *agreement,
                        struct hvd_branch_message *message, struct hvd_record record,
                        struct hvd_descriptor *descriptor)
{
    struct hvd_tensor_report report;
    struct hvd_key first = {0};
    int status = take_record(agreement, message, &record, descriptor, &report);
    bool is_first = true, has_more = true;

    while (status == 0 && has_more) {
        const struct hvd_key key = key_of(&report);

        first = is_first ? key : first;
        if (!is_first && !hvd_key_equal(&key, &first)) {
            return HVD_ERR_NET;
        }
        if (!is_outdated(agreement, hvd_response_cache_find(&agreement->cache, &key),
                         descriptor_of(&report), message->position)) {
            status = hvd_ready_table_add(&agreement->reports.ready_tensor, &key,
                                         message->branch, &report);
            if (status == 0 && is_first && agreement->wants_heard) {
                tell_heard(agreement, message->branch, descriptor_of(&report));
            }
        }
        is_first = false;
        has_more = report.has_more;
        if (status == 0 && has_more) {
            status = hvd_take_record(&message->reader, &record) == 0
                         ? take_record(agreement, message, &record, descriptor, &report)
                         : HVD_ERR_NET;
        }
    }
    return status;
}

int hvd_reports_take_tensor(struct hvd_agreement *agreement,
                            struct hvd_branch_message *message, struct hvd_record record)
{
    struct hvd_descriptor *descriptor = malloc(sizeof(*descriptor));
    int status = descriptor != NULL ? take_records(agreement, message, record, descriptor)
                                    : HVD_ERR_NOMEM;

    free(descriptor);
    return status;
}

int hvd_reports_put_wish(struct hvd_agreement *agreement, const struct hvd_set_wish *wish)
{
    struct hvd_writer *up =
        hvd_reports_put(&agreement->reports, HVD_REPORT_CREATE, 1, (uint64_t)wish->rank);

    hvd_put_text(up, wish->name);
    hvd_put_text(up, wish->list);
    return up->bytes >= HVD_MESSAGE_BYTES ? flush_reports(agreement) : 0;
}

/* --- passing it on --- */

int hvd_reports_pass_up(struct hvd_agreement *agreement)
{
    struct hvd_reports *reports = &agreement->reports;
    struct hvd_ready_tensor *ready_tensor;
    int status = 0;

    while (status == 0 && reports->ready_tensor.complete != NULL) {
        ready_tensor = hvd_ready_table_take(&reports->ready_tensor);
        put_ready_tensor(reports, ready_tensor);
        hvd_ready_table_give_back(&reports->ready_tensor, ready_tensor);
        if (reports->writer.bytes >= HVD_MESSAGE_BYTES) {
            status = flush_reports(agreement);
        }
    }
    return status;
}

int hvd_reports_send(struct hvd_agreement *agreement, bool *moved)
{
    struct hvd_reports *reports = &agreement->reports;
    int status =
        reports->ready_tensor.complete != NULL ? hvd_reports_pass_up(agreement) : 0;

    /* Send an empty message if this rank has reported nothing for long: otherwise its
     * parent would keep evicted tensors in memory. */
    if (reports->writer.bytes == 0 &&
        agreement->relay.position > reports->said_position + 1024) {
        begin_message(reports);
    }
    if (status != 0 || (reports->writer.bytes == 0 && !reports->writer.failed)) {
        return status;
    }
    *moved = true;
    return flush_reports(agreement);
}
