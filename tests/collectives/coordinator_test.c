/* SPDX-License-Identifier: Apache-2.0 */
/* The root's book: readiness, order, fusion, and every disagreement in Horovod's words. */
#include "collectives/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum {
    SIZE = 3
};

static struct hvd_proposal proposal(int rank, const char *name)
{
    return (struct hvd_proposal){
        .rank = rank,
        .kind = HVD_KIND_ALLREDUCE,
        .dtype = HVD_FLOAT32,
        .op = HVD_SUM,
        .device = HVD_DEVICE_CPU,
        .prescale = 1.0,
        .postscale = 1.0,
        .ndim = 2,
        .shape = {2, 3},
        .name = name,
    };
}

/* Sends a proposal through its wire form, as in life. */
static int add(struct hvd_coordinator *coordinator, struct hvd_proposal sent)
{
    struct hvd_writer writer = {0};
    struct hvd_reader reader;
    struct hvd_proposal got;
    int status;

    hvd_put_proposal(&writer, &sent);
    reader = (struct hvd_reader){.data = writer.data, .bytes = writer.bytes};
    status = hvd_take_proposal(&reader, &got);
    status = status != 0 ? status : hvd_coordinator_add(coordinator, &got, NULL);
    hvd_writer_finish(&writer);
    return status;
}

/* The answer as text: "name+name;" a batch, "!text;" a failure. */
static void answer(struct hvd_coordinator *coordinator, char *text, size_t bytes)
{
    struct hvd_writer writer = {0};
    struct hvd_reader reader;
    size_t used = 0;

    text[0] = '\0';
    hvd_coordinator_answer(coordinator, &writer);
    reader = (struct hvd_reader){.data = writer.data, .bytes = writer.bytes};
    while (reader.bytes > 0) {
        struct hvd_batch_header header;
        struct hvd_batch_tensor tensor;

        if (hvd_take_batch_header(&reader, &header) != 0) {
            break;
        }
        if (header.status != 0) {
            used += (size_t)snprintf(text + used, bytes - used, "!%s ", header.text);
        }
        for (int64_t i = 0; i < header.count; i++) {
            hvd_take_batch_tensor(&reader, &header, &tensor);
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", i > 0 ? "+" : "",
                                     tensor.name);
        }
        used += (size_t)snprintf(text + used, bytes - used, ";");
    }
    hvd_writer_finish(&writer);
}

static struct hvd_coordinator *make(int64_t threshold)
{
    struct hvd_coordinator *coordinator;

    if (hvd_coordinator_create(SIZE, threshold, &coordinator, NULL) != 0) {
        exit(1);
    }
    return coordinator;
}

static void add_all(struct hvd_coordinator *coordinator, struct hvd_proposal sent)
{
    for (int rank = 0; rank < SIZE; rank++) {
        sent.rank = rank;
        add(coordinator, sent);
    }
}

static void test_readiness(void)
{
    struct hvd_coordinator *coordinator = make(0);
    char text[1024];

    add(coordinator, proposal(0, "a"));
    add(coordinator, proposal(1, "b"));
    add(coordinator, proposal(1, "a"));
    answer(coordinator, text, sizeof(text));
    tap_ok(strcmp(text, "") == 0,
           "nothing is ready before the last rank has proposed it");
    add(coordinator, proposal(2, "a"));
    answer(coordinator, text, sizeof(text));
    tap_ok(strcmp(text, "a;") == 0, "a tensor is ready when all ranks have proposed it");
    answer(coordinator, text, sizeof(text));
    tap_ok(strcmp(text, "") == 0, "an answer is given once");
    add(coordinator, proposal(0, "b"));
    tap_ok(add(coordinator, proposal(1, "b")) == HVD_ERR_ARG,
           "a name proposed twice by one rank is refused");
    tap_ok(add(coordinator, proposal(SIZE, "b")) == HVD_ERR_ARG,
           "a rank beyond the job is refused");
    hvd_coordinator_destroy(coordinator);
}

