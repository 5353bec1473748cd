/* SPDX-License-Identifier: Apache-2.0 */
/* Horovod's checks of descriptors: the exact text of each error, and which error comes
 * first if several apply. */
#include "collectives/agreement/validate.h"

#include <string.h>

#include "tests/tap.h"

/* Changes to an allreduce (sum, float32) of [2, 3] on the CPU. */
struct trial {
    const char *promise;
    const char *message; /* NULL: the check passes */
    struct hvd_descriptor one;
    struct hvd_descriptor other;
};

#define TENSOR(...)                                                                      \
    {                                                                                    \
        .kind = HVD_KIND_ALLREDUCE, .dtype = HVD_FLOAT32, .op = HVD_SUM, .prescale = 1,  \
        .postscale = 1, .ndim = 2, .shape = {2, 3}, .device = HVD_DEVICE_CPU,            \
        .name = "t", .note = "", __VA_ARGS__                                             \
    }
#define BOTH(...) TENSOR(__VA_ARGS__), TENSOR(__VA_ARGS__)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const struct trial trials[] = {
    {"equal descriptions are fine", NULL, BOTH(.op = HVD_SUM)},
    {"1: types",
     "Mismatched data types: One rank had type float32, but another rank had type "
     "float16.",
     TENSOR(.ndim = 2), TENSOR(.dtype = HVD_FLOAT16)},
    {"2: operations",
     "Mismatched operations: One rank did an ALLREDUCE, but another rank did an "
     "ALLGATHER.",
     TENSOR(.ndim = 2), TENSOR(.kind = HVD_KIND_ALLGATHER)},
    {"3: shapes of allreduce",
     "Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [2, 3], but "
     "another "
     "rank sent a tensor of shape [2, 4].",
     TENSOR(.ndim = 2), TENSOR(.shape = {2, 4})},
    {"3: as many elements are not the same shape",
     "Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [2, 3], but "
     "another "
     "rank sent a tensor of shape [6].",
     TENSOR(.ndim = 2), TENSOR(.ndim = 1, .shape = {6})},
    {"3: a scalar is not a vector of one element",
     "Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [], but "
     "another rank "
     "sent a tensor of shape [1].",
     TENSOR(.ndim = 0), TENSOR(.ndim = 1, .shape = {1})},
    {"3: shapes of Adasum",
     "Mismatched ADASUM tensor shapes: One rank sent a tensor of shape [2, 3], but "
     "another rank "
     "sent a tensor of shape [2, 4].",
     TENSOR(.kind = HVD_KIND_ADASUM), TENSOR(.kind = HVD_KIND_ADASUM, .shape = {2, 4})},
    {"3: shapes of broadcast",
     "Mismatched BROADCAST tensor shapes: One rank sent a tensor of shape [2, 3], but "
     "another "
     "rank sent a tensor of shape [2, 4].",
     TENSOR(.kind = HVD_KIND_BROADCAST),
     TENSOR(.kind = HVD_KIND_BROADCAST, .shape = {2, 4})},
    {"3: shapes of reducescatter",
     "Mismatched REDUCESCATTER tensor shapes: One rank sent a tensor of shape [2, 3], "
     "but "
     "another rank sent a tensor of shape [3, 3].",
     TENSOR(.kind = HVD_KIND_REDUCESCATTER),
     TENSOR(.kind = HVD_KIND_REDUCESCATTER, .shape = {3, 3})},
    {"4: scale factors",
     "Mismatched prescale and/or postscale factors: One rank sent factors (1, 0.5), but "
     "another "
     "rank sent factors (0.25, 1).",
     TENSOR(.postscale = 0.5), TENSOR(.prescale = 0.25)},
    {"4: those of a broadcast do not count", NULL, TENSOR(.kind = HVD_KIND_BROADCAST),
     TENSOR(.kind = HVD_KIND_BROADCAST, .postscale = 0.5)},
    {"5: reduction operation",
     "Mismatched reduction operation: One rank sent reduction op 1, but another rank "
     "sent "
     "reduction op 3.",
     TENSOR(.op = HVD_SUM), TENSOR(.op = HVD_MIN)},
    {"5: wire types",
     "Mismatched wire types: One rank sends tensor t as bfloat16, but another rank sends "
     "it as float16. All ranks must use the same wire type.",
     TENSOR(.wire = HVD_BFLOAT16), TENSOR(.wire = HVD_FLOAT16)},
    {"5: a wire type of one rank alone",
     "Mismatched wire types: One rank sends tensor t as float32, but another rank sends "
     "it as float16. All ranks must use the same wire type.",
     TENSOR(.ndim = 2), TENSOR(.wire = HVD_FLOAT16)},
    {"5: equal wire types are fine", NULL, BOTH(.wire = HVD_FLOAT16)},
    {"8: a scalar to gather",
     "Process-set rank zero tried to ALLGATHER a rank-zero tensor.",
     BOTH(.kind = HVD_KIND_ALLGATHER, .ndim = 0)},
    {"8: a scalar for alltoall",
     "Process-set rank zero tried to ALLTOALL a rank-zero tensor.",
     BOTH(.kind = HVD_KIND_ALLTOALL, .ndim = 0)},
    {"3: shapes of reduce",
     "Mismatched REDUCE tensor shapes: One rank sent a tensor of shape [2, 3], but "
     "another rank sent a tensor of shape [3, 3].",
     TENSOR(.kind = HVD_KIND_REDUCE), TENSOR(.kind = HVD_KIND_REDUCE, .shape = {3, 3})},
    {"3: ranks gather rows of their own", NULL, TENSOR(.kind = HVD_KIND_GATHER),
     TENSOR(.kind = HVD_KIND_GATHER, .shape = {5, 3})},
    {"5: reduction operation of reduce",
     "Mismatched reduction operation: One rank sent reduction op 1, but another rank "
     "sent reduction op 3.",
     TENSOR(.kind = HVD_KIND_REDUCE, .op = HVD_SUM),
     TENSOR(.kind = HVD_KIND_REDUCE, .op = HVD_MIN)},
    {"8: a scalar for the root to scatter",
     "Process-set rank zero tried to SCATTER a rank-zero tensor.",
     BOTH(.kind = HVD_KIND_SCATTER, .ndim = 0)},
    {"10: roots of gather",
     "Mismatched GATHER root ranks: One rank specified root rank 0, but another rank "
     "specified root rank 1.",
     TENSOR(.kind = HVD_KIND_GATHER), TENSOR(.kind = HVD_KIND_GATHER, .root = 1)},
    {"8: a scalar to scatter",
     "Process-set rank zero tried to REDUCESCATTER a rank-zero tensor.",
     BOTH(.kind = HVD_KIND_REDUCESCATTER, .ndim = 0)},
    {"9: number of dimensions",
     "Mismatched ALLGATHER tensor shapes: One rank sent a tensor of rank 2, but another "
     "rank "
     "sent a tensor of rank 1.",
     TENSOR(.kind = HVD_KIND_ALLGATHER), TENSOR(.kind = HVD_KIND_ALLGATHER, .ndim = 1)},
    {"10: dimensions after the first",
     "Mismatched ALLTOALL tensor shapes: One rank sent a tensor with dimension 1 equal "
     "to 3, "
     "but another rank sent a tensor with dimension 1 equal to 4.",
     TENSOR(.kind = HVD_KIND_ALLTOALL),
     TENSOR(.kind = HVD_KIND_ALLTOALL, .shape = {2, 4})},
    {"10: the first may differ", NULL, TENSOR(.kind = HVD_KIND_ALLGATHER),
     TENSOR(.kind = HVD_KIND_ALLGATHER, .shape = {7, 3})},
    {"14: root",
     "Mismatched BROADCAST root ranks: One rank specified root rank 0, but another rank "
     "specified root rank 2.",
     TENSOR(.kind = HVD_KIND_BROADCAST, .root = 0),
     TENSOR(.kind = HVD_KIND_BROADCAST, .root = 2)},
    {"15: CPU and GPU",
     "Mismatched ALLREDUCE CPU/GPU device selection: One rank specified device CPU, but "
     "another "
     "rank specified device GPU.",
     TENSOR(.device = HVD_DEVICE_CPU), TENSOR(.device = 0)},
    {"15: two GPUs need not be the same", NULL, TENSOR(.device = 0), TENSOR(.device = 1)},
    {"types go before operations",
     "Mismatched data types: One rank had type float64, but another rank had type "
     "float32.",
     TENSOR(.dtype = HVD_FLOAT64), TENSOR(.kind = HVD_KIND_BROADCAST)},
    {"shapes go before factors",
     "Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [2, 3], but "
     "another "
     "rank sent a tensor of shape [2, 4].",
     TENSOR(.prescale = 2), TENSOR(.shape = {2, 4})},
    {"factors go before the operation",
     "Mismatched prescale and/or postscale factors: One rank sent factors (1, 1), but "
     "another "
     "rank sent factors (2, 1).",
     TENSOR(.op = HVD_MAX), TENSOR(.prescale = 2)},
    {"the operation goes before the wire type",
     "Mismatched reduction operation: One rank sent reduction op 1, but another rank "
     "sent reduction op 0.",
     TENSOR(.wire = HVD_FLOAT16), TENSOR(.op = HVD_AVERAGE)},
    {"the root goes before the device",
     "Mismatched BROADCAST root ranks: One rank specified root rank 0, but another rank "
     "specified root rank 1.",
     TENSOR(.kind = HVD_KIND_BROADCAST, .device = 0),
     TENSOR(.kind = HVD_KIND_BROADCAST, .root = 1)},
    {"no note is an empty one", NULL, TENSOR(.note = NULL), TENSOR(.ndim = 2)},
    {"two missing notes are equal", NULL, BOTH(.note = NULL)},
};

