/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/nccl/nccl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contrib/info/nccl/report.h"
#include "gpu_binding/base/nccl_files.h"

enum {
    /* of a line; what follows is ignored */
    LINE_BYTES = 4096,
};

struct listing {
    struct hvd_info_nccl_file *files; /* [count] */
    int count;
    int room;
};

/* --- the directory --- */

static int grow(struct listing *listing, struct hvd_error *err)
{
    const int room = 2 * listing->room + 64;
    struct hvd_info_nccl_file *files =
        realloc(listing->files, (size_t)room * sizeof(*files));

    if (files == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d files", room);
    }
    listing->files = files;
    listing->room = room;
    return 0;
}

static int list_files(const char *path, struct listing *listing, struct hvd_error *err)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    int status = 0;

    if (directory == NULL) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot read the folder %s: %m; expected the folder that --hvd="
                        "nccl=DIR or HVD_NCCL_FILES named for the job",
                        path);
    }
    while (status == 0 && (entry = readdir(directory)) != NULL) {
        if (listing->count == listing->room) {
            status = grow(listing, err);
        }
        if (status == 0 &&
            hvd_info_nccl_file_parse(entry->d_name, &listing->files[listing->count])) {
            listing->count++;
        }
    }
    closedir(directory);
    if (status != 0) {
        return status;
    }
    if (listing->files == NULL || listing->count == 0) {
        return hvd_fail(err, HVD_ERR_STATE,
                        "%s has no file nccl.RANK.HOST.PID: either no rank has started "
                        "NCCL, or the job had another folder or its own "
                        "NCCL_DEBUG_FILE; start it with --hvd=nccl=DIR",
                        path);
    }
    qsort(listing->files, (size_t)listing->count, sizeof(*listing->files),
          hvd_info_nccl_files_compare);
    return 0;
}

/* --- the files --- */

static int open_file(const char *directory, const struct hvd_info_nccl_file *file,
                     FILE **out)
{
    char path[PATH_MAX + HVD_INFO_NCCL_HOST_BYTES + 64];
    char rank[16] = HVD_NCCL_FILE_NO_RANK;
    struct stat found;
    int fd;

    if (file->rank >= 0) {
        snprintf(rank, sizeof(rank), "%d", file->rank);
    }
    if (snprintf(path, sizeof(path), "%s/%s%s.%s.%ld", directory, HVD_NCCL_FILE_PREFIX,
                 rank, file->host, file->pid) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    /* O_NONBLOCK: a pipe of this name must not block */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    *out = fdopen(fd, "r");
    if (*out == NULL) {
        close(fd);
        return -1;
    }
    return 0;
}

static int add_lines(struct hvd_info_nccl_kinds *kinds, int index, FILE *in,
                     struct hvd_error *err)
{
    char line[LINE_BYTES];
    bool is_rest = false; /* of a line that is longer than the buffer */
    int status = 0;

    /* A crashed node may leave null bytes: also find the end of a line behind them. */
    memset(line, 1, sizeof(line));
    while (status == 0 && fgets(line, sizeof(line), in) != NULL) {
        if (!is_rest) {
            status = hvd_info_nccl_kinds_add(kinds, index, line, err);
        }
        is_rest = memchr(line, '\n', sizeof(line)) == NULL;
        memset(line, 1, sizeof(line));
    }
    return status;
}

/* Reads all files. One that cannot be read is left out, with a warning. */
static int read_files(struct hvd_info_nccl_report *report, struct hvd_error *err)
{
    int status = 0;

    for (int i = 0; i < report->file_count && status == 0; i++) {
        const struct hvd_info_nccl_file *file = &report->files[i];
        FILE *in = NULL;

        if (open_file(report->directory, file, &in) != 0) {
            fprintf(stderr,
                    "hvd-info: cannot read the file of rank %d on %s, process %ld: %s\n",
                    file->rank, file->host, file->pid, strerror(errno));
            continue;
        }
        status = add_lines(&report->kinds, i, in, err);
        fclose(in);
    }
    return status;
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Reads the files and prints the report. */
static int sum_up(struct hvd_info_nccl_report *report, bool is_json,
                  struct hvd_error *err)
{
    int status = read_files(report, err);

    if (status != 0) {
        return status;
    }
    hvd_info_nccl_kinds_sort(&report->kinds);
    status = is_json ? hvd_info_nccl_json(report, stdout, err)
                     : hvd_info_nccl_print(report, stdout, err);
    if (status == 0 && fflush(stdout) != 0) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot write to standard output: %m");
    }
    return status;
}

/* Sums up a listing that is not empty. */
static int sum_up_listing(const char *directory, const struct listing *listing,
                          bool is_json, struct hvd_error *err)
{
    struct hvd_info_nccl_report report = {
        .directory = directory, .files = listing->files, .file_count = listing->count};
    const char **hosts = malloc((size_t)listing->count * sizeof(*hosts));
    int status;

    if (hosts == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d files", listing->count);
    }
    for (int i = 0; i < listing->count; i++) {
        hosts[i] = listing->files[i].host;
    }
    qsort(hosts, (size_t)listing->count, sizeof(*hosts), compare_texts);
    report.kinds.hosts = hosts;
    report.kinds.host_count = listing->count;
    status = sum_up(&report, is_json, err);
    hvd_info_nccl_kinds_finish(&report.kinds);
    free(hosts);
    return status;
}

int hvd_info_nccl(const char *directory, bool is_json, struct hvd_error *err)
{
    struct listing listing = {0};
    int status = list_files(directory, &listing, err);

    if (status == 0 && listing.files != NULL && listing.count > 0) {
        status = sum_up_listing(directory, &listing, is_json, err);
    }
    free(listing.files);
    return status;
}