/* The lane of the only batch that is ready. */
static int lane_of(struct hvd_coordinator *coordinator, int64_t rows)
{
    struct hvd_writer writer = {0};
    struct hvd_reader reader;
    struct hvd_batch_header header = {.lane = -1};
    struct hvd_proposal sent = proposal(0, "a");

    sent.shape[0] = rows;
    add_all(coordinator, sent);
    hvd_coordinator_answer(coordinator, &writer);
    reader = (struct hvd_reader){.data = writer.data, .bytes = writer.bytes};
    hvd_take_batch_header(&reader, &header);
    hvd_writer_finish(&writer);
    return header.lane;
}

static void test_lanes(void)
{
    struct hvd_coordinator *coordinator = make(64 << 20);

    tap_ok(lane_of(coordinator, 1000) == HVD_LANE_QUICK &&
               lane_of(coordinator, 1000000) == HVD_LANE_BULK,
           "a large tensor travels where it does not hold up small ones");
    hvd_coordinator_destroy(coordinator);
}

static void test_fusion(void)
{
    const int64_t tensor_bytes = 2 * 3 * 4;
    struct hvd_coordinator *coordinator = make(2 * tensor_bytes);
    struct hvd_proposal other = proposal(0, "double");
    char text[1024];

    other.dtype = HVD_FLOAT64;
    add_all(coordinator, proposal(0, "a"));
    add_all(coordinator, other);
    add_all(coordinator, proposal(0, "b"));
    add_all(coordinator, proposal(0, "c"));
    answer(coordinator, text, sizeof(text));
    tap_ok(strcmp(text, "a+b;double;c;") == 0,
           "same dtype travels together up to the threshold, past others (%s)", text);
    hvd_coordinator_destroy(coordinator);

    coordinator = make(0);
    add_all(coordinator, proposal(0, "a"));
    add_all(coordinator, proposal(0, "b"));
    answer(coordinator, text, sizeof(text));
    tap_ok(strcmp(text, "a;b;") == 0, "threshold 0 fuses nothing");
    hvd_coordinator_destroy(coordinator);
}

static void change_dtype(struct hvd_proposal *p)
{
    p->dtype = HVD_INT32;
}

static void change_kind(struct hvd_proposal *p)
{
    p->kind = HVD_KIND_ALLGATHER;
}

static void change_shape(struct hvd_proposal *p)
{
    p->shape[1] = 4;
}

static void change_scale(struct hvd_proposal *p)
{
    p->prescale = 0.5;
}

static void change_op(struct hvd_proposal *p)
{
    p->op = HVD_MAX;
}

static void change_device(struct hvd_proposal *p)
{
    p->device = 0;
}

static void change_root(struct hvd_proposal *p)
{
    p->root = 2;
}

static void change_rank(struct hvd_proposal *p)
{
    p->ndim = 1;
}

static void change_nothing(struct hvd_proposal *p)
{
    (void)p;
}

