/* SPDX-License-Identifier: Apache-2.0 */
/* One line per rank of a plan, the notes, and everything together as text. */
#include "gpu_binding/table.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/cpulist.h"

#define CELL 24
#define CPUS_COLUMN 16

/* A number, or "-" for none. */
static const char *cell(int number, char text[CELL])
{
    snprintf(text, CELL, number == HVD_NONE ? "-" : "%d", number);
    return text;
}

static int cpus_width(const struct hvd_plan *plan)
{
    size_t width = CPUS_COLUMN;

    for (int i = 0; i < plan->row_count; i++) {
        size_t length = hvd_cpulist_format(&plan->rows[i].cpus, NULL, 0);

        width = length > width ? length : width;
    }
    return (int)width;
}

static void print_row(const struct hvd_topology *topology, const struct hvd_plan_row *row,
                      int width, FILE *out)
{
    const char *bus = row->gpu.gpu == HVD_NONE ? "-" : topology->gpus[row->gpu.gpu].bus;
    char gpu[CELL];
    char node[CELL];
    char socket[CELL];
    char memory[CELL];
    char *cpus = malloc((size_t)width + 1);

    if (cpus == NULL) {
        return;
    }
    hvd_cpulist_format(&row->cpus, cpus, (size_t)width + 1);
    fprintf(out, "%10d %3s %-12s %4s %6s %5d %-*s %3s  %s\n", row->local_rank,
            cell(row->gpu.number, gpu), bus, cell(row->gpu_numa, node),
            cell(row->socket, socket), row->core_count, width, cpus,
            cell(row->memory_numa, memory), row->nic[0] != '\0' ? row->nic : "-");
    free(cpus);
}

void hvd_table_print(const struct hvd_topology *topology, const struct hvd_plan *plan,
                     FILE *out)
{
    int width = cpus_width(plan);

    fprintf(out, "local rank gpu pci          node socket cores %-*s mem  nic\n", width,
            "cpus");
    for (int i = 0; i < plan->row_count; i++) {
        print_row(topology, &plan->rows[i], width, out);
    }
}

void hvd_notes_print(const struct hvd_plan *plan, FILE *out)
{
    for (int i = 0; i < plan->note_count; i++) {
        fprintf(out, "%s\n", plan->notes[i]);
    }
}

int hvd_table_format(const struct hvd_topology *topology, const struct hvd_plan *plan,
                     const char *host, const char *not_applied, char *text, size_t size)
{
    char *whole = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&whole, &length);

    if (out == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (not_applied != NULL) {
        fprintf(out, "this binding is not in force: %s\n", not_applied);
    }
    hvd_picture_print(topology, plan, host, out);
    fprintf(out, "\n");
    hvd_table_print(topology, plan, out);
    if (plan->note_count > 0) {
        fprintf(out, "\n");
        hvd_notes_print(plan, out);
    }
    if (fclose(out) != 0) {
        free(whole);
        return HVD_ERR_NOMEM;
    }
    snprintf(text, size, "%s", whole);
    free(whole);
    return (int)length;
}
