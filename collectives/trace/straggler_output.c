/* SPDX-License-Identifier: Apache-2.0 */
/* The destination of the straggler report. */
#include "collectives/trace/straggler_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/trace/straggler_page.h"

/* Most ranks printed on a terminal, where the worst matter; files have all of them. */
static const int most_on_terminal = 16;

typedef void (*printer)(const struct hvd_straggler_sums *sums,
                        const struct hvd_straggler_job *job, FILE *out);

static const char json_ending[] = ".json";
static const char page_ending[] = ".html";

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text);

    return length >= strlen(ending) &&
           strcmp(text + length - strlen(ending), ending) == 0;
}

/* Creates and empties a file; tells whether it is a regular file. */
static int make_empty(const char *path, bool *is_plain, struct hvd_error *err)
{
    struct stat facts;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot write the report to %s: %m", path);
    }
    *is_plain = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
    close(fd);
    return 0;
}

/* Sets *path to the absolute path of name and ending, and empties that file. */
static int make_path(struct hvd_straggler_output *output, char **path, const char *name,
                     const char *ending, struct hvd_error *err)
{
    char directory[PATH_MAX] = "";

    if (name[0] != '/' && getcwd(directory, sizeof(directory)) == NULL) {
        return hvd_fail(
            err, HVD_ERR_SYS,
            "cannot find the current directory to write the report %s there: %m", name);
    }
    if (asprintf(path, "%s%s%s%s", directory, name[0] != '/' ? "/" : "", name, ending) <
        0) {
        *path = NULL;
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the report");
    }
    return make_empty(*path, &output->is_plain, err);
}

bool hvd_straggler_output_is_page(const char *setting)
{
    return ends_with(setting, page_ending);
}

int hvd_straggler_output_init(struct hvd_straggler_output *output, const char *setting,
                              struct hvd_error *err)
{
    int status = 0;

    *output = (struct hvd_straggler_output){0};
    if (strcmp(setting, "1") == 0) {
        return 0;
    }
    if (hvd_straggler_output_is_page(setting)) {
        status = hvd_straggler_page_read(&output->frame, err);
        if (status == 0) {
            status = make_path(output, &output->page, setting, "", err);
        }
    } else if (ends_with(setting, json_ending)) {
        status = make_path(output, &output->json, setting, "", err);
    } else {
        status = make_path(output, &output->text, setting, "", err);
        if (status == 0) {
            status = make_path(output, &output->json, setting, json_ending, err);
        }
    }
    if (status != 0) {
        hvd_straggler_output_finish(output);
    }
    return status;
}

void hvd_straggler_output_finish(struct hvd_straggler_output *output)
{
    free(output->text);
    free(output->json);
    free(output->page);
    free(output->frame);
    *output = (struct hvd_straggler_output){0};
}

static void print_all(const struct hvd_straggler_sums *sums,
                      const struct hvd_straggler_job *job, FILE *out)
{
    hvd_straggler_print(sums, job, INT_MAX, out);
}

/* Prints into memory, which the caller frees; *text is NULL if memory is out. */
static size_t print_text(printer print, const struct hvd_straggler_sums *sums,
                         const struct hvd_straggler_job *job, char **text)
{
    size_t bytes = 0;
    FILE *file;

    *text = NULL;
    file = open_memstream(text, &bytes);
    if (file != NULL) {
        print(sums, job, file);
        fclose(file);
    }
    return bytes;
}

/* Overwrites the file, and cuts it to its new length last: if the process is killed, as
 * much as possible remains. */
static int replace_file(const char *path, const char *text, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    bool failed = fd < 0;

    for (size_t done = 0; !failed && done < bytes;) {
        ssize_t wrote = write(fd, text + done, bytes - done);

        failed = wrote < 0 && errno != EINTR;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    failed = failed || (ftruncate(fd, (off_t)bytes) != 0 && errno != EINVAL);
    if (fd >= 0) {
        failed |= close(fd) != 0;
    }
    return failed ? HVD_ERR_SYS : 0;
}

static int write_file(const char *path, printer print,
                      const struct hvd_straggler_sums *sums,
                      const struct hvd_straggler_job *job, struct hvd_error *err)
{
    char *text;
    size_t bytes = print_text(print, sums, job, &text);
    int status = text != NULL ? replace_file(path, text, bytes) : HVD_ERR_NOMEM;

    free(text);
    return status != 0 ? hvd_fail(err, status, "cannot write the report to %s: %m", path)
                       : 0;
}

static int write_page(const struct hvd_straggler_output *output,
                      const struct hvd_straggler_sums *sums,
                      const struct hvd_straggler_job *job, struct hvd_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    int status = HVD_ERR_NOMEM;

    if (file != NULL) {
        status = hvd_straggler_page_print(output->frame, sums, job, file);
        status = fclose(file) == 0 ? status : HVD_ERR_NOMEM;
    }
    if (status == 0) {
        status = replace_file(output->page, text, bytes);
    } else {
        errno = ENOMEM;
    }
    if (status != 0) {
        hvd_fail(err, status, "cannot write the report to %s: %m", output->page);
    }
    free(text);
    return status;
}

static void print_worst(const struct hvd_straggler_sums *sums,
                        const struct hvd_straggler_job *job, FILE *out)
{
    hvd_straggler_print(sums, job, most_on_terminal, out);
}

/* Prints in one piece, so that no line of another rank gets between. */
static void show_report(const struct hvd_straggler_sums *sums,
                        const struct hvd_straggler_job *job)
{
    char *text;
    size_t bytes = print_text(print_worst, sums, job, &text);

    if (text != NULL) {
        fwrite(text, 1, bytes, stderr);
    }
    free(text);
}

int hvd_straggler_output_write(const struct hvd_straggler_output *output,
                               const struct hvd_straggler_sums *sums,
                               const struct hvd_straggler_job *job, struct hvd_error *err)
{
    int status = 0;

    if (output->page != NULL) {
        return write_page(output, sums, job, err);
    }
    if (output->text == NULL && output->json == NULL) {
        show_report(sums, job);
        return 0;
    }
    if (output->text != NULL) {
        status = write_file(output->text, print_all, sums, job, err);
    }
    if (output->json != NULL && status == 0) {
        status = write_file(output->json, hvd_straggler_print_json, sums, job, err);
    }
    return status;
}
