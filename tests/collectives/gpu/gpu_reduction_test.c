/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how a reduction is divided between NCCL and kernels, and when it must use host
 * memory. */
#include "collectives/gpu/gpu_reduction.h"
#include "tests/tap.h"

enum {
    RANKS = 4,
};

static struct hvd_descriptor descriptor(enum hvd_dtype dtype, enum hvd_op op,
                                        double prescale, double postscale)
{
    return (struct hvd_descriptor){.kind = HVD_KIND_ALLREDUCE,
                                   .dtype = dtype,
                                   .op = op,
                                   .prescale = prescale,
                                   .postscale = postscale};
}

static struct hvd_descriptor travelling(int wire, enum hvd_op op, double prescale,
                                        double postscale)
{
    struct hvd_descriptor wanted = descriptor(HVD_FLOAT32, op, prescale, postscale);

    wanted.wire = wire;
    return wanted;
}

/* Expects that packed tensors are scaled by kernels and added by NCCL without a factor,
 * and that NCCL scales if there are no kernels. */
static void is_scaled_in_the_pack(const char *promise, struct hvd_descriptor wanted,
                                  double factor)
{
    struct hvd_gpu_reduction reduction, packed, scaled;

    hvd_gpu_reduction_find(&wanted, RANKS, 22000, true, &reduction);
    packed = hvd_gpu_reduction_of_packed(&reduction, true);
    scaled = hvd_gpu_reduction_of_packed(&reduction, false);
    tap_ok(packed.within == 1.0 && packed.before == factor && packed.after == 1.0 &&
               packed.dtype == wanted.dtype && scaled.within == factor &&
               scaled.before == 1.0,
           "%s", promise);
}

/* Expects that the reduction needs kernels, and with kernels equals `expected`. */
static void needs_kernels_by(const char *promise, struct hvd_descriptor wanted,
                             int version, struct hvd_gpu_reduction expected)
{
    struct hvd_gpu_reduction reduction;
    bool goes_without =
        hvd_gpu_reduction_find(&wanted, RANKS, version, false, &reduction);
    bool goes = hvd_gpu_reduction_find(&wanted, RANKS, version, true, &reduction);

    tap_ok(!goes_without && goes && reduction.by_kernel &&
               reduction.dtype == expected.dtype && reduction.before == expected.before &&
               reduction.within == 1.0 && reduction.after == expected.after &&
               reduction.divisor == expected.divisor,
           "%s", promise);
}

static void needs_kernels(const char *promise, struct hvd_descriptor wanted, int version,
                          enum hvd_dtype dtype, double before, double after)
{
    const struct hvd_gpu_reduction expected = {
        .dtype = dtype, .before = before, .after = after, .divisor = 1};

    needs_kernels_by(promise, wanted, version, expected);
}

static void is_divided(const char *promise, struct hvd_descriptor wanted, double before,
                       double after)
{
    const struct hvd_gpu_reduction expected = {
        .dtype = wanted.dtype, .before = before, .after = after, .divisor = RANKS};

    needs_kernels_by(promise, wanted, 22000, expected);
}

/* Expects that NCCL alone does the reduction, even if there are kernels. */
static void is_plain(const char *promise, struct hvd_descriptor wanted, int version,
                     double within)
{
    struct hvd_gpu_reduction ways[2];
    bool good = true;

    for (int i = 0; i < 2; i++) {
        good &= hvd_gpu_reduction_find(&wanted, RANKS, version, i == 1, &ways[i]) &&
                !ways[i].by_kernel && ways[i].within == within && ways[i].before == 1.0 &&
                ways[i].after == 1.0 && ways[i].divisor == 1;
    }
    tap_ok(good && ways[0].dtype == ways[1].dtype, "%s", promise);
}

static void goes_not(const char *promise, struct hvd_descriptor wanted, int version)
{
    struct hvd_gpu_reduction reduction;

    tap_ok(!hvd_gpu_reduction_find(&wanted, RANKS, version, true, &reduction), "%s",
           promise);
}

static void goes_never(const char *promise, struct hvd_descriptor wanted)
{
    goes_not(promise, wanted, 22000);
}

