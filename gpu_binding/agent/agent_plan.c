/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the plan of a node as text. */
#include "gpu_binding/agent/agent_plan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/affinity.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/cpulist.h"
#include "gpu_binding/plan.h"

static const char none[] = "-";

/* --- writing --- */

static void write_cpus(const struct hvd_cpuset *cpus, FILE *out)
{
    char text[5 * HVD_CPUSET_SIZE]; /* "8190," for each cpu */

    hvd_cpulist_format(cpus, text, sizeof(text));
    fputs(text, out);
}

static void write_row(const struct hvd_plan *plan, const struct hvd_plan_row *row,
                      FILE *out)
{
    const struct hvd_cpuset unbound = {{0}};

    fputc(';', out);
    write_cpus(plan->mode == HVD_BIND_NONE ? &unbound : &row->cpus, out);
    if (row->memory_numa == HVD_NONE) {
        fprintf(out, " %s", none);
    } else {
        fprintf(out, " %d", row->memory_numa);
    }
    fprintf(out, " %s", row->nic[0] != '\0' ? row->nic : none);
}

char *hvd_agent_plan_write(const struct hvd_plan *plan, const char *step,
                           const struct hvd_cpuset *agent)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL) {
        return NULL;
    }
    fprintf(out, "%s ", step);
    write_cpus(agent, out);
    for (int i = 0; i < plan->row_count; i++) {
        write_row(plan, &plan->rows[i], out);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* --- reading --- */

static bool read_cpus(const char *text, struct hvd_cpuset *cpus)
{
    if (strcmp(text, none) == 0) {
        *cpus = (struct hvd_cpuset){{0}};
        return true;
    }
    return hvd_cpulist_parse(text, cpus, NULL) == 0;
}

static bool read_memory_node(const char *text, int *node)
{
    const size_t length = strlen(text);

    if (strcmp(text, none) == 0) {
        *node = HVD_NONE;
        return true;
    }
    if (length < 1 || length > 4 || strspn(text, "0123456789") != length) {
        return false;
    }
    *node = atoi(text);
    return *node < HVD_MEMORY_NODES;
}

static bool read_nic(const char *text, char *nic, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.:,-";
    const size_t length = strlen(text);

    if (strcmp(text, none) == 0) {
        nic[0] = '\0';
        return true;
    }
    if (length < 1 || length >= size || strspn(text, allowed) != length) {
        return false;
    }
    memcpy(nic, text, length + 1);
    return true;
}

static bool read_row(char *text, struct hvd_agent_plan *plan)
{
    const char *cpus = strsep(&text, " ");
    const char *node = strsep(&text, " ");
    const char *nic = strsep(&text, " ");

    return nic != NULL && text == NULL && read_cpus(cpus, &plan->cpus) &&
           read_memory_node(node, &plan->memory_node) &&
           read_nic(nic, plan->nic, sizeof(plan->nic));
}

static bool read_head(char *text, struct hvd_agent_plan *plan)
{
    const char *step = strsep(&text, " ");
    const size_t length = strlen(step);

    if (text == NULL || length < 1 || length >= sizeof(plan->step) ||
        strspn(step, "0123456789.") != length) {
        return false;
    }
    memcpy(plan->step, step, length + 1);
    return read_cpus(text, &plan->agent) && !hvd_cpuset_is_empty(&plan->agent);
}

/* Reads the text, and writes zeros over its separators. */
static int read_text(char *text, int local_rank, struct hvd_agent_plan *plan,
                     struct hvd_error *err)
{
    struct hvd_agent_plan other;
    char shown[80];
    char *part = strsep(&text, ";");

    snprintf(shown, sizeof(shown), "%s", part);
    if (!read_head(part, plan)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s begins with '%s', expected a job's step and its cpus, such "
                        "as 12.0 0-15: only srun --hvd may set this variable",
                        HVD_ENV_AGENT_PLAN, shown);
    }
    for (; text != NULL && plan->row_count < HVD_PLAN_RANKS_MAX; plan->row_count++) {
        part = strsep(&text, ";");
        snprintf(shown, sizeof(shown), "%s", part);
        if (!read_row(part, plan->row_count == local_rank ? plan : &other)) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "%s has '%s' for local rank %d, expected cpus, a memory "
                            "node and network cards, such as 0-7 0 mlx5_0:1: only srun "
                            "--hvd may set this variable",
                            HVD_ENV_AGENT_PLAN, shown, plan->row_count);
        }
    }
    if (text != NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s has more than %d ranks: only srun --hvd may set this "
                        "variable",
                        HVD_ENV_AGENT_PLAN, HVD_PLAN_RANKS_MAX);
    }
    return 0;
}

int hvd_agent_plan_read(const char *text, int local_rank, struct hvd_agent_plan *out,
                        struct hvd_error *err)
{
    struct hvd_agent_plan plan = {.memory_node = HVD_NONE};
    char *copy = strdup(text);
    int status;

    if (copy == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to read %s", HVD_ENV_AGENT_PLAN);
    }
    status = read_text(copy, local_rank, &plan, err);
    free(copy);
    if (status == 0) {
        *out = plan;
    }
    return status;
}
