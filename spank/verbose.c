/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the binding of a node for --hvd=verbose. */
#include "spank/verbose.h"

#include "gpu_binding/base/number.h"
#include "gpu_binding/cpuset.h"
#include "gpu_binding/table.h"
#include "spank/options.h"

static void print_summary(const struct hvd_spank_node_binding *binding, FILE *out)
{
    const struct hvd_plan *plan = binding->plan;
    int cpus = hvd_cpuset_count(&plan->allowed);

    fprintf(out, "hvd: %s: %d rank%s, ", binding->host, binding->ranks,
            hvd_number_plural(binding->ranks));
    if (binding->is_isolated) {
        fprintf(out, "each with GPUs of its own, ");
    } else {
        fprintf(out, "%d GPU%s, ", plan->gpus.count, hvd_number_plural(plan->gpus.count));
    }
    fprintf(out, "%d cpu%s, bind=%s", cpus, hvd_number_plural(cpus),
            hvd_bind_mode_name(plan->mode));
    if (binding->threads[0] != '\0') {
        fprintf(out, ", OMP_NUM_THREADS=%s", binding->threads);
    }
    if (binding->failure != NULL) {
        fprintf(out, ", not applied: %s", binding->failure);
    }
    if (plan->note_count > 0) {
        fprintf(out, ", %d warning%s", plan->note_count,
                hvd_number_plural(plan->note_count));
    }
    fprintf(out, "\n");
}

static void print_table(const struct hvd_spank_node_binding *binding, FILE *out)
{
    fprintf(out, "hvd: binding on %s%s\n", binding->host,
            binding->is_isolated ? ", first rank" : "");
    hvd_picture_print(binding->topology, binding->plan, binding->host, out);
    fprintf(out, "\n");
    hvd_table_print(binding->topology, binding->plan, out);
    fprintf(out, "\n");
}

void hvd_spank_verbose_print(const struct hvd_spank_node_binding *binding, FILE *out)
{
    print_summary(binding, out);
    for (int i = 0; i < binding->plan->note_count; i++) {
        fprintf(out, "hvd: %s: %s\n", binding->host, binding->plan->notes[i]);
    }
    if (binding->is_first_node || binding->failure != NULL) {
        print_table(binding, out);
    }
}
