/* SPDX-License-Identifier: Apache-2.0 */
/* Tests reading a live Linux node, with a fake /sys. */
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/binding.h"
#include "tests/gpu_binding/fake_node.h"
#include "tests/tap.h"

/* Loads a node whose GPU is near the cpus of the mask local_cpus, for a step that may use
 * the cpus of the list `step`. */
static int load(const char *local_cpus, const char *step, struct hvd_topology *topology,
                struct hvd_error *err)
{
    struct hvd_topology_source source = {0};
    char path[64];

    fake_node_create(local_cpus, step, path);
    int status = hvd_topology_load(topology, &source, err);
    fake_node_destroy(path);
    return status;
}

static void test_whole_node(void)
{
    struct hvd_topology node;
    struct hvd_error err = {0};
    char allowed[32];

    if (!tap_ok(load("c\n", "0-3\n", &node, &err) == 0, "fake_node_loads %s", err.text)) {
        return;
    }
    hvd_cpulist_format(&node.allowed, allowed, sizeof(allowed));
    tap_ok(node.socket_count == 2 && node.core_count == 4 && node.cpu_count == 4 &&
               node.numa_count == 2 && strcmp(allowed, "0-3") == 0,
           "sockets_cores_and_memory_nodes_are_found");
    tap_ok(node.gpu_count == 1 && strcmp(node.gpus[0].bus, "0000:86:00.0") == 0 &&
               strcmp(node.gpus[0].model, "10de:1db5") == 0 &&
               node.gpus[0].device_minor == HVD_NONE && node.gpus[0].uuid[0] == '\0',
           "gpu_is_found_by_vendor_and_class_without_any_driver");
    tap_ok(node.nic_count == 2 && node.nics[0].is_active && !node.nics[1].is_active &&
               node.nics[0].is_infiniband && node.nics[1].port == 2 &&
               node.nics[0].socket == 0,
           "card_is_found_with_the_state_of_each_port");
    hvd_topology_finish(&node);
    hvd_topology_finish(&node);
    tap_ok(node.cpus == NULL, "topology_may_be_finished_twice");
}

static void test_gpu_place(const char *local_cpus, int socket)
{
    struct hvd_topology node;
    struct hvd_error err = {0};

    if (load(local_cpus, "0-3\n", &node, &err) < 0) {
        tap_ok(false, "%s", err.text);
        return;
    }
    tap_ok(node.gpus[0].socket == socket && node.gpus[0].numa == socket,
           "local_cpus_alone_decides_the_socket: %d", socket);
    hvd_topology_finish(&node);
}

static void test_confined_step(void)
{
    struct hvd_topology node;
    struct hvd_plan plan;
    struct hvd_error err = {0};

    if (load("c\n", "0-1\n", &node, &err) < 0) {
        tap_ok(false, "%s", err.text);
        return;
    }
    tap_ok(node.cpu_count == 4 && hvd_cpuset_count(&node.allowed) == 2,
           "cgroup_of_the_step_limits_allowed_but_not_the_node");
    tap_ok(node.gpus[0].socket == 1 && node.gpus[0].numa == 1,
           "gpu_on_a_forbidden_socket_keeps_its_socket");
    struct hvd_binding_step step = {.rank_count = 1};
    if (hvd_binding_plan(&node, &step, &plan, &err) == 0) {
        tap_ok(plan.rows[0].is_far && plan.rows[0].memory_numa == HVD_NONE &&
                   hvd_cpuset_is_equal(&plan.rows[0].cpus, &node.allowed),
               "rank_of_a_gpu_on_a_forbidden_socket_is_far_and_inside_the_step");
        hvd_plan_finish(&plan);
    } else {
        tap_ok(false, "%s", err.text);
    }
    hvd_topology_finish(&node);
}

int main(void)
{
    test_whole_node();
    test_gpu_place("3\n", 0);
    test_gpu_place("c\n", 1);
    test_gpu_place("f\n", HVD_NONE);
    test_confined_step();
    return tap_done();
}
