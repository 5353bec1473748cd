/* SPDX-License-Identifier: Apache-2.0 */
/* Four ranks on two nodes agree on tensors while messages between them are changed or
 * made up. A rank may end the job, but each batch that a rank runs must be valid for it:
 * the rank is a member of its process set and has all of its tensors. The input is a
 * program of these steps:
 *
 *   submit     a rank submits a tensor, joins, or changes process sets
 *   deliver    a rank gets its oldest message, unchanged or with some bytes changed
 *   make up    a rank gets a message made of the next bytes of the input
 *   progress   some time passes for a rank
 *   finish     the oldest batch of a rank is done */
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement.h"
#include "collectives/agreement/tensor_table.h"
#include "collectives/request/batch.h"
#include "collectives/transport/control/tree.h"
#include "pmix_boot/boot.h"
#include "tests/fuzz/fuzz.h"

enum {
    RANKS = 4,
    MOST_BRANCHES = 4,
    MOST_MESSAGES = 64,
    MOST_BATCHES = 64,
    MOST_REQUESTS = 64,
    MOST_BYTES = 1 << 16
};

struct message {
    char *data;
    size_t bytes;
};

struct inbox {
    struct message list[MOST_MESSAGES];
    int count;
};

struct rank {
    int number;
    struct hvd_agreement *agreement; /* NULL after the rank has ended the job */
    struct hvd_tensor_table tensors;
    struct hvd_sets sets;
    /* [0]: messages from its parent, [n]: from its child n */
    struct inbox inbox[MOST_BRANCHES];
    struct hvd_batch *batches[MOST_BATCHES];
    int batch_count;
};

static struct {
    struct hvd_layout layout;
    struct rank ranks[RANKS];
    struct hvd_request *requests[MOST_REQUESTS];
    int request_count;
    int64_t now_ns;
} job;

/* --- messages --- */

static void push(struct inbox *inbox, const void *payload, size_t bytes)
{
    struct message *message = &inbox->list[inbox->count];

    if (inbox->count == MOST_MESSAGES || bytes > MOST_BYTES) {
        return; /* the message is never delivered, as if this rank were slow for ever */
    }
    message->data = malloc(bytes > 0 ? bytes : 1);
    if (message->data == NULL) {
        abort();
    }
    memcpy(message->data, payload, bytes);
    message->bytes = bytes;
    inbox->count++;
}

static struct message pop(struct inbox *inbox)
{
    struct message message = {0};

    if (inbox->count > 0) {
        message = inbox->list[0];
        inbox->count--;
        memmove(inbox->list, inbox->list + 1,
                (size_t)inbox->count * sizeof(inbox->list[0]));
    }
    return message;
}

static void send_up(const struct rank *rank, const void *payload, size_t bytes)
{
    int children[RANKS];
    int parent = hvd_tree_parent(&job.layout, rank->number);
    int count = hvd_tree_children(&job.layout, parent, children);

    for (int i = 0; i < count; i++) {
        if (children[i] == rank->number) {
            push(&job.ranks[parent].inbox[1 + i], payload, bytes);
        }
    }
}

static void send_down(const struct rank *rank, int child, const void *payload,
                      size_t bytes)
{
    int children[RANKS];
    int count = hvd_tree_children(&job.layout, rank->number, children);

    for (int i = 0; i < count; i++) {
        bool is_on_node = job.layout.node[children[i]] == job.layout.node[rank->number];

        if (child == HVD_AGREEMENT_NODE ? is_on_node : i == child) {
            push(&job.ranks[children[i]].inbox[0], payload, bytes);
        }
    }
}

/* --- the events of an agreement --- */

static void run(struct rank *rank, struct hvd_batch *batch)
{
    const struct hvd_batch_header *header = &batch->header;
    const struct hvd_set *set = hvd_sets_find(&rank->sets, header->set);

    if (set == NULL || !set->is_member || (unsigned)header->priority >= HVD_PRIORITIES ||
        header->count < 1) {
        fuzz_fail("only members of its set run a batch, and it has tensors");
    }
    if (header->row_count != 0 && header->row_count != set->count) {
        fuzz_fail("a batch has as many rows as its set has ranks");
    }
    for (int64_t i = 0; i < header->count; i++) {
        if (batch->entries[i] == NULL || batch->entries[i]->descriptor.name == NULL) {
            fuzz_fail("no tensor of a batch is missing");
        }
    }
    if (rank->batch_count == MOST_BATCHES) {
        fuzz_fail("a test of this size has at most MOST_BATCHES batches");
    }
    rank->batches[rank->batch_count++] = batch;
}

