/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a simulated job do. */
#include "tests/collectives/agreement_program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void program_add(struct program *program, struct call call)
{
    if ((program->count & (program->count - 1)) == 0) {
        size_t capacity = program->count > 0 ? 2 * (size_t)program->count : 1;

        program->calls = realloc(program->calls, capacity * sizeof(call));
    }
    program->calls[program->count++] = call;
}

void program_submit(struct program *program, int64_t elements, const char *format, ...)
{
    struct call call = {.kind = CALL_SUBMIT, .elements = elements};
    va_list args;

    va_start(args, format);
    vsnprintf(call.name, sizeof(call.name), format, args);
    va_end(args);
    program_add(program, call);
}

void program_wait(struct program *program)
{
    program_add(program, (struct call){.kind = CALL_WAIT});
}

void program_join(struct program *program)
{
    program_add(program, (struct call){.kind = CALL_JOIN});
    program_wait(program);
}

static void add_pending(struct program *program, struct hvd_request *request)
{
    program->pending = realloc(program->pending, (size_t)(program->pending_count + 1) *
                                                     sizeof(program->pending[0]));
    program->pending[program->pending_count++] = request;
}

static bool all_ended(struct program *program)
{
    for (int i = 0; i < program->pending_count; i++) {
        if (!sim_has_ended(program->pending[i])) {
            return false;
        }
    }
    return true;
}

static void collect(struct program *program)
{
    for (int i = 0; i < program->pending_count; i++) {
        struct hvd_request *request = program->pending[i];

        if (atomic_load(&request->status) != 0) {
            program->failures++;
            snprintf(program->failure, sizeof(program->failure), "%.250s",
                     request->error.text);
        } else if (request->value != 0) {
            program->value = request->value;
        }
        hvd_request_destroy(request);
    }
    program->pending_count = 0;
}

static bool wait_for_all(struct sim_rank *rank, struct program *program)
{
    for (int i = 0; i < program->pending_count; i++) {
        atomic_store(&program->pending[i]->is_asked_for, true);
    }
    rank->is_waited = !all_ended(program);
    if (rank->is_waited) {
        return false;
    }
    collect(program);
    return true;
}

/* Makes the next call; returns false when it cannot be made yet, or there is none. */
static bool advance(struct sim *sim, int rank, struct program *program)
{
    static const struct hvd_proposal join = {.kind = HVD_KIND_JOIN, .name = "hvd.join"};
    const struct call *call = &program->calls[program->at];

    if (program->at == program->count) {
        return false;
    }
    switch (call->kind) {
    case CALL_SUBMIT:
        add_pending(program, sim_submit(sim, rank, call->name, call->elements));
        break;
    case CALL_PROPOSE:
        add_pending(program, sim_submit_as(sim, rank, &call->proposal));
        break;
    case CALL_JOIN:
        add_pending(program, sim_submit_as(sim, rank, &join));
        break;
    case CALL_WAIT:
        if (!wait_for_all(&sim->ranks[rank], program)) {
            return false;
        }
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

bool programs_run(struct sim *sim, struct program *programs)
{
    const int64_t most_moves = 30000000;
    unsigned random = sim->seed;

    while (sim->fault[0] == '\0' && !all_done(sim, programs)) {
        bool moved = false;

        random = random * 1664525u + 1013904223u;
        for (int i = 0; i < sim->layout.size && (random >> 16) % 4 != 0; i++) {
            int rank = (int)(((random >> 8) + (unsigned)i) % (unsigned)sim->layout.size);

            if (advance(sim, rank, &programs[rank])) {
                moved = true;
                break;
            }
        }
        if (!moved && !sim_step(sim)) {
            for (int i = 0; i < sim->layout.size; i++) { /* begins, or ends, to wait */
                moved |= advance(sim, i, &programs[i]);
            }
            if (!moved && !sim_step(sim)) {
                sim_fault(sim, "nothing can happen any more");
            }
        }
        if (sim->moves > most_moves) {
            sim_fault(sim, "it does not come to an end");
        }
    }
    sim_settle(sim);
    return sim->fault[0] == '\0';
}

void programs_finish(struct program *programs, int count)
{
    for (int i = 0; i < count; i++) {
        free(programs[i].calls);
        free(programs[i].pending);
    }
    memset(programs, 0, (size_t)count * sizeof(programs[0]));
}
