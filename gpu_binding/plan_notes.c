/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the notes of a plan: sentences for the user on what is unusual about it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/base/number.h"
#include "gpu_binding/gpu_name.h"
#include "gpu_binding/plan_steps.h"

int hvd_plan_note(struct hvd_plan *plan, struct hvd_error *err, const char *format, ...)
{
    char **grown = realloc(plan->notes, ((size_t)plan->note_count + 1) * sizeof(*grown));
    char *note = NULL;
    va_list args;

    if (grown == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for the notes of the plan");
    }
    plan->notes = grown;
    va_start(args, format);
    int length = vasprintf(&note, format, args);
    va_end(args);
    if (length < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for the notes of the plan");
    }
    plan->notes[plan->note_count++] = note;
    return 0;
}

static int explain_row(struct hvd_plan_work *work, const struct hvd_plan_row *row,
                       struct hvd_error *err)
{
    char bus[24];

    if (row->gpu.gpu == HVD_NONE) {
        return 0;
    }
    hvd_gpu_short_bus(work->topology->gpus[row->gpu.gpu].bus, bus, sizeof(bus));
    if (row->is_far) {
        return hvd_plan_note(
            work->plan, err,
            "local rank %d: gpu %s is on socket %d, which the step may not "
            "use; bound to socket %d",
            row->local_rank, bus, row->gpu_socket, row->socket);
    }
    if (row->gpu_numa != HVD_NONE && row->memory_numa == HVD_NONE) {
        return hvd_plan_note(
            work->plan, err,
            "local rank %d: the step may not use memory node %d of gpu %s; "
            "the memory policy stays as it is",
            row->local_rank, row->gpu_numa, bus);
    }
    return 0;
}

static int count_rows(const struct hvd_plan *plan, int socket)
{
    int count = 0;

    for (int i = 0; i < plan->row_count; i++) {
        count += plan->rows[i].socket == socket;
    }
    return count;
}

static int explain_socket(struct hvd_plan_work *work, int socket, struct hvd_error *err)
{
    int ranks = count_rows(work->plan, socket);
    int cpus = hvd_topology_count_cpus(work->topology, &work->usable, socket);

    if (ranks == 0 && cpus > 0) {
        return hvd_plan_note(work->plan, err,
                             "socket %d is unused: no rank is bound there, %d cpu%s of "
                             "the step stay%s idle",
                             socket, cpus, hvd_number_plural(cpus), cpus == 1 ? "s" : "");
    }
    if (work->plan->mode == HVD_BIND_CORES && ranks > cpus) {
        return hvd_plan_note(
            work->plan, err,
            "socket %d: %d ranks share %d cpu%s: they slow each other down", socket,
            ranks, cpus, hvd_number_plural(cpus));
    }
    return 0;
}

/* Notes GPUs that Slurm counts but PCI does not show, and GPUs whose socket is
 * unknown. */
static int explain_unknown_gpus(struct hvd_plan_work *work, struct hvd_error *err)
{
    const struct hvd_gpu_list *gpus = &work->plan->gpus;
    int missing = 0;
    int placeless = 0;

    for (int i = 0; i < gpus->count; i++) {
        int gpu = gpus->items[i].gpu;

        missing += gpu == HVD_NONE;
        placeless += gpu != HVD_NONE && work->topology->gpus[gpu].socket == HVD_NONE;
    }
    if (missing + placeless == 0) {
        return 0;
    }
    return hvd_plan_note(
        work->plan, err, "%d of %d gpus %s: their ranks are spread over the sockets",
        missing + placeless, gpus->count,
        missing > 0 ? "are not found on PCI" : "are on an unknown socket");
}

static int explain_gpu_sharing(struct hvd_plan_work *work, struct hvd_error *err)
{
    int ranks = work->plan->row_count;
    int gpus = work->plan->gpus.count;

    if (gpus == 0 || ranks <= gpus) {
        return 0;
    }
    return hvd_plan_note(work->plan, err, "%d ranks share %d gpu%s", ranks, gpus,
                         hvd_number_plural(gpus));
}

static int explain_foreign_gpus(struct hvd_plan_work *work, struct hvd_error *err)
{
    const struct hvd_topology *topology = work->topology;

    if (topology->foreign_gpu_count == 0) {
        return 0;
    }
    return hvd_plan_note(work->plan, err,
                         "%d %s gpu%s not used: hvd supports NVIDIA gpus only",
                         topology->foreign_gpu_count, topology->foreign_gpu_vendor,
                         hvd_number_plural(topology->foreign_gpu_count));
}

int hvd_plan_explain(struct hvd_plan_work *work, struct hvd_error *err)
{
    int status = explain_gpu_sharing(work, err);

    if (status == 0) {
        status = explain_foreign_gpus(work, err);
    }
    if (work->plan->mode == HVD_BIND_NONE) {
        return status;
    }
    if (status == 0) {
        status = explain_unknown_gpus(work, err);
    }
    for (int i = 0; i < work->plan->row_count && status == 0; i++) {
        status = explain_row(work, &work->plan->rows[i], err);
    }
    for (int i = 0; i < work->topology->socket_count && status == 0; i++) {
        status = explain_socket(work, i, err);
    }
    return status;
}