static void check_members(const struct hvd_set *set)
{
    for (int i = 0; i < set->count; i++) {
        if (set->ranks[i] < 0 || set->ranks[i] >= RANKS ||
            (i > 0 && set->ranks[i] <= set->ranks[i - 1])) {
            fuzz_fail("a process set consists of ranks of the job, in order");
        }
    }
}

static void check_text(const struct hvd_agreement_event *event)
{
    if (strlen(event->data) + 1 != event->bytes) {
        fuzz_fail("a text ends with a zero");
    }
}

static void carry_out(struct rank *rank, const struct hvd_agreement_event *event)
{
    switch (event->kind) {
    case HVD_AGREEMENT_SEND_UP:
        send_up(rank, event->data, event->bytes);
        break;
    case HVD_AGREEMENT_SEND_DOWN:
        send_down(rank, event->down.child, event->data, event->bytes);
        break;
    case HVD_AGREEMENT_RUN:
        run(rank, event->batch);
        break;
    case HVD_AGREEMENT_ADD_SET:
        check_members(event->set);
        break;
    case HVD_AGREEMENT_HEARD:
    case HVD_AGREEMENT_GIVE_UP:
    case HVD_AGREEMENT_STACK:
        check_text(event);
        break;
    case HVD_AGREEMENT_PAUSE:
    case HVD_AGREEMENT_CONTINUE:
    case HVD_AGREEMENT_CANCEL:
    case HVD_AGREEMENT_REMOVE_SET:
    case HVD_AGREEMENT_ABORT_SET:
    case HVD_AGREEMENT_SHOW_STACK:
        break;
    }
}

static void entry_ended(void *context, struct hvd_entry *entry, int status,
                        const char *text)
{
    (void)context;
    hvd_entry_end(entry, status, text);
}

/* --- the steps of the program --- */

/* Ends the job on this rank: its agreement is never called again. */
static void end(struct rank *rank, int status)
{
    if (status == 0 || rank->agreement == NULL) {
        return;
    }
    hvd_agreement_drop(rank->agreement, true, status, "the job ends");
    for (int i = 0; i < rank->batch_count; i++) {
        hvd_batch_destroy(rank->batches[i]);
    }
    rank->batch_count = 0;
    hvd_agreement_destroy(rank->agreement);
    hvd_sets_finish(&rank->sets);
    rank->agreement = NULL;
}

/* Carries out the events of an agreement function that has just returned this status. */
static void conclude(struct rank *rank, int status)
{
    const struct hvd_agreement_event *event;

    while ((event = hvd_agreement_next(rank->agreement, &status)) != NULL) {
        carry_out(rank, event);
    }
    end(rank, status);
}

/* For some values of `more`, turns the descriptor into one that adds, removes or aborts a
 * process set, or creates one by its members alone. */
static void describe_set(uint8_t more, struct hvd_descriptor *descriptor, char *name)
{
    static const char *const notes[] = {"0,1", "0-2", "0-3", "1,3"};

    if (more % 8 == 6 || more % 8 == 4) {
        free((char *)descriptor->note);
        descriptor->kind = more % 8 == 6 ? HVD_KIND_SET_CREATE : HVD_KIND_SET_ADD;
        descriptor->note = strdup(notes[more / 8 % 4]);
        descriptor->set = HVD_SET_GLOBAL;
        name[0] = (char)('v' + more / 32 % 2);
    } else if (more % 8 == 5) {
        descriptor->kind = HVD_KIND_SET_REMOVE;
        descriptor->set = 1 + more / 8 % 2;
        descriptor->root = descriptor->set;
        name[0] = 'r';
    } else if (more % 8 == 3) {
        free((char *)descriptor->note);
        descriptor->kind = HVD_KIND_SET_ABORT;
        descriptor->note = strdup("why");
        descriptor->set = 1 + more / 8 % 2;
        name[0] = 's';
    }
}

