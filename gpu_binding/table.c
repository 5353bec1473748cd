/* SPDX-License-Identifier: Apache-2.0 */
/* Prints one line per rank of a plan, and the notes. */
#include "gpu_binding/table.h"

#include <stdlib.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/cpulist.h"

#define CELL 24
#define CPUS_COLUMN 16

/* Writes a number, or "-" for HVD_NONE. */
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