static void test_disagreement(void)
{
    static const struct {
        enum hvd_kind kind;
        int ndim;
        void (*change)(struct hvd_proposal *);
        const char *text;
    } cases[] = {
        {HVD_KIND_ALLREDUCE, 2, change_dtype,
         "Mismatched data types: One rank had type float32, but another rank had type "
         "int32."},
        {HVD_KIND_ALLREDUCE, 2, change_kind,
         "Mismatched operations: One rank did an ALLREDUCE, but another rank did an "
         "ALLGATHER."},
        {HVD_KIND_ALLREDUCE, 2, change_shape,
         "Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [2, 3], "
         "but "
         "another rank sent a tensor of shape [2, 4]."},
        {HVD_KIND_BROADCAST, 2, change_shape,
         "Mismatched BROADCAST tensor shapes: One rank sent a tensor of shape [2, 3], "
         "but "
         "another rank sent a tensor of shape [2, 4]."},
        {HVD_KIND_ALLREDUCE, 2, change_scale,
         "Mismatched prescale and/or postscale factors: One rank sent factors (1, 1), "
         "but "
         "another rank sent factors (0.5, 1)."},
        {HVD_KIND_ALLREDUCE, 2, change_op,
         "Mismatched reduction operation: One rank sent reduction op 1, but another rank "
         "sent "
         "reduction op 4."},
        {HVD_KIND_ALLGATHER, 0, change_nothing,
         "Process-set rank zero tried to ALLGATHER a rank-zero tensor."},
        {HVD_KIND_ALLGATHER, 2, change_rank,
         "Mismatched ALLGATHER tensor shapes: One rank sent a tensor of rank 2, but "
         "another "
         "rank sent a tensor of rank 1."},
        {HVD_KIND_ALLTOALL, 2, change_shape,
         "Mismatched ALLTOALL tensor shapes: One rank sent a tensor with dimension 1 "
         "equal to "
         "3, but another rank sent a tensor with dimension 1 equal to 4."},
        {HVD_KIND_BROADCAST, 2, change_root,
         "Mismatched BROADCAST root ranks: One rank specified root rank 0, but another "
         "rank "
         "specified root rank 2."},
        {HVD_KIND_ALLREDUCE, 2, change_device,
         "Mismatched ALLREDUCE CPU/GPU device selection: One rank specified device CPU, "
         "but "
         "another rank specified device GPU."},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hvd_coordinator *coordinator = make(1 << 20);
        char text[1024], expected[1024];

        for (int rank = 0; rank < SIZE; rank++) {
            struct hvd_proposal sent = proposal(rank, "t");

            sent.kind = cases[i].kind;
            sent.ndim = cases[i].ndim;
            if (rank == SIZE - 1) {
                cases[i].change(&sent);
            }
            add(coordinator, sent);
        }
        answer(coordinator, text, sizeof(text));
        snprintf(expected, sizeof(expected), "!%s t;", cases[i].text);
        if (!tap_ok(strcmp(text, expected) == 0, "%s", cases[i].text)) {
            tap_note("got %s", text);
        }
        hvd_coordinator_destroy(coordinator);
    }
}

static void test_bad_messages(void)
{
    unsigned seed = tap_seed(20261121);
    struct hvd_proposal sent = proposal(0, "name");
    struct hvd_writer writer = {0};
    bool all_bounded = true;

    hvd_put_proposal(&writer, &sent);
    for (size_t cut = 0; cut < writer.bytes; cut++) {
        struct hvd_reader reader = {.data = writer.data, .bytes = cut};
        struct hvd_proposal got;

        all_bounded &= hvd_take_proposal(&reader, &got) == HVD_ERR_ARG;
    }
    tap_ok(all_bounded, "a proposal cut short anywhere is refused");
    srand(seed);
    for (int i = 0; i < 20000; i++) {
        char *noisy = malloc(writer.bytes);
        struct hvd_reader reader = {.data = noisy, .bytes = writer.bytes};
        struct hvd_proposal got;

        memcpy(noisy, writer.data, writer.bytes);
        for (int n = rand() % 4; n >= 0; n--) {
            noisy[(size_t)rand() % writer.bytes] = (char)rand();
        }
        if (hvd_take_proposal(&reader, &got) == 0) {
            all_bounded &= got.name > noisy && got.name < noisy + writer.bytes &&
                           got.ndim <= HVD_MAX_DIMS;
        }
        all_bounded &= reader.data >= noisy && reader.data <= noisy + writer.bytes;
        free(noisy);
    }
    tap_ok(all_bounded, "no damaged proposal makes the reader leave the message");
    hvd_writer_finish(&writer);
}

int main(void)
{
    test_readiness();
    test_lanes();
    test_fusion();
    test_disagreement();
    test_bad_messages();
    return tap_done();
}
