/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates the agreement of all ranks of a job in one process: creates and destroys the
 * job, and submits tensors. */
#include "tests/collectives/agreement_sim/agreement_sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/tree.h"
#include "tests/collectives/agreement_sim/agreement_sim_check.h"
#include "tests/collectives/agreement_sim/agreement_sim_internal.h"

void sim_fault(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (sim->fault[0] == '\0') {
        va_start(args, format);
        vsnprintf(sim->fault, sizeof(sim->fault), format, args);
        va_end(args);
    }
}

struct hvd_agreement_settings sim_settings(void)
{
    return (struct hvd_agreement_settings){
        .fusion = {.threshold = 128 << 20, .capacity = 1024, .cycle_ns = 1000000},
        .may_replay = true,
    };
}

/* --- beginning and end --- */

static void lay_out(struct sim *sim, const int *nodes)
{
    const char **hosts = NULL;
    int size = 0, count = 0;

    while (nodes[count] > 0) {
        size += nodes[count++];
    }
    hosts = calloc((size_t)size, sizeof(hosts[0]));
    sim->hosts = calloc((size_t)count, sizeof(sim->hosts[0]));
    sim->peers = calloc((size_t)size, sizeof(sim->peers[0]));
    size = 0;
    for (int n = 0; n < count; n++) {
        snprintf(sim->hosts[n], sizeof(sim->hosts[n]), "n%d", n);
        for (int i = 0; i < nodes[n]; i++) {
            sim->peers[size].host = sim->hosts[n];
            hosts[size++] = sim->hosts[n];
        }
    }
    hvd_layout_init(&sim->layout, hosts, size, NULL);
    free(hosts);
}

static int pid_of(const struct hvd_boot_peer *peer)
{
    return 4710 + atoi(peer->host + 1);
}

static void connect_children(struct sim *sim, struct sim_rank *rank)
{
    int count = hvd_tree_children(&sim->layout, rank->rank, NULL);
    int *children = calloc((size_t)count + 1, sizeof(children[0]));

    hvd_tree_children(&sim->layout, rank->rank, children);
    rank->children = calloc((size_t)count + 1, sizeof(rank->children[0]));
    rank->inbox = calloc((size_t)count + 1, sizeof(rank->inbox[0]));
    rank->child_count = count;
    for (int i = 0; i < count; i++) {
        rank->children[i] = &sim->ranks[children[i]];
        rank->children[i]->parent = rank;
        rank->children[i]->branch = i + 1;
    }
    free(children);
}

void sim_init(struct sim *sim, const int *nodes,
              const struct hvd_agreement_settings *settings, unsigned seed)
{
    struct hvd_agreement_settings own = settings != NULL ? *settings : sim_settings();

    *sim = (struct sim){.now_ns = 1000000, .slow_rank = -1};
    lay_out(sim, nodes);
    sim->ranks = calloc((size_t)sim->layout.size, sizeof(sim->ranks[0]));
    for (int i = 0; i < HVD_PRIORITIES; i++) {
        sim_add_team(sim, sim->layout.size);
    }
    for (int i = 0; i < sim->layout.size; i++) {
        struct sim_rank *rank = &sim->ranks[i];

        rank->sim = sim;
        rank->rank = i;
        connect_children(sim, rank);
        hvd_tensor_table_init(&rank->tensors, sim_entry_ended, rank);
        own.tensors = &rank->tensors;
        own.sets = &rank->sets;
        own.peers = sim->peers;
        own.pid_of = pid_of;
        if (hvd_sets_init(&rank->sets, &sim->layout, i, NULL) != 0 ||
            hvd_agreement_create(&own, &rank->agreement, NULL) != 0) {
            sim_fault(sim, "rank %d cannot begin", i);
        }
    }
    sim->check = sim_check_create(sim);
    sim->random = hvd_hash_number(seed + 1);
}

