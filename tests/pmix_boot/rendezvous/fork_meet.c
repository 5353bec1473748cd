/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of an elastic job forks while it waits for the others in hvd_init: fork_meet
 * FILE. Slot 1 joins only after slot 0 has forked and has created the file. Slot 0's
 * child also calls hvd and checks the answer. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectives/hvd.h"

enum {
    LIMIT_S = 20, /* far more than a busy machine needs */
    LOOKS = 10,
};

static _Atomic int is_told; /* the child got the expected error */

/* Returns the state of the main thread as the kernel prints it. */
static char state(void)
{
    char line[256] = "";
    const char *end;
    FILE *file = fopen("/proc/self/stat", "re");

    if (file != NULL) {
        if (fgets(line, sizeof(line), file) == NULL) {
            line[0] = '\0';
        }
        fclose(file);
    }
    end = strrchr(line, ')');
    return end != NULL && end[1] == ' ' ? end[2] : '?';
}

/* Waits until the main thread seems to wait in hvd_init. If that is wrong, the fork
 * happens outside hvd_init and tests nothing. */
static void await_meeting(void)
{
    for (int asleep = 0; asleep < LOOKS;) {
        usleep(2000);
        asleep = state() == 'S' ? asleep + 1 : 0;
    }
}

static int be_child(void)
{
    struct hvd_error err = {0};
    int status;

    alarm(LIMIT_S);
    status = hvd_init(&err);
    return status == HVD_ERR_STATE && strstr(err.text, "forked") != NULL &&
                   hvd_shutdown() == 0
               ? 0
               : 1;
}

static void *fork_in_meeting(void *arg)
{
    const char *path = arg;
    int code = -1;
    pid_t child;
    FILE *file;

    await_meeting();
    child = fork();
    if (child == 0) {
        _exit(be_child());
    }
    file = fopen(path, "we");
    if (file != NULL) {
        fclose(file);
    }
    waitpid(child, &code, 0);
    is_told = code == 0;
    return NULL;
}

static bool has_forked(const char *path)
{
    time_t limit = time(NULL) + LIMIT_S;
    struct stat ignored;

    while (stat(path, &ignored) != 0) {
        if (time(NULL) >= limit) {
            return false;
        }
        usleep(1000);
    }
    return true;
}

int main(int argc, char **argv)
{
    const char *slot = getenv("HOROVOD_RANK");
    const bool waits = slot != NULL && strcmp(slot, "1") == 0;
    struct hvd_error err = {0};
    pthread_t forker;
    bool good = true;

    if (argc != 2) {
        return 2;
    }
    if (waits) {
        good = has_forked(argv[1]);
        puts(good ? "forked while a rank waits" : "a rank that waits cannot fork");
    } else {
        pthread_create(&forker, NULL, fork_in_meeting, argv[1]);
    }
    if (hvd_init(&err) != 0) {
        puts(err.text);
        return 1;
    }
    if (!waits) {
        pthread_join(forker, NULL);
        puts(is_told ? "the child is told" : "the child is not told");
        good = is_told;
    }
    hvd_shutdown();
    return good ? 0 : 1;
}
