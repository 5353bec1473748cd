/* SPDX-License-Identifier: Apache-2.0 */
/* The destination of the straggler report. */
#include "collectives/trace/straggler_output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"

static const char *const hosts[] = {"n1"};
static const struct hvd_straggler_rank nobody;
static const struct hvd_straggler_sums sums = {
    .size = 1, .is_complete = true, .ranks = &nobody};
static const struct hvd_straggler_job job = {.hosts = hosts, .elapsed_us = 1000000};

static char directory[] = "/tmp/hvd-straggler-XXXXXX";

/* Returns the content of a file in the test's directory; "none": there is no such
 * file. */
static const char *content(const char *name)
{
    static char text[4096];
    char path[128];
    size_t bytes;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "r");
    if (file == NULL) {
        return "none";
    }
    bytes = fread(text, 1, sizeof(text) - 1, file);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

static bool begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    fputs(text, file);
    fclose(file);
}

static void test_files(void)
{
    struct hvd_straggler_output output;

    put("late", "of an earlier job");
    tap_ok(hvd_straggler_output_init(&output, "late", NULL) == 0 &&
               strcmp(content("late"), "") == 0 && strcmp(content("late.json"), "") == 0,
           "the files exist, and are empty, from the beginning");
    if (chdir("/") != 0) {
        tap_note("cannot leave the directory");
    }
    tap_ok(
        hvd_straggler_output_write(&output, &sums, &job, NULL) == 0 &&
            begins(content("late"), "hvd: straggler report, 1 rank, 1.0 s") &&
            begins(content("late.json"), "{\n  \"complete\": true"),
        "table and JSON are written there even if the program has changed its directory");
    hvd_straggler_output_finish(&output);
}

/* A report written while the job runs may be longer than the last one. */
static void test_update(void)
{
    struct hvd_straggler_sums open = sums;
    struct hvd_straggler_output output;
    char path[128];

    open.is_complete = false;
    snprintf(path, sizeof(path), "%s/updated.json", directory);
    tap_ok(hvd_straggler_output_init(&output, path, NULL) == 0 && output.is_plain &&
               hvd_straggler_output_write(&output, &open, &job, NULL) == 0 &&
               strstr(content("updated.json"), "\"complete\": false") != NULL,
           "a report can be written while the job runs");
    hvd_straggler_output_write(&output, &sums, &job, NULL);
    tap_ok(strstr(content("updated.json"), "\"complete\": true") != NULL &&
               strcmp(content("updated.json") + strlen(content("updated.json")) - 4,
                      "}\n}\n") == 0 &&
               strstr(content("updated.json"), "}\n}\n}") == NULL,
           "a longer report from before leaves nothing in the last one");
    hvd_straggler_output_finish(&output);
}

static void test_json(void)
{
    struct hvd_straggler_output output;
    char path[128];

    snprintf(path, sizeof(path), "%s/own.json", directory);
    tap_ok(hvd_straggler_output_init(&output, path, NULL) == 0 &&
               hvd_straggler_output_write(&output, &sums, &job, NULL) == 0 &&
               begins(content("own.json"), "{") &&
               strcmp(content("own.json.json"), "none") == 0,
           "a name that ends in .json gets the JSON");
    hvd_straggler_output_finish(&output);
}

/* Captures the output of a function on the standard error stream. */
static void capture(const struct hvd_straggler_output *output)
{
    char path[128];
    int old = dup(STDERR_FILENO);
    int file;

    snprintf(path, sizeof(path), "%s/captured", directory);
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    hvd_straggler_output_write(output, &sums, &job, NULL);
    dup2(old, STDERR_FILENO);
    close(old);
    close(file);
}

static void test_stream(void)
{
    struct hvd_straggler_output output;

    tap_ok(hvd_straggler_output_init(&output, "1", NULL) == 0 && output.text == NULL,
           "HVD_REPORT=1 makes no file");
    capture(&output);
    tap_ok(begins(content("captured"), "hvd: straggler report, 1 rank"),
           "HVD_REPORT=1 prints on the standard error stream");
    hvd_straggler_output_finish(&output);
}

static void test_failures(void)
{
    struct hvd_straggler_output output;
    struct hvd_error err = {0};

    tap_ok(hvd_straggler_output_init(&output, "/nowhere/late", &err) == HVD_ERR_SYS &&
               strstr(err.text, "/nowhere/late") != NULL,
           "a directory that does not exist is an error at the beginning: %s", err.text);
    capture(&output);
    tap_ok(begins(content("captured"), "hvd: straggler report, 1 rank"),
           "after such an error, the report goes to the standard error stream");
    hvd_straggler_output_finish(&output);
    tap_ok(hvd_straggler_output_init(&output, "/nowhere/late.html", &err) ==
                   HVD_ERR_SYS &&
               output.page == NULL && strstr(err.text, ".html") != NULL,
           "a page that cannot be written is an error at the beginning: %s", err.text);
    capture(&output);
    tap_ok(begins(content("captured"), "hvd: straggler report, 1 rank"),
           "and the table goes to the standard error stream instead");
    hvd_straggler_output_finish(&output);
}

int main(void)
{
    char command[128];

    if (mkdtemp(directory) == NULL || chdir(directory) != 0) {
        printf("1..0 # SKIP no directory for files\n");
        return 0;
    }
    test_files();
    test_update();
    test_json();
    test_stream();
    test_failures();
    snprintf(command, sizeof(command), "rm -r %s", directory);
    if (system(command) != 0) {
        tap_note("%s stays", directory);
    }
    return tap_done();
}
