/* SPDX-License-Identifier: Apache-2.0 */
/* hvdrun's options in srun's words. */
#include <stdio.h>
#include <stdlib.h>

#include "pmix_boot/hvdrun/hosts.h"
#include "pmix_boot/hvdrun/way.h"

static int add_plugin(const struct hvdrun_options *options, struct hvdrun_words *words,
                      struct hvd_error *err)
{
    static const char *const binds[] = {
        [HVD_BIND_AUTO] = "",
        [HVD_BIND_NONE] = ",bind=none",
        [HVD_BIND_SOCKET] = ",bind=socket",
        [HVD_BIND_CORE] = ",bind=cores",
    };

    return hvdrun_words_add(words, err, "--hvd=on%s%s",
                            options->is_verbose ? ",verbose" : "", binds[options->bind]);
}

/* srun places by host list only in one way: each host named once per rank. */
static int add_nodes(const struct hvdrun_options *options, struct hvdrun_words *words,
                     struct hvd_error *err)
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
    count = hvdrun_words_add(words, err, "--nodelist=%s", list);
    free(list);
    return count < 0 ? count : hvdrun_words_add(words, err, "--distribution=arbitrary");
}

static int add_srun_output(const struct hvdrun_options *options,
                           struct hvdrun_words *words, struct hvd_error *err)
{
    const char *directory = options->output_directory;
    int status = 0;

    if (directory != NULL) {
        status = hvdrun_words_add(words, err, "--output=%s/rank.%%t/stdout", directory);
    }
    if (directory != NULL && status == 0) {
        status = hvdrun_words_add(words, err, "--error=%s/rank.%%t/stderr", directory);
    }
    if (options->has_prefix && status == 0) {
        status = hvdrun_words_add(words, err, "--label");
    }
    return status;
}

int hvdrun_way_srun(const struct hvdrun_options *options, struct hvdrun_words *words,
                    struct hvd_error *err)
{
    int status = hvdrun_words_add(words, err, "srun");

    if (status == 0) {
        status = add_plugin(options, words, err);
    }
    if (status == 0 && options->ranks > 0) {
        status = hvdrun_words_add(words, err, "--ntasks=%d", options->ranks);
    }
    if (status == 0 && options->hosts != NULL && options->ranks > 0) {
        status = add_nodes(options, words, err);
    }
    if (status == 0) {
        status = add_srun_output(options, words, err);
    }
    return status < 0
               ? status
               : hvdrun_words_add_all(words, (const char *const *)options->command, err);
}