/* Checks beside a rank that has joined. */
static const struct trial join_trials[] = {
    {"6: allgather beside a join",
     "Allgather is not supported with Join at this time. Specify sparse_to_dense=True if "
     "using "
     "DistributedOptimizer",
     BOTH(.kind = HVD_KIND_ALLGATHER)},
    {"7: alltoall beside a join", "Alltoall is not supported with Join at this time.",
     BOTH(.kind = HVD_KIND_ALLTOALL)},
    {"11: reducescatter beside a join",
     "Reducescatter is not supported with Join at this time.",
     BOTH(.kind = HVD_KIND_REDUCESCATTER)},
    {"13: broadcast beside a join", "Broadcast is not supported with Join at this time.",
     BOTH(.kind = HVD_KIND_BROADCAST)},
    {"a reduce beside a join",
     "REDUCE is not supported with Join: a rank that has joined takes no part in it.",
     BOTH(.kind = HVD_KIND_REDUCE)},
    {"a gather beside a join",
     "GATHER is not supported with Join: a rank that has joined takes no part in it.",
     BOTH(.kind = HVD_KIND_GATHER)},
    {"a sum beside a join is fine", NULL, BOTH(.op = HVD_SUM)},
    {"a minimum beside a join fails",
     "Allreduce with op Min is not supported with Join: zeros of a rank that has joined "
     "would change the result. Use Sum or Average.",
     BOTH(.op = HVD_MIN)},
    {"a bitwise and beside a join fails",
     "Allreduce with op Bitwise and is not supported with Join: zeros of a rank that has "
     "joined would change the result. Use Sum or Average.",
     BOTH(.op = HVD_BAND)},
    {"a join goes before a scalar", "Alltoall is not supported with Join at this time.",
     BOTH(.kind = HVD_KIND_ALLTOALL, .ndim = 0)},
};
#pragma GCC diagnostic pop

