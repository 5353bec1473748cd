/* SPDX-License-Identifier: Apache-2.0 */
/* Tests agent_plan.h: the text has the whole plan, and any other text is refused. */
#include "gpu_binding/agent/agent_plan.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/cpulist.h"
#include "gpu_binding/plan.h"
#include "tests/tap.h"

static struct hvd_cpuset cpus_of(const char *text)
{
    struct hvd_cpuset cpus = {{0}};

    hvd_cpulist_parse(text, &cpus, NULL);
    return cpus;
}

static bool is(const struct hvd_cpuset *cpus, const char *text)
{
    const struct hvd_cpuset wanted = cpus_of(text);

    return hvd_cpuset_is_equal(cpus, &wanted);
}

/* Writes the text of a plan with two rows; the caller frees it. */
static char *write_plan(enum hvd_bind_mode mode)
{
    struct hvd_plan_row rows[] = {
        {.cpus = cpus_of("0-3,8-11"), .memory_numa = 0, .nic = "mlx5_0:1,mlx5_1:1"},
        {.local_rank = 1, .cpus = cpus_of("4-7"), .memory_numa = HVD_NONE},
    };
    const struct hvd_plan plan = {.mode = mode, .row_count = 2, .rows = rows};
    const struct hvd_cpuset agent = cpus_of("0-11");

    return hvd_agent_plan_write(&plan, "12.0", &agent);
}

static void test_text(void)
{
    char *text = write_plan(HVD_BIND_SOCKET);
    char *unbound = write_plan(HVD_BIND_NONE);

    tap_ok(strcmp(text, "12.0 0-11;0-3,8-11 0 mlx5_0:1,mlx5_1:1;4-7 - -") == 0,
           "the text has the step, the agent's cpus, and a row for each rank");
    tap_ok(strcmp(unbound, "12.0 0-11;- 0 mlx5_0:1,mlx5_1:1;- - -") == 0,
           "with bind=none it has no cpus");
    free(text);
    free(unbound);
}

static void test_rows(void)
{
    char *text = write_plan(HVD_BIND_CORES);
    struct hvd_agent_plan plan;

    tap_ok(hvd_agent_plan_read(text, 0, &plan, NULL) == 0 && plan.row_count == 2 &&
               strcmp(plan.step, "12.0") == 0 && is(&plan.agent, "0-11"),
           "the step, the number of rows and the agent's cpus are read");
    tap_ok(is(&plan.cpus, "0-3,8-11") && plan.memory_node == 0 &&
               strcmp(plan.nic, "mlx5_0:1,mlx5_1:1") == 0,
           "a rank reads its row");
    tap_ok(hvd_agent_plan_read(text, 1, &plan, NULL) == 0 && is(&plan.cpus, "4-7") &&
               plan.memory_node == HVD_NONE && plan.nic[0] == '\0',
           "'-' is no memory node and no network card");
    tap_ok(hvd_agent_plan_read(text, 2, &plan, NULL) == 0 && plan.row_count == 2 &&
               hvd_cpuset_is_empty(&plan.cpus) && plan.memory_node == HVD_NONE,
           "a rank without a row gets an empty one");
    free(text);
}

static void test_refused(void)
{
    static const char *const texts[] = {
        "",
        "x",
        "12.0",
        "12.0 ",
        "12.0 -",
        "12.0 0-3;",
        "12.0 0-3;;0 0 -",
        "12.0 0-3;0",
        "12.0 0-3;0 0",
        "12.0 0-3;0 0 ",
        "12.0 0-3;0 0 - ",
        "12.0 0-3;0  0 -",
        "12.0 0-3;0 -1 -",
        "12.0 0-3;0 1024 -",
        "12.0 0-3;0 99999999999999999999 -",
        "12.0 0-3;8192 0 -",
        "12.0 0-3;3-0 0 -",
        "12.0 0-3;0 0 mlx5_0:1\n",
        "12.0 0-3;0 0 $(id)",
        "12.0; 0-3;0 0 -",
        "$HOME 0-3;0 0 -",
        "12345678901234567890123456789012 0-3;0 0 -",
    };
    struct hvd_agent_plan plan = {.row_count = 77};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct hvd_error err = {0};

        tap_ok(hvd_agent_plan_read(texts[i], 0, &plan, &err) == HVD_ERR_ARG &&
                   strncmp(err.text, "HVD_AGENT_PLAN ", 15) == 0 && plan.row_count == 77,
               "text %zu is refused, and the error names the variable", i);
    }
}

/* Returns a text with this row again and again; the caller frees it. */
static char *repeat_row(const char *row, int count)
{
    char *text = malloc(16 + strlen(row) * (size_t)count);

    strcpy(text, "12.0 0-3");
    for (char *end = text + strlen(text); count > 0; count--) {
        end = stpcpy(end, row);
    }
    return text;
}

static void test_sizes(void)
{
    char *most = repeat_row(";0 0 -", HVD_PLAN_RANKS_MAX);
    char *more = repeat_row(";0 0 -", HVD_PLAN_RANKS_MAX + 1);
    char long_nic[300] = "12.0 0-3;0 0 ";
    struct hvd_agent_plan plan;

    tap_ok(hvd_agent_plan_read(most, 4095, &plan, NULL) == 0 &&
               plan.row_count == HVD_PLAN_RANKS_MAX && is(&plan.cpus, "0"),
           "a plan may have as many rows as hvd plans for");
    tap_ok(hvd_agent_plan_read(more, 0, &plan, NULL) == HVD_ERR_ARG, "but not more");
    memset(long_nic + strlen(long_nic), 'm', 256);
    tap_ok(hvd_agent_plan_read(long_nic, 0, &plan, NULL) == HVD_ERR_ARG &&
               hvd_agent_plan_read(long_nic, 1, &plan, NULL) == HVD_ERR_ARG,
           "a name that is too long is refused in the row of any rank");
    free(most);
    free(more);
}

int main(void)
{
    test_text();
    test_rows();
    test_refused();
    test_sizes();
    return tap_done();
}
