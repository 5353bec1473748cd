/* SPDX-License-Identifier: Apache-2.0 */
/* Checks properties that every plan has, with random allowed cpus, GPUs and ranks on
 * every topology. */
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/binding.h"
#include "tests/gpu_binding/node_file.h"
#include "tests/tap.h"

#define ROUNDS 300

/* A random case and its plan. broken is the first property that does not hold; NULL: all
 * hold. */
struct trial {
    const struct hvd_topology *topology;
    struct hvd_cpuset allowed;
    struct hvd_gpu_list gpus;
    struct hvd_plan_input input;
    struct hvd_plan plan;
    const char *broken;
};

static unsigned random_below(unsigned *state, unsigned limit)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) % limit;
}

static void require(struct trial *trial, bool holds, const char *property)
{
    if (!holds && trial->broken == NULL) {
        trial->broken = property;
    }
}

static int count_threads(const struct trial *trial, const struct hvd_cpuset *cpus,
                         int core)
{
    int count = 0;

    for (int i = 0; i < trial->topology->cpu_count; i++) {
        const struct hvd_cpu *cpu = &trial->topology->cpus[i];

        count += cpu->core == core && hvd_cpuset_has(cpus, cpu->number);
    }
    return count;
}

static int count_cores(const struct trial *trial, const struct hvd_cpuset *cpus)
{
    int count = 0;

    for (int core = 0; core < trial->topology->core_count; core++) {
        count += count_threads(trial, cpus, core) > 0;
    }
    return count;
}

static struct hvd_cpuset cpus_of_socket(const struct trial *trial, int socket)
{
    struct hvd_cpuset cpus = {{0}};

    for (int i = 0; i < trial->topology->cpu_count; i++) {
        const struct hvd_cpu *cpu = &trial->topology->cpus[i];

        if (cpu->socket == socket && hvd_cpuset_has(&trial->allowed, cpu->number)) {
            hvd_cpuset_add(&cpus, cpu->number);
        }
    }
    return cpus;
}

static bool numa_has_cpus(const struct hvd_topology *topology, int number)
{
    for (int i = 0; i < topology->cpu_count; i++) {
        int numa = topology->cpus[i].numa;

        if (numa != HVD_NONE && topology->numas[numa].number == number) {
            return true;
        }
    }
    return false;
}

static bool is_far_rightly(const struct trial *trial, const struct hvd_plan_row *row)
{
    if (row->gpu_socket == HVD_NONE || trial->plan.mode == HVD_BIND_NONE) {
        return !row->is_far;
    }
    struct hvd_cpuset near = cpus_of_socket(trial, row->gpu_socket);
    return row->is_far == hvd_cpuset_is_empty(&near);
}

static void check_row(struct trial *trial, const struct hvd_plan_row *row)
{
    const struct hvd_plan_options *options = &trial->input.options;

    require(trial, !hvd_cpuset_is_empty(&row->cpus), "rows are never empty");
    require(trial, hvd_cpuset_is_within(&row->cpus, &trial->allowed),
            "rows stay inside the allowed cpus");
    require(trial, row->core_count == count_cores(trial, &row->cpus),
            "core_count counts the row's cores");
    require(trial, is_far_rightly(trial, row),
            "far only if the near socket has no allowed cpu");
    require(trial,
            row->memory_numa == HVD_NONE ||
                numa_has_cpus(trial->topology, row->memory_numa),
            "the memory node has cpus");
    require(trial, !row->is_far || row->memory_numa == HVD_NONE,
            "far rows keep the default memory policy");
    if (trial->plan.mode == HVD_BIND_NONE) {
        require(trial, hvd_cpuset_is_equal(&row->cpus, &trial->allowed),
                "mode none leaves the cpus");
        return;
    }
    for (int core = 0; core < trial->topology->core_count; core++) {
        require(trial,
                options->threads_per_core == 0 ||
                    count_threads(trial, &row->cpus, core) <= options->threads_per_core,
                "no core gives more threads than wanted");
    }
    require(trial,
            trial->plan.mode != HVD_BIND_CORES || options->cpus_per_rank == 0 ||
                row->core_count <= options->cpus_per_rank,
            "no row has more cores than the limit");
}

/* Checks a socket whose ranks have no limit of cores: their shares are even and disjoint,
 * and use all allowed cpus of the socket. */
static void check_socket(struct trial *trial, int socket)
{
    struct hvd_cpuset all = cpus_of_socket(trial, socket);
    struct hvd_cpuset together = {{0}};
    int cores = count_cores(trial, &all);
    int sum = 0;
    int least = cores;
    int most = 0;
    int ranks = 0;

    for (int i = 0; i < trial->plan.row_count; i++) {
        const struct hvd_plan_row *row = &trial->plan.rows[i];

        if (row->socket == socket) {
            ranks++;
            sum += hvd_cpuset_count(&row->cpus);
            least = row->core_count < least ? row->core_count : least;
            most = row->core_count > most ? row->core_count : most;
            hvd_cpuset_join(&together, &row->cpus);
            require(trial, hvd_cpuset_is_within(&row->cpus, &all),
                    "rows stay on their socket");
        }
    }
    if (ranks == 0) {
        return;
    }
    if (ranks <= cores) {
        require(trial, most - least <= 1, "core counts differ by at most one");
        require(trial, sum == hvd_cpuset_count(&together), "rows are disjoint");
    }
    require(trial, ranks > hvd_cpuset_count(&all) || hvd_cpuset_is_equal(&together, &all),
            "rows use all allowed cpus of their socket");
}