/* Horovod's sentence comes first; after it, the tensor and the values of two ranks. */
static bool begins(const char *text, const char *sentence)
{
    size_t bytes = strlen(sentence);

    return strncmp(text, sentence, bytes) == 0 &&
           strncmp(text + bytes, " Tensor t: rank ", 16) == 0;
}

static void try(const struct trial *trial, bool has_joined)
{
    struct hvd_descriptor one = trial->one, other = trial->other;
    struct hvd_descriptor *descriptions[] = {&one, &other};
    const struct hvd_ready_tensor ready_tensor = {
        .descriptions = descriptions, .described = 2, .is_partial = has_joined};
    struct hvd_error err = {0};
    int status = hvd_validate(&ready_tensor, &err);
    bool good = trial->message == NULL
                    ? status == 0
                    : status == HVD_ERR_MISMATCH && begins(err.text, trial->message);

    if (!tap_ok(good, "%s", trial->promise)) {
        tap_note("status %d: %s", status, err.text);
    }
}

/* The first descriptor is compared with every other one, and a cached tensor counts as
 * the first. */
static void test_many(void)
{
    struct hvd_descriptor same = trials[0].one, wrong = trials[1].other;
    struct hvd_descriptor *descriptions[] = {&same, &same, &same, &wrong};
    struct hvd_cached_tensor cached = {.descriptor = &same};
    struct hvd_ready_tensor ready_tensor = {.descriptions = descriptions, .described = 4};
    struct hvd_error err = {0};

    tap_ok(hvd_validate(&ready_tensor, &err) == HVD_ERR_MISMATCH &&
               begins(err.text, trials[1].message),
           "the fourth descriptor is compared, too");
    tap_ok(hvd_validate_pair(&cached, &wrong, &err) == HVD_ERR_MISMATCH &&
               begins(err.text, trials[1].message) &&
               hvd_validate_pair(&cached, &same, NULL) == 0,
           "a cached tensor is compared with the same message");
}

