/* SPDX-License-Identifier: Apache-2.0 */
/* Records which rank failed first: ranks add lines to a file, and hvdrun reads them. */
#include "pmix_boot/cause.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/hvd_status.h"

enum {
    MOST_PROCESSES = 1 << 20
};

/* --- telling --- */

/* Returns the launcher's number of this process, WHO in the file. */
static int own_number(void)
{
    const char *number = getenv(HVD_ENV_RANK);

    return number != NULL ? atoi(number) : 0;
}

/* Adds a line with one write, so that a process that is killed meanwhile adds all or
 * nothing. */
static void add_line(const char *line, size_t bytes)
{
    const char *path = getenv(HVD_ENV_CAUSE);
    int fd =
        path != NULL
            ? open(path,
                   O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                   0600)
            : -1;

    if (fd >= 0) {
        (void)!write(fd, line, bytes);
        close(fd);
    }
}

void hvd_cause_tell(int rank, int teller, const char *text)
{
    const int most = (int)sizeof(((struct hvd_cause *)NULL)->text) - 1;
    const int length = (int)strcspn(text, "\n");
    const int own = own_number();
    char line[320];
    int bytes =
        snprintf(line, sizeof(line), "failed %d %d %d %.*s\n", own, rank < 0 ? own : rank,
                 rank < 0 ? own : teller, length < most ? length : most, text);

    add_line(line, (size_t)bytes);
}

void hvd_cause_miss(const char *operation)
{
    const int most = (int)sizeof(((struct hvd_cause *)NULL)->operation) - 1;
    const int length = (int)strcspn(operation, "\n");
    char line[200];
    int bytes = snprintf(line, sizeof(line), "missed %d %.*s\n", own_number(),
                         length < most ? length : most, operation);

    add_line(line, (size_t)bytes);
}

void hvd_cause_begin(void)
{
    char line[32];
    int bytes = snprintf(line, sizeof(line), "begin %d\n", own_number());

    add_line(line, (size_t)bytes);
}

/* --- reading --- */

struct reader {
    int *jobs; /* [count]: how many jobs each process has joined so far */
    int count;
    int latest; /* the largest of these numbers */
    bool has_cause;
    struct hvd_cause cause; /* first failure of the latest job */
};

/* Returns a pointer to the number of jobs that the process has joined; NULL if memory is
 * out or `who` is out of range. */
static int *jobs_of(struct reader *reader, int who)
{
    if (who < 0 || who >= MOST_PROCESSES) {
        return NULL;
    }
    if (who >= reader->count) {
        int *more = realloc(reader->jobs, ((size_t)who + 1) * sizeof(more[0]));

        if (more == NULL) {
            return NULL;
        }
        memset(more + reader->count, 0,
               (size_t)(who + 1 - reader->count) * sizeof(more[0]));
        reader->jobs = more;
        reader->count = who + 1;
    }
    return &reader->jobs[who];
}

static int take_begin(struct reader *reader, int who)
{
    int *jobs = jobs_of(reader, who);

    if (jobs == NULL) {
        return HVD_ERR_NOMEM;
    }
    (*jobs)++;
    if (*jobs > reader->latest) {
        reader->latest = *jobs;
        reader->has_cause = false;
    }
    return 0;
}

/* Records the first failure of the latest job; ignores a late report about an earlier
 * job. If another rank reports the failure, the failed rank was missed. */
static int take_failure(struct reader *reader, int who, const struct hvd_cause *cause)
{
    const int *jobs = jobs_of(reader, who);

    if (jobs == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (*jobs == reader->latest && !reader->has_cause) {
        reader->cause = *cause;
        reader->has_cause = true;
    }
    if (*jobs == reader->latest && cause->rank == reader->cause.rank) {
        reader->cause.is_missed |= cause->teller != cause->rank;
    }
    return 0;
}

static int take_miss(struct reader *reader, int who, const char *operation)
{
    const int *jobs = jobs_of(reader, who);
    struct hvd_cause *cause = &reader->cause;

    if (jobs == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (*jobs == reader->latest && reader->has_cause && who != cause->rank) {
        cause->is_missed = true;
        if (cause->operation[0] == '\0') {
            cause->waiter = who;
            snprintf(cause->operation, sizeof(cause->operation), "%s", operation);
        }
    }
    return 0;
}

static int take_line(struct reader *reader, const char *line)
{
    struct hvd_cause cause = {0};
    char operation[sizeof(cause.operation)] = "";
    int who;

    if (sscanf(line, "begin %d", &who) == 1) {
        return take_begin(reader, who);
    }
    if (sscanf(line, "missed %d%*1[ ]%159[^\n]", &who, operation) >= 1) {
        return take_miss(reader, who, operation);
    }
    if (sscanf(line, "failed %d %d %d%*1[ ]%255[^\n]", &who, &cause.rank, &cause.teller,
               cause.text) >= 3) {
        return take_failure(reader, who, &cause);
    }
    return 0;
}

int hvd_cause_read(const char *path, struct hvd_cause *out)
{
    struct reader reader = {0};
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t bytes;
    int status = 0;

    while (file != NULL && status == 0 && (bytes = getline(&line, &room, file)) > 0 &&
           line[bytes - 1] == '\n') {
        status = take_line(&reader, line);
    }
    if (file != NULL) {
        fclose(file);
    }
    free(line);
    free(reader.jobs);
    if (status == 0 && !reader.has_cause) {
        status = HVD_ERR_SYS;
    }
    if (status == 0) {
        *out = reader.cause;
    }
    return status;
}
