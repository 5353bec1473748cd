/* SPDX-License-Identifier: Apache-2.0 */
/* Random collectives, the same on all ranks. */
#include "tests/collectives/soak/soak_call.h"

#include <stdio.h>
#include <string.h>

#include "tests/collectives/rank_values.h"
#include "tests/collectives/test_case.h"

static const char *const kind_names[SOAK_KINDS] = {
    "allreduce", "adasum",        "allgather", "broadcast",
    "alltoall",  "reducescatter", "barrier"};

struct soak_random soak_seeded(uint64_t seed, uint64_t stream)
{
    return (struct soak_random){seed * 0x9e3779b97f4a7c15u ^
                                (stream + 1) * 0xd1342543de82ef95u};
}

uint32_t soak_pick(struct soak_random *random, uint32_t below)
{
    random->state++;
    return value_random((uint32_t)random->state, (int)(random->state >> 48),
                        (int64_t)(random->state >> 16)) %
           below;
}

bool soak_chance(struct soak_random *random, uint32_t one_in)
{
    return soak_pick(random, one_in) == 0;
}

/* --- drawing --- */

static int64_t draw_elements(struct soak_random *random, uint32_t large)
{
    uint32_t most = soak_chance(random, large) ? 1u << 20
                    : soak_chance(random, 6)   ? 1u << 15
                                               : 600;

    return soak_chance(random, 12) ? 0 : 1 + soak_pick(random, most);
}

static void draw_scale(struct soak_random *random, struct soak_call *call)
{
    bool scales =
        soak_chance(random, 4) && call->op != HVD_PRODUCT && call->dtype != HVD_BOOL;

    call->prescale = !scales ? 1 : soak_chance(random, 2) ? 0.5 : 3;
    call->postscale = !scales || soak_chance(random, 4) ? 1 : 0.25;
}

static void draw_reduction(struct soak_random *random, struct soak_call *call, int count)
{
    static const enum hvd_dtype floats[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                            HVD_FLOAT64};
    static const enum hvd_op ops[] = {HVD_SUM, HVD_AVERAGE, HVD_MIN, HVD_MAX,
                                      HVD_PRODUCT};
    bool scatters = call->kind == SOAK_REDUCESCATTER;

    call->op = ops[soak_pick(random, scatters ? 2 : 5)];
    if (call->op == HVD_AVERAGE && call->dtype == HVD_BOOL) {
        call->op = HVD_SUM;
    }
    if (call->kind == SOAK_ADASUM) {
        bool possible = (count & (count - 1)) == 0;

        call->kind = possible ? SOAK_ADASUM : SOAK_ALLREDUCE;
        call->op = possible ? HVD_ADASUM : HVD_SUM;
        call->dtype = floats[soak_pick(random, 4)];
    } else {
        draw_scale(random, call);
    }
}

static bool is_reduction(enum soak_kind kind)
{
    return kind == SOAK_ALLREDUCE || kind == SOAK_ADASUM || kind == SOAK_REDUCESCATTER;
}

struct soak_call soak_draw(struct soak_random *random, int slot, int count,
                           uint32_t large)
{
    static const enum soak_kind kinds[] = {
        SOAK_ALLREDUCE, SOAK_ALLREDUCE, SOAK_ALLREDUCE, SOAK_ALLREDUCE,     SOAK_ADASUM,
        SOAK_ALLGATHER, SOAK_BROADCAST, SOAK_ALLTOALL,  SOAK_REDUCESCATTER, SOAK_BARRIER};
    struct soak_call call = {
        .kind = kinds[soak_pick(random, sizeof(kinds) / sizeof(kinds[0]))],
        .dtype = (enum hvd_dtype)soak_pick(random, HVD_DTYPE_COUNT),
        .op = HVD_SUM,
        .prescale = 1,
        .postscale = 1,
        .slot = slot,
        .tensors = 1,
        .row = 1 + soak_pick(random, 3),
        .root = (int)soak_pick(random, (uint32_t)count),
        .seed = soak_pick(random, 1u << 30),
    };

    if (is_reduction(call.kind)) {
        draw_reduction(random, &call, count);
    }
    if ((is_reduction(call.kind) || call.kind == SOAK_ALLGATHER) &&
        soak_chance(random, 4)) {
        call.tensors = 2 + (int)soak_pick(random, SOAK_TENSORS - 1);
    }
    for (int i = 0; i < call.tensors; i++) {
        call.rows[i] = draw_elements(random, large) / call.row;
    }
    return call;
}