static void finish_rank(struct sim_rank *rank)
{
    struct sim_message *message;

    while (rank->batches != NULL) {
        struct sim_batch *next = rank->batches->next;

        hvd_batch_destroy(rank->batches->batch);
        free(rank->batches);
        rank->batches = next;
    }
    for (int i = 0; i <= rank->child_count; i++) {
        while ((message = sim_take(&rank->inbox[i])) != NULL) {
            free(message);
        }
    }
    hvd_agreement_destroy(rank->agreement);
    hvd_sets_finish(&rank->sets);
    hvd_tensor_table_finish(&rank->tensors);
    free(rank->children);
    free(rank->inbox);
}

void sim_finish(struct sim *sim)
{
    for (int i = 0; i < sim->layout.size; i++) {
        finish_rank(&sim->ranks[i]);
    }
    for (int i = 0; i < sim->team_count; i++) {
        for (int64_t j = 0; j < sim->teams[i].count; j++) {
            sim_check_forget(&sim->teams[i].rounds[j]);
        }
        free(sim->teams[i].rounds);
        free(sim->teams[i].next);
        free(sim->teams[i].ranks);
        free(sim->teams[i].knows);
    }
    sim_check_destroy(sim->check);
    free(sim->teams);
    free(sim->ranks);
    free(sim->peers);
    free(sim->hosts);
    hvd_layout_finish(&sim->layout);
}

/* --- tensors --- */

struct hvd_descriptor sim_allreduce(const char *name, int64_t elements)
{
    return (struct hvd_descriptor){
        .kind = HVD_KIND_ALLREDUCE,
        .dtype = HVD_FLOAT32,
        .op = HVD_SUM,
        .device = HVD_DEVICE_CPU,
        .prescale = 1.0,
        .postscale = 1.0,
        .ndim = 1,
        .shape = {elements},
        .name = name,
    };
}

static void form_group(struct hvd_request *request)
{
    uint64_t group = (uint64_t)request->count;

    for (int i = 0; i < request->count; i++) {
        const struct hvd_descriptor *descriptor = &request->entries[i].descriptor;

        group =
            hvd_hash_number(group ^ hvd_key_make(descriptor->set, descriptor->name).hash);
    }
    for (int i = 0; i < request->count; i++) {
        request->entries[i].descriptor.group = group;
        request->entries[i].descriptor.group_size = request->count;
    }
}

struct hvd_request *sim_submit(struct sim *sim, int number,
                               const struct hvd_descriptor *const *tensors, int count)
{
    struct hvd_request *request = hvd_request_create(count);
    struct sim_rank *rank = &sim->ranks[number];
    int status = 0;

    rank->is_asleep = false;
    for (int i = 0; i < count; i++) {
        struct hvd_entry *entry = &request->entries[i];

        entry->descriptor = *tensors[i];
        entry->descriptor.name = strdup(tensors[i]->name);
        entry->descriptor.note =
            tensors[i]->note != NULL ? strdup(tensors[i]->note) : NULL;
    }
    if (count > 1) {
        form_group(request);
    }
    if (!rank->has_left && hvd_tensor_table_add(&rank->tensors, request, NULL) != 0) {
        sim_fault(sim, "rank %d has %s in flight", number, tensors[0]->name);
        return request;
    }
    for (int i = 0; i < count && status == 0; i++) {
        /* hvd refuses such tensors before the agreement gets them */
        if (rank->has_left) {
            hvd_entry_end(&request->entries[i], HVD_ERR_SHUTDOWN, "too late");
            continue;
        }
        sim_check_submit(rank, &request->entries[i]);
        status = hvd_agreement_submit(rank->agreement, &request->entries[i], sim->now_ns);
    }
    if (!rank->has_left) {
        sim_conclude(rank, status);
    }
    return request;
}

void sim_wait(struct sim *sim, int number, bool is_waited)
{
    struct sim_rank *rank = &sim->ranks[number];

    rank->is_asleep &= rank->is_waited == is_waited;
    rank->is_waited = is_waited;
}

bool sim_has_ended(const struct hvd_request *request)
{
    return atomic_load(&request->status) != HVD_INPROGRESS;
}
