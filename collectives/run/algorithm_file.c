/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file with the table of algorithms that a job uses. */
#include "collectives/run/algorithm_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"

enum {
    MOST_BYTES = 1 << 20
};

static const char default_path[] = HVD_SYSCONFDIR "/hvd/tune.table";
static const char builtin_word[] = "builtin";

const char *hvd_algorithm_file_path(void)
{
    return default_path;
}

static int read_text(const char *path, FILE *file, char **out, struct hvd_error *err)
{
    char *text = malloc(MOST_BYTES + 1);
    size_t length = text != NULL ? fread(text, 1, MOST_BYTES + 1, file) : 0;
    int status = 0;

    if (text == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", path);
    }
    if (ferror(file)) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot read the table of algorithms %s: %m",
                          path);
    } else if (length > MOST_BYTES || memchr(text, '\0', length) != NULL) {
        status = hvd_fail(err, HVD_ERR_ARG, "%s is not a table of algorithms: %s", path,
                          length > MOST_BYTES ? "it is larger than 1 MiB"
                                              : "it contains a NUL byte");
    }
    if (status != 0) {
        free(text);
        return status;
    }
    text[length] = '\0';
    *out = text;
    return 0;
}

int hvd_algorithm_file_read(const char *path, struct hvd_algorithm_table **out,
                            struct hvd_error *err)
{
    const char *name = path != NULL ? path : default_path;
    char *text = NULL;
    FILE *file;
    int status;

    *out = NULL;
    if (strcmp(name, builtin_word) == 0) {
        return 0;
    }
    file = fopen(name, "re");
    if (file == NULL && path == NULL && (errno == ENOENT || errno == ENOTDIR)) {
        return 0;
    }
    if (file == NULL) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot open the table of algorithms %s: %m",
                        name);
    }
    status = read_text(name, file, &text, err);
    fclose(file);
    if (status == 0) {
        status = hvd_algorithm_table_parse(name, text, out, err);
    }
    free(text);
    return status;
}