static void describe(struct fuzz_input *input, struct hvd_descriptor *descriptor)
{
    static const enum hvd_kind kinds[] = {
        HVD_KIND_ALLREDUCE,     HVD_KIND_ALLREDUCE, HVD_KIND_ALLREDUCE,
        HVD_KIND_ALLGATHER,     HVD_KIND_BROADCAST, HVD_KIND_JOIN,
        HVD_KIND_ADASUM,        HVD_KIND_ALLTOALL,  HVD_KIND_BARRIER,
        HVD_KIND_REDUCESCATTER, HVD_KIND_REDUCE,    HVD_KIND_GATHER,
        HVD_KIND_SCATTER,       HVD_KIND_SET_ADD,   HVD_KIND_SET_REMOVE};
    static const char *const notes[] = {"0,1", "0,2", "0,1,2,3", "1,3"};
    uint8_t what = fuzz_byte(input), more = fuzz_byte(input);
    char name[8] = {(char)('a' + what / 16 % 4), '\0'};

    *descriptor = (struct hvd_descriptor){
        .kind = kinds[what % 12],
        .dtype = HVD_FLOAT32,
        .op = HVD_SUM,
        .device = HVD_DEVICE_CPU,
        .set = more % 8 == 7 ? 1 : 0,
        .prescale = 1,
        .postscale = 1,
        .ndim = 1,
        .shape = {1 + more / 8 % 4},
    };
    descriptor->root = descriptor->kind == HVD_KIND_SET_REMOVE ? 1 : 0;
    if (descriptor->kind == HVD_KIND_SET_ADD) {
        descriptor->note = strdup(notes[more / 8 % 4]);
        name[0] = (char)('p' + more / 8 % 4);
    }
    if (descriptor->kind == HVD_KIND_JOIN) {
        descriptor->set = HVD_SET_GLOBAL; /* as hvd_join_start does */
        name[0] = 'j';
    }
    describe_set(more, descriptor, name);
    descriptor->name = strdup(name);
}

static void submit(struct fuzz_input *input, struct rank *rank)
{
    struct hvd_request *request;

    if (job.request_count == MOST_REQUESTS) {
        return;
    }
    request = hvd_request_create(1);
    if (request == NULL) {
        abort();
    }
    describe(input, &request->entries[0].descriptor);
    if (hvd_tensor_table_add(&rank->tensors, request, NULL) != 0) {
        hvd_request_drop(request);
        return;
    }
    job.requests[job.request_count++] = request;
    conclude(rank,
             hvd_agreement_submit(rank->agreement, &request->entries[0], job.now_ns));
}

static void take(struct rank *rank, int branch, const void *data, size_t bytes)
{
    conclude(rank, branch == 0 ? hvd_agreement_from_above(rank->agreement, data, bytes,
                                                          job.now_ns)
                               : hvd_agreement_from_below(rank->agreement, branch, data,
                                                          bytes, job.now_ns));
}

static int branches_of(const struct rank *rank)
{
    return 1 + hvd_tree_children(&job.layout, rank->number, NULL);
}

static void change(struct fuzz_input *input, struct message *message)
{
    int changes = 1 + fuzz_byte(input) % 3;

    for (int i = 0; i < changes && message->bytes > 0; i++) {
        size_t at = (fuzz_byte(input) | (size_t)fuzz_byte(input) << 8) % message->bytes;

        message->data[at] = (char)fuzz_byte(input);
    }
    if (fuzz_byte(input) % 4 == 0) {
        size_t bytes = fuzz_byte(input) % (message->bytes + 1);
        char *shorter = malloc(bytes > 0 ? bytes : 1);

        if (shorter == NULL) {
            abort();
        }
        memcpy(shorter, message->data, bytes);
        free(message->data);
        *message = (struct message){shorter, bytes};
    }
}

static void deliver(struct fuzz_input *input, struct rank *rank, bool is_changed)
{
    int branches = branches_of(rank);
    int first = fuzz_byte(input) % branches;
    struct message message = {0};

    for (int i = 0; i < branches && message.data == NULL; i++) {
        int branch = (first + i) % branches;

        message = pop(&rank->inbox[branch]);
        if (message.data != NULL) {
            if (is_changed) {
                change(input, &message);
            }
            take(rank, branch, message.data, message.bytes);
        }
    }
    free(message.data);
}

/* Gives the rank a message that consists of bytes of the input, from a child or from its
 * parent. Rank 0 has no parent. */
