/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of srun. */
#include <stdio.h>
#include <stdlib.h>

#include "pmix_boot/hvdrun/hosts.h"
#include "pmix_boot/hvdrun/launcher.h"

/* Prints the words of --hvd for an elastic job, each after a comma. */
static int print_elastic(const struct hvdrun_options *options, char *text, size_t bytes,
                         struct hvd_error *err)
{
    const struct hvdrun_elastic_options *elastic = &options->elastic;
    int length;

    text[0] = '\0';
    if (!hvdrun_options_is_elastic(options)) {
        return 0;
    }
    if (elastic->discovery != NULL || elastic->cooldown_max_s > 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "in a Slurm job hvdrun does not restart ranks: start more with "
                        "srun --hvd=elastic,meet=FILE");
    }
    length = elastic->spares > 0 ? snprintf(text, bytes, ",elastic,min=%d,spares=%d",
                                            elastic->min, elastic->spares)
                                 : snprintf(text, bytes, ",elastic,min=%d,max=%d",
                                            elastic->min, elastic->max);
    if (elastic->has_reset_limit) {
        snprintf(text + length, bytes - (size_t)length, ",resets=%d",
                 elastic->reset_limit);
    }
    return 0;
}

static int add_plugin(const struct hvdrun_options *options,
                      struct hvdrun_string_list *words, struct hvd_error *err)
{
    bool has_bind = options->bind != HVD_BIND_AUTO;
    char elastic[80];
    int status = print_elastic(options, elastic, sizeof(elastic), err);

    return status < 0
               ? status
               : hvdrun_string_list_add(
                     words, err, "--hvd=on%s%s%s%s",
                     options->is_verbose ? ",verbose" : "", has_bind ? ",bind=" : "",
                     has_bind ? hvd_bind_mode_name(options->bind) : "", elastic);
}

/* srun follows the numbers of slots only with an arbitrary distribution, whose list names
 * each host once per rank. */
static int add_nodes(const struct hvdrun_options *options,
                     struct hvdrun_string_list *words, struct hvd_error *err)
{
    struct hvdrun_host *hosts;
    int count = hvdrun_hosts_parse(options->hosts, &hosts, err);
    int left = options->ranks;
    char *list = NULL;
    size_t bytes;
    FILE *out;

    if (count < 0) {
        return count;
    }
    out = open_memstream(&list, &bytes);
    for (int i = 0; out != NULL && i < count; i++) {
        for (int slot = 0; slot < hosts[i].slots && left > 0; slot++, left--) {
            fprintf(out, "%s%s", left < options->ranks ? "," : "", hosts[i].name);
        }
    }
    free(hosts);
    if (out == NULL || fclose(out) != 0) {
        free(list);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d hosts", count);
    }
    count = hvdrun_string_list_add(words, err, "--nodelist=%s", list);
    free(list);
    return count < 0 ? count
                     : hvdrun_string_list_add(words, err, "--distribution=arbitrary");
}

static int add_srun_output(const struct hvdrun_options *options,
                           struct hvdrun_string_list *words, struct hvd_error *err)
{
    const char *directory = options->output_directory;
    int status = 0;

    if (directory != NULL) {
        status =
            hvdrun_string_list_add(words, err, "--output=%s/rank.%%t/stdout", directory);
    }
    if (directory != NULL && status == 0) {
        status =
            hvdrun_string_list_add(words, err, "--error=%s/rank.%%t/stderr", directory);
    }
    if (options->has_prefix && status == 0) {
        status = hvdrun_string_list_add(words, err, "--label");
    }
    return status;
}

int hvdrun_launcher_srun(const struct hvdrun_options *options,
                         struct hvdrun_string_list *words, struct hvd_error *err)
{
    int status = hvdrun_string_list_add(words, err, "srun");

    if (status == 0) {
        status = add_plugin(options, words, err);
    }
    if (status == 0 && options->ranks > 0) {
        status = hvdrun_string_list_add(words, err, "--ntasks=%d", options->ranks);
    }
    if (status == 0 && options->hosts != NULL && options->ranks > 0) {
        status = add_nodes(options, words, err);
    }
    if (status == 0) {
        status = add_srun_output(options, words, err);
    }
    return status < 0 ? status
                      : hvdrun_string_list_add_all(
                            words, (const char *const *)options->command, err);
}
