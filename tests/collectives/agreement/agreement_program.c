/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and runs the programs of the ranks of a simulated job. */
#include "tests/collectives/agreement/agreement_program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/agreement_sim/agreement_sim_check.h"

/* --- writing programs --- */

static void add_call(struct program *program, struct call call)
{
    if ((program->count & (program->count - 1)) == 0) {
        size_t capacity = program->count > 0 ? 2 * (size_t)program->count : 1;

        program->calls = realloc(program->calls, capacity * sizeof(call));
    }
    program->calls[program->count++] = call;
}

void program_propose_group(struct program *program,
                           const struct hvd_descriptor *const *tensors, int count,
                           const struct ending *ending)
{
    struct call call = {.kind = CALL_SUBMIT, .count = count};

    if (ending != NULL) {
        call.ending = *ending;
    }
    call.tensors = calloc((size_t)count, sizeof(call.tensors[0]));
    for (int i = 0; i < count; i++) {
        call.tensors[i] = hvd_descriptor_copy(tensors[i]);
    }
    add_call(program, call);
}

void program_propose(struct program *program, const struct hvd_descriptor *tensor,
                     const struct ending *ending)
{
    program_propose_group(program, &tensor, 1, ending);
}

void program_submit(struct program *program, int64_t elements, const char *format, ...)
{
    char name[64];
    struct hvd_descriptor tensor;
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    tensor = sim_allreduce(name, elements);
    program_propose(program, &tensor, NULL);
}

void program_wait(struct program *program)
{
    add_call(program, (struct call){.kind = CALL_WAIT});
}

void program_wait_for(struct program *program, const char *name)
{
    add_call(program, (struct call){.kind = CALL_WAIT_FOR, .name = strdup(name)});
}

void program_start_join(struct program *program)
{
    static const struct hvd_descriptor join = {.kind = HVD_KIND_JOIN, .name = "hvd.join"};
    static const struct ending well = {.text = ""};

    program_propose(program, &join, &well);
}

void program_join(struct program *program)
{
    program_start_join(program);
    program_wait(program);
}

void program_submit_joined(struct program *program, const struct hvd_descriptor *tensor)
{
    static const struct ending refused = {.text = "after it had joined"};

    program_propose(program, tensor, &refused);
    program->calls[program->count - 1].kind = CALL_SUBMIT_JOINED;
}

void program_tune(struct program *program, int64_t threshold)
{
    add_call(program, (struct call){.kind = CALL_TUNE, .threshold = threshold});
}

void program_leave(struct program *program)
{
    add_call(program, (struct call){.kind = CALL_LEAVE});
}

void programs_finish(struct program *programs, int count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < programs[i].count; j++) {
            struct call *call = &programs[i].calls[j];

            for (int k = 0; k < call->count; k++) {
                hvd_descriptor_free(call->tensors[k]);
            }
            free(call->tensors);
            free(call->name);
        }
        for (int j = 0; j < programs[i].pending_count; j++) {
            hvd_request_drop(programs[i].pending[j].request);
        }
        free(programs[i].calls);
        free(programs[i].pending);
    }
    memset(programs, 0, (size_t)count * sizeof(programs[0]));
}

/* --- running programs --- */

static void submit(struct sim *sim, int rank, struct program *program,
                   const struct call *call)
{
    struct pending *added;

    for (int i = 0; i < call->count; i++) {
        struct hvd_descriptor *tensor = call->tensors[i];

        if (tensor->set == PROGRAM_LAST_SET) {
            tensor->set = (int32_t)program->value;
            /* the root of a removal is the number of the set */
            tensor->root = tensor->set;
        }
    }
    program->pending = realloc(program->pending, ((size_t)program->pending_count + 1) *
                                                     sizeof(program->pending[0]));
    added = &program->pending[program->pending_count++];
    added->ending = call->ending;
    added->request = sim_submit(
        sim, rank, (const struct hvd_descriptor *const *)call->tensors, call->count);
}

static bool has_joined(const struct program *program)
{
    for (int i = 0; i < program->pending_count; i++) {
        const struct hvd_request *request = program->pending[i].request;

        if (request->entries[0].descriptor.kind == HVD_KIND_JOIN) {
            return !sim_has_ended(request);
        }
    }
    return false;
}