static bool is_same_plan(const struct hvd_plan *a, const struct hvd_plan *b)
{
    if (a->row_count != b->row_count) {
        return false;
    }
    for (int i = 0; i < a->row_count; i++) {
        const struct hvd_plan_row *x = &a->rows[i];
        const struct hvd_plan_row *y = &b->rows[i];

        if (!hvd_cpuset_is_equal(&x->cpus, &y->cpus) || x->gpu.gpu != y->gpu.gpu ||
            x->socket != y->socket || x->memory_numa != y->memory_numa ||
            strcmp(x->nic, y->nic) != 0) {
            return false;
        }
    }
    return true;
}

static void check_repeats(struct trial *trial)
{
    struct hvd_plan again;

    if (hvd_plan_make(&trial->input, &again, NULL) == 0) {
        require(trial, is_same_plan(&trial->plan, &again),
                "every rank computes the same");
        hvd_plan_finish(&again);
    }
}

/* Checks that the plan stays the same if the GPUs are named in a random order. */
static void check_gpu_order(struct trial *trial, unsigned *seed)
{
    struct hvd_gpu_item items[HVD_GPU_LIST_SIZE];
    struct hvd_plan_input input = trial->input;
    struct hvd_gpu_list list;
    struct hvd_plan plan;
    char text[HVD_GPU_LIST_SIZE * 8] = "";
    int count = trial->gpus.count;

    memcpy(items, trial->gpus.items, sizeof(items));
    while (count > 0) {
        unsigned at = random_below(seed, (unsigned)count);

        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d",
                 text[0] != '\0' ? "," : "", items[at].number);
        items[at] = items[--count];
    }
    if (trial->gpus.count == 0) {
        return;
    }
    input.gpus = &list;
    if (hvd_gpu_list_parse(trial->topology, text, &list, NULL) == 0 &&
        hvd_plan_make(&input, &plan, NULL) == 0) {
        require(trial, is_same_plan(&trial->plan, &plan),
                "the order in which gpus are named does not matter");
        hvd_plan_finish(&plan);
    } else {
        require(trial, false, "shuffled gpus are accepted");
    }
}

static void draw(struct trial *trial, unsigned *seed)
{
    const struct hvd_topology *topology = trial->topology;
    unsigned keep = 1 + random_below(seed, 8);
    int gpus = topology->gpu_count > 0 ? topology->gpu_count : 4;

    trial->allowed = (struct hvd_cpuset){{0}};
    for (int i = 0; i < topology->cpu_count; i++) {
        if (random_below(seed, 8) < keep) {
            hvd_cpuset_add(&trial->allowed, topology->cpus[i].number);
        }
    }
    hvd_cpuset_add(
        &trial->allowed,
        topology->cpus[random_below(seed, (unsigned)topology->cpu_count)].number);
    trial->gpus.count = 0;
    for (int i = 0; i < topology->gpu_count; i++) {
        if (random_below(seed, 4) > 0) {
            trial->gpus.items[trial->gpus.count++] = (struct hvd_gpu_item){i, i};
        }
    }
    trial->input = (struct hvd_plan_input){
        .topology = topology,
        .allowed = &trial->allowed,
        .gpus = &trial->gpus,
        .rank_count = 1 + (int)random_below(seed, (unsigned)(2 * gpus)),
        .options = {.mode = HVD_BIND_NONE + random_below(seed, 3)},
    };
    if (random_below(seed, 3) == 0) {
        trial->input.options.cpus_per_rank = 1 + (int)random_below(seed, 12);
    }
    if (random_below(seed, 3) == 0) {
        trial->input.options.threads_per_core = 1 + (int)random_below(seed, 2);
    }
}

static bool run_trial(struct trial *trial, unsigned *seed)
{
    const struct hvd_plan_options *options = &trial->input.options;
    struct hvd_error err;
    char allowed[2048];

    draw(trial, seed);
    trial->broken = NULL;
    hvd_cpulist_format(&trial->allowed, allowed, sizeof(allowed));
    if (hvd_plan_make(&trial->input, &trial->plan, &err) < 0) {
        tap_note("%s: %s", allowed, err.text);
        return false;
    }
    for (int i = 0; i < trial->plan.row_count; i++) {
        check_row(trial, &trial->plan.rows[i]);
    }
    for (int i = 0; i < trial->topology->socket_count; i++) {
        bool is_limited = options->mode == HVD_BIND_CORES && options->cpus_per_rank > 0;

        if (options->mode != HVD_BIND_NONE && !is_limited &&
            options->threads_per_core == 0) {
            check_socket(trial, i);
        }
    }
    check_repeats(trial);
    check_gpu_order(trial, seed);
    if (trial->broken != NULL) {
        tap_note("broken: %s; %d ranks, %d gpus, mode %s, limit %d, smt %d, cpus %s",
                 trial->broken, trial->plan.row_count, trial->gpus.count,
                 hvd_bind_mode_name(options->mode), options->cpus_per_rank,
                 options->threads_per_core, allowed);
    }
    hvd_plan_finish(&trial->plan);
    return trial->broken == NULL;
}

int main(int argc, char **argv)
{
    unsigned seed = tap_seed(77);

    for (int i = 0; argc > 1 && node_file_names[i] != NULL; i++) {
        struct hvd_topology topology;
        struct trial trial = {.topology = &topology};
        bool passed = true;

        if (!node_file_load(argv[1], node_file_names[i], &topology)) {
            tap_skip(node_file_names[i], "this topology is not in ../shared/topologies");
            continue;
        }
        for (int k = 0; k < topology.numa_count; k++) {
            passed = passed && numa_has_cpus(&topology, topology.numas[k].number);
        }
        for (int round = 0; round < ROUNDS && passed; round++) {
            passed = run_trial(&trial, &seed);
        }
        tap_ok(passed, "%d random plans on %s have all properties", ROUNDS,
               node_file_names[i]);
        hvd_topology_finish(&topology);
    }
    return tap_done();
}