static void make_up(struct fuzz_input *input, struct rank *rank)
{
    int branches = branches_of(rank);
    int branch = fuzz_byte(input) % branches;
    size_t bytes, wanted = fuzz_byte(input);
    void *data = fuzz_copy(input, wanted, &bytes);

    if (branch != 0 || rank->number != 0) {
        take(rank, branch, data, bytes);
    }
    free(data);
}

static void finish(struct rank *rank)
{
    struct hvd_batch *batch = rank->batches[0];

    if (rank->batch_count > 0) {
        rank->batch_count--;
        memmove(rank->batches, rank->batches + 1,
                (size_t)rank->batch_count * sizeof(rank->batches[0]));
        conclude(rank, hvd_agreement_finish(rank->agreement, batch));
    }
}

static void step(struct fuzz_input *input)
{
    uint8_t what = fuzz_byte(input);
    struct rank *rank = &job.ranks[what / 8 % RANKS];
    bool moved = false;

    if (rank->agreement == NULL) {
        return;
    }
    switch (what % 8) {
    case 0:
    case 1:
        submit(input, rank);
        break;
    case 2:
        deliver(input, rank, true);
        break;
    case 3:
        make_up(input, rank);
        break;
    case 4:
        finish(rank);
        break;
    case 5:
        job.now_ns += 1000000;
        conclude(rank, hvd_agreement_progress(rank->agreement, (what & 128) != 0,
                                              job.now_ns, &moved));
        break;
    default:
        deliver(input, rank, false);
        break;
    }
}

/* Lets everything that is under way continue for some time, without changes. */
static void settle(void)
{
    for (int i = 0; i < 8 * RANKS; i++) {
        struct rank *rank = &job.ranks[i % RANKS];
        struct fuzz_input nothing = {0};
        bool moved = false;

        job.now_ns += 1000000;
        for (int k = 0; k < 4 && rank->agreement != NULL; k++) {
            deliver(&nothing, rank, false);
        }
        if (rank->agreement != NULL) {
            conclude(rank,
                     hvd_agreement_progress(rank->agreement, true, job.now_ns, &moved));
        }
        if (rank->agreement != NULL) {
            finish(rank);
        }
    }
}

static int pid_of(const struct hvd_boot_peer *peer)
{
    (void)peer;
    return 1;
}

static void begin(void)
{
    static const char *const hosts[RANKS] = {"n1", "n1", "n2", "n2"};
    static struct hvd_boot_peer peers[RANKS] = {
        {.host = "n1"}, {.host = "n1"}, {.host = "n2"}, {.host = "n2"}};
    struct hvd_agreement_settings settings = {
        .peers = peers,
        .pid_of = pid_of,
        .fusion = {.threshold = 1 << 20, .capacity = 4, .cycle_ns = 1000000},
        .may_replay = true,
        .stall_warning_ns = 5000000,
        .stall_shutdown_ns = 50000000,
    };

    memset(&job, 0, sizeof(job));
    job.now_ns = 1000000;
    if (hvd_layout_init(&job.layout, hosts, RANKS, NULL) != 0) {
        abort();
    }
    for (int i = 0; i < RANKS; i++) {
        struct rank *rank = &job.ranks[i];

        rank->number = i;
        hvd_tensor_table_init(&rank->tensors, entry_ended, rank);
        settings.tensors = &rank->tensors;
        settings.sets = &rank->sets;
        if (hvd_sets_init(&rank->sets, &job.layout, i, NULL) != 0 ||
            hvd_agreement_create(&settings, &rank->agreement, NULL) != 0) {
            abort();
        }
        hvd_agreement_watch(rank->agreement, true);
    }
}

static void stop(void)
{
    for (int i = 0; i < RANKS; i++) {
        struct rank *rank = &job.ranks[i];

        end(rank, HVD_ERR_SHUTDOWN);
        for (int k = 0; k < MOST_BRANCHES; k++) {
            while (rank->inbox[k].count > 0) {
                free(pop(&rank->inbox[k]).data);
            }
        }
        hvd_tensor_table_finish(&rank->tensors);
    }
    for (int i = 0; i < job.request_count; i++) {
        hvd_request_drop(job.requests[i]);
    }
    hvd_layout_finish(&job.layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};

    begin();
    while (input.bytes > 0) {
        step(&input);
    }
    settle();
    stop();
    return 0;
}
