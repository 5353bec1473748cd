/* SPDX-License-Identifier: Apache-2.0 */
/* The files in which the kernel and NVIDIA's driver describe a node. Each line of the
 * input replaces one of these files: its first letter selects the file in the table, and
 * the rest is the new text. */
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/plan.h"
#include "gpu_binding/table.h"
#include "gpu_binding/topology.h"
#include "tests/fuzz/fuzz.h"
#include "tests/gpu_binding/fake_node.h"

#define PCI "sys/bus/pci/devices/"
#define PORTS "sys/devices/pci0000:5d/0000:5e:00.0/infiniband/mlx5_0/ports/"

enum {
    FIRST_LETTER = 'a'
};

static const struct {
    const char *file;
    const char *text; /* the text on a usual node */
} files[] = {
    {"nvidia/0000:86:00.0/information", "Model: Tesla V100-SXM2-32GB"},
    {"nvidia/0000:86:00.0/information", "GPU UUID: GPU-1"},
    {"nvidia/0000:86:00.0/information", "Device Minor: 3"},
    {PORTS "1/state", "4: ACTIVE"},
    {PORTS "2/state", "1: DOWN"},
    {PCI "0000:86:00.0/local_cpus", "c"},
    {PCI "0000:5e:00.0/local_cpus", "3"},
    {PCI "0000:86:00.0/class", "0x030200"},
    {PCI "0000:86:00.0/vendor", "0x10de"},
    {"sys/fs/cgroup/step/cpuset.cpus.effective", "0-3"},
    {"sys/fs/cgroup/step/cpuset.mems.effective", "0-1"},
};

static char place[64];

static void remove_node(void)
{
    fake_node_destroy(place);
}

static void make_node(void)
{
    fake_node_create("c", "0-3", place);
    atexit(remove_node);
}

static void write_file(size_t number, const char *text)
{
    char whole[4096];

    snprintf(whole, sizeof(whole), "%s\n", text);
    fake_node_write(place, files[number].file, whole);
}

static void load_and_plan(void)
{
    char nvidia[96];
    struct hvd_topology_source source = {.nvidia_dir = nvidia};
    struct hvd_topology topology;
    struct hvd_error err = {0};
    struct hvd_plan_input input = {.topology = &topology, .rank_count = 3};
    struct hvd_plan plan;

    snprintf(nvidia, sizeof(nvidia), "%s/nvidia", place);
    if (hvd_topology_load(&topology, &source, &err) != 0) {
        return;
    }
    if (hvd_plan_make(&input, &plan, &err) == 0) {
        hvd_picture_print(&topology, &plan, "n1", fuzz_nowhere());
        hvd_table_print(&topology, &plan, fuzz_nowhere());
        hvd_plan_finish(&plan);
    }
    hvd_topology_finish(&topology);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t count = sizeof(files) / sizeof(files[0]);
    struct fuzz_input input = {data, size};
    char *line;

    if (place[0] == '\0') {
        make_node();
    }
    for (size_t i = 0; i < count; i++) {
        write_file(i, files[i].text);
    }
    while ((line = fuzz_line(&input)) != NULL) {
        size_t number = (size_t)(unsigned char)line[0] - FIRST_LETTER;

        if (number < count) {
            write_file(number, line + 1);
        }
        free(line);
    }
    load_and_plan();
    return 0;
}