struct behind {
    const char *text;
    struct hvd_descriptor one;
    struct hvd_descriptor other;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const struct behind behinds[] = {
    {"rank 3 has float32, rank 5 has float16.", TENSOR(.rank = 3),
     TENSOR(.rank = 5, .dtype = HVD_FLOAT16)},
    {"rank 3 has ALLREDUCE, rank 5 has ALLGATHER.", TENSOR(.rank = 3),
     TENSOR(.rank = 5, .kind = HVD_KIND_ALLGATHER)},
    {"rank 3 has [2, 3], rank 5 has [2, 4].", TENSOR(.rank = 3),
     TENSOR(.rank = 5, .shape = {2, 4})},
    {"rank 3 has factors (1, 1), rank 5 has factors (0.5, 1).", TENSOR(.rank = 3),
     TENSOR(.rank = 5, .prescale = 0.5)},
    {"rank 3 has op=Sum, rank 5 has op=Average.", TENSOR(.rank = 3),
     TENSOR(.rank = 5, .op = HVD_AVERAGE)},
    {"rank 3 has wire type float32, rank 5 has wire type float16.", TENSOR(.rank = 3),
     TENSOR(.rank = 5, .wire = HVD_FLOAT16)},
    {"rank 3 has ranks [0,1], rank 5 has ranks [0,2].",
     TENSOR(.rank = 3, .kind = HVD_KIND_SET_ADD, .note = "0,1"),
     TENSOR(.rank = 5, .kind = HVD_KIND_SET_ADD, .note = "0,2")},
    {"rank 3 has process set 1, rank 5 has process set 2.",
     TENSOR(.rank = 3, .kind = HVD_KIND_SET_REMOVE, .root = 1),
     TENSOR(.rank = 5, .kind = HVD_KIND_SET_REMOVE, .root = 2)},
    {"rank 3 has [2, 3], rank 5 has [2, 4].",
     TENSOR(.rank = 3, .kind = HVD_KIND_ALLGATHER),
     TENSOR(.rank = 5, .kind = HVD_KIND_ALLGATHER, .shape = {2, 4})},
    {"rank 3 has root rank 0, rank 5 has root rank 1.",
     TENSOR(.rank = 3, .kind = HVD_KIND_BROADCAST),
     TENSOR(.rank = 5, .kind = HVD_KIND_BROADCAST, .root = 1)},
    {"rank 3 has CPU, rank 5 has GPU.", TENSOR(.rank = 3),
     TENSOR(.rank = 5, .device = 0)},
};
#pragma GCC diagnostic pop

static void test_behind(void)
{
    for (size_t i = 0; i < sizeof(behinds) / sizeof(behinds[0]); i++) {
        struct hvd_descriptor one = behinds[i].one, other = behinds[i].other;
        struct hvd_descriptor *descriptions[] = {&one, &one, &other};
        const struct hvd_ready_tensor ready_tensor = {.descriptions = descriptions,
                                                      .described = 3};
        struct hvd_error err = {0};
        int status = hvd_validate(&ready_tensor, &err);
        const char *behind = strstr(err.text, " Tensor t: ");

        tap_ok(status == HVD_ERR_MISMATCH && behind != NULL &&
                   strcmp(behind + 11, behinds[i].text) == 0,
               "appended to the sentence: %s", behinds[i].text);
    }
}

static void test_shapes(void)
{
    const int64_t shape[] = {1, 20, 300};
    char text[16], small[8];

    hvd_shape_format(shape, 3, text, sizeof(text));
    hvd_shape_format(shape, 3, small, sizeof(small));
    tap_ok(strcmp(text, "[1, 20, 300]") == 0 && strlen(small) < sizeof(small),
           "a shape is written like a Python list, and cut if there is no room");
}

int main(void)
{
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        try(&trials[i], false);
    }
    for (size_t i = 0; i < sizeof(join_trials) / sizeof(join_trials[0]); i++) {
        try(&join_trials[i], true);
    }
    test_many();
    test_behind();
    test_shapes();
    return tap_done();
}
