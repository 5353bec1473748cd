/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that descriptors are read as they were written, and that damaged ones do no
 * harm. */
#include "collectives/agreement/codec.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/tap.h"

static const struct hvd_descriptor full = {
    .rank = 3,
    .set = 2,
    .kind = HVD_KIND_ALLREDUCE,
    .dtype = HVD_FLOAT32,
    .wire = HVD_BFLOAT16,
    .op = HVD_AVERAGE,
    .root = 1,
    .device = HVD_DEVICE_CPU,
    .ndim = 2,
    .prescale = 0.5,
    .postscale = -3,
    .max_block = 7,
    .group = UINT64_C(0xfedcba9876543210),
    .group_size = 4,
    .shape = {5, 6},
    .name = "gradient",
    .note = "0,2",
};

static struct hvd_writer write_down(const struct hvd_descriptor *descriptor)
{
    struct hvd_writer writer = {0};

    hvd_put_descriptor(&writer, descriptor);
    return writer;
}

static int read_back(const struct hvd_writer *writer, size_t bytes,
                     struct hvd_descriptor *descriptor)
{
    struct hvd_reader reader = {.data = writer->data, .bytes = bytes};
    int status = hvd_take_descriptor(&reader, descriptor);

    return status == 0 && reader.bytes != 0 ? HVD_ERR_ARG : status;
}

static void test_round_trip(void)
{
    struct hvd_writer writer = write_down(&full);
    struct hvd_descriptor back = {0};
    int status = read_back(&writer, writer.bytes, &back);

    tap_ok(status == 0 && hvd_descriptor_equal(&full, &back) && back.rank == full.rank &&
               back.set == full.set && back.max_block == full.max_block &&
               back.wire == full.wire && strcmp(back.name, full.name) == 0,
           "a description is read as it was written");
    hvd_writer_finish(&writer);
}

/* A message that was cut short is refused, wherever the cut is. */
static void test_cut(void)
{
    struct hvd_writer writer = write_down(&full);
    struct hvd_descriptor back;
    bool is_refused = true;

    for (size_t bytes = 0; bytes < writer.bytes; bytes++) {
        char *cut = malloc(bytes + 1);
        struct hvd_writer part = {.data = cut};

        memcpy(cut, writer.data, bytes);
        is_refused = is_refused && read_back(&part, bytes, &back) == HVD_ERR_ARG;
        free(cut);
    }
    tap_ok(is_refused, "a description that was cut is refused");
    hvd_writer_finish(&writer);
}

/* Nothing behind the end of a damaged description is read: the sanitizers check that. */
static void test_damage(unsigned seed)
{
    struct hvd_writer writer = write_down(&full);
    struct hvd_descriptor back;
    int read = 0;

    srand(seed);
    for (int round = 0; round < 20000; round++) {
        size_t at = (size_t)rand() % writer.bytes;
        char before = writer.data[at];

        writer.data[at] = (char)rand();
        read += read_back(&writer, writer.bytes, &back) == 0 ? 1 : 0;
        writer.data[at] = before;
    }
    tap_ok(read > 0 && read_back(&writer, writer.bytes, &back) == 0,
           "damaged descriptions are read or refused");
    hvd_writer_finish(&writer);
}

static void differs(const struct hvd_descriptor *other, const char *what)
{
    tap_ok(!hvd_descriptor_equal(&full, other),
           "descriptors with another %s are not equal", what);
}

static void test_equal(void)
{
    struct hvd_descriptor other = full;

    other.rank = 0;
    tap_ok(hvd_descriptor_equal(&full, &other), "the rank does not count");
    other = full;
    other.wire = HVD_FLOAT16;
    differs(&other, "wire type");
    other = full;
    other.wire = 0;
    differs(&other, "way without a wire type");
    other = full;
    other.dtype = HVD_FLOAT64;
    differs(&other, "type");
    other = full;
    other.shape[1] = 7;
    differs(&other, "shape");
}

static void test_bytes(void)
{
    tap_ok(hvd_descriptor_bytes(&full) == 5 * 6 * 4,
           "the size counts the tensor's own type, not the wire type");
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)time(NULL));

    test_round_trip();
    test_cut();
    test_damage(seed);
    test_equal();
    test_bytes();
    return tap_done();
}
