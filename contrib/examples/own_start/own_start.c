/* SPDX-License-Identifier: Apache-2.0 */
/* A job without a launcher of hvd. Each process is told its rank and the number of ranks,
 * and the ranks find each other through files in a folder that all of them share.
 *
 *   cc own_start.c $(pkg-config --cflags --libs hvd) -o own_start
 *   mkdir /shared/job1                          # a new private folder for each job
 *   for rank in 0 1 2; do ./own_start /shared/job1 $rank 3 & done; wait
 *
 * To use another kind of store, replace put_file and get_file. The rest of hvd.h works as
 * usual. */
#include <errno.h>
#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PATH_BYTES = 4096,
    MOST_BYTES = 1 << 20
};

static int fail_file(struct hvd_error *error, const char *path)
{
    snprintf(error->text, sizeof(error->text), "cannot read or write %.400s", path);
    return -1;
}

/* Writes the value to a new file and renames it, so that other ranks see a complete file
 * or none. */
static int put_file(void *folder, const char *key, const void *value, size_t bytes,
                    struct hvd_error *error)
{
    char path[PATH_BYTES], unfinished[PATH_BYTES];
    FILE *file;
    int is_written;

    snprintf(path, sizeof(path), "%s/%s", (const char *)folder, key);
    snprintf(unfinished, sizeof(unfinished), "%s/new.%s", (const char *)folder, key);
    file = fopen(unfinished, "w");
    is_written = file != NULL && fwrite(value, 1, bytes, file) == bytes;
    is_written = file != NULL && fclose(file) == 0 && is_written;
    return is_written && rename(unfinished, path) == 0 ? 0 : fail_file(error, path);
}

/* Reads a file that put_file has written. It need not wait for the file, because hvd
 * calls it again. */
static int get_file(void *folder, const char *key, int timeout_ms, void **value,
                    size_t *bytes, struct hvd_error *error)
{
    char path[PATH_BYTES];
    FILE *file;

    (void)timeout_ms;
    snprintf(path, sizeof(path), "%s/%s", (const char *)folder, key);
    file = fopen(path, "r");
    if (file == NULL) {
        return errno == ENOENT ? HVD_INPROGRESS : fail_file(error, path);
    }
    *value = malloc(MOST_BYTES);
    *bytes = *value != NULL ? fread(*value, 1, MOST_BYTES, file) : 0;
    fclose(file);
    return *value != NULL ? 0 : fail_file(error, path);
}

static void check_status(int status, const struct hvd_error *error)
{
    if (status != 0) {
        fprintf(stderr, "own_start: %s\n", error->text);
        exit(1);
    }
}

/* Returns the sum of the numbers of all ranks. */
static int32_t sum_of_ranks(void)
{
    int32_t sum = hvd_rank();
    const struct hvd_tensor tensor = {.name = "sum",
                                      .input = &sum,
                                      .output = &sum,
                                      .dtype = HVD_INT32,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    struct hvd_error error;

    check_status(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1.0, 1.0, HVD_SET_GLOBAL,
                                     &request, &error),
                 &error);
    check_status(hvd_wait(request, &error), &error);
    hvd_request_free(request);
    return sum;
}

int main(int argc, char **argv)
{
    struct hvd_store store = {.put = put_file, .get = get_file};
    struct hvd_error error;

    if (argc != 4) {
        fprintf(stderr, "usage: own_start FOLDER RANK SIZE\n");
        return 2;
    }
    store.context = argv[1];
    /* The store can be used again after hvd_shutdown. */
    for (int start = 1; start <= 2; start++) {
        check_status(hvd_init_with(atoi(argv[2]), atoi(argv[3]), &store, &error), &error);
        printf("start %d: rank %d of %d, sum %d\n", start, hvd_rank(), hvd_size(),
               (int)sum_of_ranks());
        hvd_shutdown();
    }
    return 0;
}
