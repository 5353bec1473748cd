/* SPDX-License-Identifier: Apache-2.0 */
/* Closes descriptors in forked children. */
#include "gpu_binding/base/fork_close.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu_binding/base/hvd_status.h"

/* One list per process, because fork handlers get no argument. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int *descriptors;
static int count;
static int capacity;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Calls only functions that are allowed between fork and exec in a process with
 * threads. */
static void after_fork_in_child(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int i = 0; i < count; i++) {
        if (null < 0 || dup3(null, descriptors[i], O_CLOEXEC) < 0) {
            close(descriptors[i]);
        }
    }
    if (null >= 0) {
        close(null);
    }
    count = 0;
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void hvd_fork_close_watch(void)
{
    pthread_once(&once, watch_forks);
}

int hvd_fork_close_add(int fd)
{
    int status = 0;

    hvd_fork_close_watch();
    pthread_mutex_lock(&lock);
    if (count == capacity) {
        int larger = capacity == 0 ? 16 : 2 * capacity;
        int *grown = realloc(descriptors, (size_t)larger * sizeof(*grown));

        if (grown != NULL) {
            descriptors = grown;
            capacity = larger;
        } else {
            status = HVD_ERR_NOMEM;
        }
    }
    if (status == 0) {
        descriptors[count++] = fd;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void hvd_fork_close_now(int fd)
{
    int saved = errno;

    if (fd < 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        if (descriptors[i] == fd) {
            descriptors[i] = descriptors[--count];
            break;
        }
    }
    if (count == 0) {
        free(descriptors);
        descriptors = NULL;
        capacity = 0;
    }
    close(fd);
    pthread_mutex_unlock(&lock);
    errno = saved;
}