struct soak_call soak_draw_gradient(struct soak_random *random)
{
    static const enum hvd_dtype dtypes[] = {HVD_FLOAT32, HVD_FLOAT32, HVD_FLOAT16,
                                            HVD_BFLOAT16, HVD_INT64};
    struct soak_call call = {
        .kind = SOAK_ALLREDUCE,
        .dtype = dtypes[soak_pick(random, 5)],
        .op = soak_chance(random, 3) ? HVD_SUM : HVD_AVERAGE,
        .prescale = 1,
        .postscale = 1,
        .tensors = 1,
        .row = 1,
        .seed = soak_pick(random, 1u << 30),
    };

    call.rows[0] = 1 + soak_pick(random, soak_chance(random, 10) ? 600000 : 3000);
    return call;
}

/* --- faults --- */

static bool can_fail_so(const struct soak_call *call, enum soak_fault fault)
{
    bool reduces = is_reduction(call->kind);

    switch (fault) {
    case SOAK_OTHER_DTYPE:
    case SOAK_OTHER_SHAPE:
        return call->kind != SOAK_ADASUM;
    case SOAK_OTHER_OP:
        return reduces && call->kind != SOAK_ADASUM && call->dtype != HVD_BOOL;
    case SOAK_OTHER_SCALE:
        return reduces && call->kind != SOAK_ADASUM;
    case SOAK_OTHER_ROOT:
        return call->kind == SOAK_BROADCAST;
    case SOAK_OTHER_KIND:
        return call->kind == SOAK_BROADCAST || call->kind == SOAK_ALLREDUCE;
    default:
        return false;
    }
}

void soak_draw_fault(struct soak_random *random, int count, struct soak_call *call)
{
    enum soak_fault fault = (enum soak_fault)(1 + soak_pick(random, SOAK_JOINED - 1));
    int culprit = (int)soak_pick(random, (uint32_t)count);

    if (count > 1 && call->kind != SOAK_BARRIER && can_fail_so(call, fault)) {
        call->fault = fault;
        call->culprit = culprit;
    }
}

struct soak_call soak_spoilt(const struct soak_call *call, int count)
{
    struct soak_call other = *call;
    bool by_rows = call->kind == SOAK_ALLGATHER || call->kind == SOAK_ALLTOALL;

    switch (call->fault) {
    case SOAK_OTHER_DTYPE:
        other.dtype = call->dtype == HVD_FLOAT32 ? HVD_FLOAT64 : HVD_FLOAT32;
        break;
    case SOAK_OTHER_SHAPE:
        other.row += by_rows ? 1 : 0;
        other.rows[0] += by_rows ? 0 : 1;
        break;
    case SOAK_OTHER_OP:
        other.op = call->op == HVD_SUM ? HVD_AVERAGE : HVD_SUM;
        break;
    case SOAK_OTHER_SCALE:
        other.postscale += 0.5;
        break;
    case SOAK_OTHER_ROOT:
        other.root = (call->root + 1) % count;
        break;
    case SOAK_OTHER_KIND:
        other.kind = call->kind == SOAK_BROADCAST ? SOAK_ALLGATHER : SOAK_REDUCESCATTER;
        other.op = HVD_SUM;
        break;
    default:
        break;
    }
    return other;
}

const char *soak_fault_text(const struct soak_call *call)
{
    static const char *const texts[SOAK_FAULTS] = {
        [SOAK_OTHER_DTYPE] = "Mismatched data types: One rank had type ",
        [SOAK_OTHER_SHAPE] = "Mismatched ",
        [SOAK_OTHER_OP] = "Mismatched reduction operation: One rank sent ",
        [SOAK_OTHER_SCALE] = "Mismatched prescale and/or postscale factors: ",
        [SOAK_OTHER_ROOT] = "Mismatched BROADCAST root ranks: One rank ",
        [SOAK_OTHER_KIND] = "Mismatched operations: One rank did an ",
    };

    if (call->fault != SOAK_JOINED) {
        return texts[call->fault];
    }
    switch (call->kind) {
    case SOAK_ALLGATHER:
        return "Allgather is not supported with Join";
    case SOAK_BROADCAST:
        return "Broadcast is not supported with Join";
    case SOAK_ALLTOALL:
        return "Alltoall is not supported with Join";
    case SOAK_REDUCESCATTER:
        return "Reducescatter is not supported with Join";
    default:
        return "Allreduce with op ";
    }
}