static bool is_as_wanted(const struct sim *sim, const struct pending *pending)
{
    const struct hvd_request *request = pending->request;
    const char *wanted = pending->ending.text;
    int status = atomic_load(&request->status);

    if (pending->ending.may_be_aborted) {
        return status == 0 || status == HVD_ERR_ABORTED;
    }
    if (wanted == NULL || (sim->is_leaving && status == HVD_ERR_SHUTDOWN)) {
        return true;
    }
    if (status == 0 && pending->ending.has_value) {
        return wanted[0] == '\0' && request->value == pending->ending.value;
    }
    return wanted[0] == '\0' ? status == 0
                             : status != 0 && strstr(request->error.text, wanted) != NULL;
}

static void collect(struct sim *sim, int rank, struct program *program, int index)
{
    struct pending *pending = &program->pending[index];
    struct hvd_request *request = pending->request;

    if (!is_as_wanted(sim, pending)) {
        sim_fault(sim, "rank %d: %s has value %ld, status %d %.150s, wanted %.100s", rank,
                  request->entries[0].descriptor.name, (long)request->value,
                  request->error.status, request->error.text, pending->ending.text);
    }
    if (atomic_load(&request->status) != 0) {
        program->failures++;
        program->surprises +=
            pending->ending.text == NULL && !pending->ending.may_be_aborted ? 1 : 0;
        snprintf(program->failure, sizeof(program->failure), "%.250s",
                 request->error.text);
    } else if (request->value != 0) {
        program->value = request->value;
    }
    hvd_request_drop(request);
    *pending = program->pending[--program->pending_count];
}

static bool is_meant(const struct pending *pending, const char *name)
{
    for (int i = 0; name != NULL && i < pending->request->count; i++) {
        if (strcmp(pending->request->entries[i].descriptor.name, name) == 0) {
            return true;
        }
    }
    return name == NULL;
}

/* Returns false while a request with this name is in flight; if name is NULL, while any
 * request is. */
static bool wait_for(struct sim *sim, int rank, struct program *program, const char *name)
{
    bool is_done = true;

    for (int i = program->pending_count; i-- > 0;) {
        struct pending *pending = &program->pending[i];

        if (!is_meant(pending, name)) {
            continue;
        }
        atomic_store(&pending->request->is_asked_for, true);
        if (sim_has_ended(pending->request)) {
            collect(sim, rank, program, i);
        } else {
            is_done = false;
        }
    }
    sim_wait(sim, rank, !is_done);
    return is_done;
}

/* Makes the next call; returns false if it cannot be made yet, or if there is none. */
static bool advance(struct sim *sim, int rank, struct program *program)
{
    const struct call *call = &program->calls[program->at];

    if (program->at == program->count) {
        return false;
    }
    switch (call->kind) {
    case CALL_SUBMIT:
        submit(sim, rank, program, call);
        break;
    case CALL_SUBMIT_JOINED:
        if (has_joined(program)) {
            submit(sim, rank, program, call);
        }
        break;
    case CALL_WAIT:
    case CALL_WAIT_FOR:
        if (!wait_for(sim, rank, program, call->name)) {
            return false;
        }
        break;
    case CALL_TUNE:
        if (!sim->ranks[rank].has_left) {
            sim_tune(sim, call->threshold, 1000000);
        }
        break;
    case CALL_LEAVE:
        sim_leave(sim);
        break;
    }
    program->at++;
    return true;
}

static bool all_done(const struct sim *sim, const struct program *programs)
{
    for (int i = 0; i < sim->layout.size; i++) {
        if (programs[i].at < programs[i].count) {
            return false;
        }
    }
    return true;
}

static bool advance_any(struct sim *sim, struct program *programs)
{
    unsigned size = (unsigned)sim->layout.size, first = sim_draw(sim, size);

    for (unsigned i = 0; i < size; i++) {
        int rank = (int)((first + i) % size);

        if (advance(sim, rank, &programs[rank])) {
            return true;
        }
    }
    return false;
}

bool programs_run(struct sim *sim, struct program *programs)
{
    const int64_t most_moves = 30000000, patience_ns = 5000000000, pause_ns = 10000000;

    sim->last_end_ns = sim->now_ns;
    while (sim->fault[0] == '\0' && !all_done(sim, programs)) {
        bool moved = sim_draw(sim, 4) != 0 && advance_any(sim, programs);

        if (!moved && !sim_step(sim, pause_ns) && !advance_any(sim, programs) &&
            !sim_step(sim, patience_ns)) {
            sim_fault(sim, "nothing can happen any more");
        }
        if (sim->moves > most_moves || sim->now_ns - sim->last_end_ns > patience_ns) {
            sim_fault(sim, "it does not come to an end");
        }
    }
    sim_settle(sim);
    sim_check_rest(sim);
    return sim->fault[0] == '\0';
}