int main(void)
{
    struct hvd_descriptor adasum = descriptor(HVD_FLOAT32, HVD_ADASUM, 1, 1);
    struct hvd_descriptor to_root = descriptor(HVD_INT16, HVD_SUM, 1, 1);

    adasum.kind = HVD_KIND_ADASUM;
    to_root.kind = HVD_KIND_REDUCE;
    goes_never("Adasum goes through host memory", adasum);
    goes_never("int16 goes through host memory", descriptor(HVD_INT16, HVD_SUM, 1, 1));
    goes_never("uint16 goes through host memory", descriptor(HVD_UINT16, HVD_MAX, 1, 1));
    goes_never("a reduce of int16 to one rank goes through host memory", to_root);
    goes_never("bitwise operations of integers go through host memory",
               descriptor(HVD_INT32, HVD_BAND, 1, 1));
    goes_never("\"xor\" of bool goes through host memory",
               descriptor(HVD_BOOL, HVD_BXOR, 1, 1));

    is_plain("a plain sum needs no factor", descriptor(HVD_FLOAT32, HVD_SUM, 1, 1), 20700,
             1);
    is_plain("factors that cancel out need no factor",
             descriptor(HVD_FLOAT16, HVD_SUM, 4096, 0x1p-12), 20700, 1);
    is_plain("NCCL 2.11 averages", descriptor(HVD_FLOAT16, HVD_AVERAGE, 1, 1), 21100,
             0.25);
    is_plain("NCCL 2.11 applies both factors", descriptor(HVD_FLOAT32, HVD_SUM, 3, 0.5),
             21100, 1.5);
    is_plain("NCCL 2.10 adds bfloat16", descriptor(HVD_BFLOAT16, HVD_SUM, 1, 1), 21000,
             1);
    is_plain("bool has no factor", descriptor(HVD_BOOL, HVD_SUM, 2, 3), 20700, 1);
    is_plain("NCCL does \"and\" of bool", descriptor(HVD_BOOL, HVD_BAND, 1, 1), 20700, 1);
    is_plain("NCCL does \"or\" of bool", descriptor(HVD_BOOL, HVD_BOR, 1, 1), 20700, 1);

    is_scaled_in_the_pack("kernels average while they pack",
                          descriptor(HVD_FLOAT16, HVD_AVERAGE, 1, 1), 0.25);
    is_scaled_in_the_pack("kernels apply both factors while they pack",
                          descriptor(HVD_FLOAT64, HVD_SUM, 3, 0.5), 1.5);

    needs_kernels("before NCCL 2.11 kernels average, in one pass",
                  descriptor(HVD_FLOAT16, HVD_AVERAGE, 1, 1), 21003, HVD_FLOAT16, 0.25,
                  1);
    needs_kernels("before NCCL 2.10 kernels convert bfloat16 to float32",
                  descriptor(HVD_BFLOAT16, HVD_SUM, 1, 1), 20906, HVD_FLOAT32, 1, 1);
    needs_kernels("before NCCL 2.10 a maximum of bfloat16 is converted, too",
                  descriptor(HVD_BFLOAT16, HVD_MAX, 1, 1), 20906, HVD_FLOAT32, 1, 1);
    needs_kernels("integers are scaled before and after",
                  descriptor(HVD_INT64, HVD_SUM, 0.5, 3), 22000, HVD_INT64, 0.5, 3);
    needs_kernels("integers are scaled twice even if the factors cancel out",
                  descriptor(HVD_INT64, HVD_SUM, 0.5, 2), 22000, HVD_INT64, 0.5, 2);
    is_divided("averages of integers are divided by the number of ranks",
               descriptor(HVD_INT32, HVD_AVERAGE, 1, 1), 1, 1);
    is_divided("averages of integers with factors are divided, too",
               descriptor(HVD_UINT64, HVD_AVERAGE, 0.5, 2), 0.5, 2);
    needs_kernels("a factor too small for float16 is applied in float32",
                  descriptor(HVD_FLOAT16, HVD_SUM, 1e-6, 0.5), 22000, HVD_FLOAT32, 1e-6,
                  0.5);
    needs_kernels("a factor too small for float32 is applied in float32",
                  descriptor(HVD_FLOAT32, HVD_SUM, 1e-30, 1e-20), 22000, HVD_FLOAT32,
                  1e-30, 1e-20);
    needs_kernels("a maximum of scaled numbers needs kernels",
                  descriptor(HVD_FLOAT32, HVD_MAX, -2, 3), 22000, HVD_FLOAT32, -2, 3);

    needs_kernels("kernels round to the wire type, after the factors",
                  travelling(HVD_BFLOAT16, HVD_AVERAGE, 3, 1), 22000, HVD_BFLOAT16, 0.75,
                  1);
    needs_kernels("for float16 the division by the number of ranks comes last",
                  travelling(HVD_FLOAT16, HVD_AVERAGE, 3, 1), 22000, HVD_FLOAT16, 3,
                  0.25);
    needs_kernels("kernels round to the wire type without a factor, too",
                  travelling(HVD_BFLOAT16, HVD_SUM, 1, 1), 22000, HVD_BFLOAT16, 1, 1);
    needs_kernels("factors that would underflow together are applied one by one",
                  travelling(HVD_FLOAT16, HVD_SUM, 4, 1e-6), 22000, HVD_FLOAT16, 4, 1e-6);
    goes_not("the wire type bfloat16 goes through host memory before NCCL 2.10",
             travelling(HVD_BFLOAT16, HVD_SUM, 1, 1), 20906);
    return tap_done();
}