/* --- values --- */

int32_t soak_split(const struct soak_call *call, int from, int to)
{
    uint32_t most = (uint32_t)(call->rows[0] / 2) + 1;

    return (int32_t)(value_random(call->seed, from, -100 - to) % most);
}

int64_t soak_rows(const struct soak_call *call, int tensor, int member)
{
    uint32_t most = (uint32_t)(call->rows[tensor] / 2) + 1;

    return call->kind == SOAK_ALLGATHER
               ? value_random(call->seed, member, -7 - tensor) % most
               : call->rows[tensor];
}

double soak_value(const struct soak_call *call, int tensor, int member, int64_t index)
{
    int who = call->kind == SOAK_ADASUM ? 0 : member;
    enum hvd_op op = call->kind == SOAK_ADASUM ? HVD_SUM : call->op;

    return value_of(call->seed + 7919u * (uint32_t)tensor, who, index % SOAK_PERIOD,
                    call->dtype, op);
}

static struct test_case case_of(const struct soak_call *call, int tensor)
{
    return (struct test_case){.seed = call->seed + 7919u * (uint32_t)tensor,
                              .dtype = call->dtype,
                              .op = call->op,
                              .prescale = call->prescale,
                              .postscale = call->postscale};
}

double soak_reduced(const struct soak_call *call, int tensor, int count, int64_t index)
{
    struct test_case c = case_of(call, tensor);
    double sum = 0;

    if (call->kind == SOAK_ADASUM) {
        return soak_value(call, tensor, 0, index);
    }
    if (call->joined == 0) {
        return case_reduced(&c, count, index % SOAK_PERIOD);
    }
    for (int i = 0; i < count; i++) {
        sum += (call->joined >> i & 1) != 0 ? 0 : soak_value(call, tensor, i, index);
    }
    if (call->op == HVD_AVERAGE) {
        sum *= 1.0 / count;
        sum = value_is_float(call->dtype) ? sum : (double)(int64_t)sum;
    }
    return value_wrap(call->dtype, sum);
}

void soak_fill(const struct soak_call *call, int tensor, int member, void *array,
               int64_t count)
{
    int64_t bytes = (int64_t)hvd_dtype_bytes(call->dtype);
    int64_t first = count < SOAK_PERIOD ? count : SOAK_PERIOD;
    char *at = array;

    for (int64_t i = 0; i < first; i++) {
        value_store(call->dtype, array, i, soak_value(call, tensor, member, i));
    }
    for (int64_t done = first; done < count;) {
        int64_t some = done < count - done ? done : count - done;

        memcpy(at + done * bytes, at, (size_t)(some * bytes));
        done += some;
    }
}

bool soak_holds(const struct soak_call *call, int tensor, soak_source *value, int who,
                const void *array, int64_t begin, int64_t count)
{
    struct test_case c = case_of(call, tensor);
    int64_t bytes = (int64_t)hvd_dtype_bytes(call->dtype);
    int64_t first = count < SOAK_PERIOD ? count : SOAK_PERIOD;

    for (int64_t i = 0; i < first; i++) {
        double expected = value(call, tensor, who, begin + i);
        double got = value_load(call->dtype, array, i);

        if (!case_is_close(&c, SOAK_RANKS, expected, got)) {
            fprintf(stderr, "# element %lld is %.9g, expected %.9g\n",
                    (long long)(begin + i), got, expected);
            return false;
        }
    }
    if (count > first && memcmp((const char *)array + first * bytes, array,
                                (size_t)((count - first) * bytes)) != 0) {
        fprintf(stderr, "# an element after the first %lld is wrong\n", (long long)first);
        return false;
    }
    return true;
}

const char *soak_describe(const struct soak_call *call)
{
    static _Thread_local char text[200];

    snprintf(text, sizeof(text),
             "%s %s (seed %u, %s, op %d, scales %g %g, set slot %d, %d tensors, "
             "%lld x %lld, root %d, joined %x, fault %d of %d)",
             kind_names[call->kind], call->name, call->seed, hvd_dtype_name(call->dtype),
             call->op, call->prescale, call->postscale, call->slot, call->tensors,
             (long long)call->rows[0], (long long)call->row, call->root, call->joined,
             call->fault, call->culprit);
    return text;
}
