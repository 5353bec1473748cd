/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that ranks in the control tests share. */
#include "tests/collectives/transport/control/control_rank.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/clock.h"

enum {
    MESSAGE_NUMBER = 7
};

int rank_meet(struct job_rank *self, struct seen *seen)
{
    const void *address;
    size_t bytes;
    int status;

    *seen = (struct seen){0};
    status = hvd_control_create(&seen->control, &seen->err);
    if (status == 0) {
        hvd_control_address(seen->control, &address, &bytes);
        job_exchange(self, address, bytes);
    }
    return status;
}

int rank_join(struct job_rank *self, struct seen *seen, int timeout_ms)
{
    int peer_fds[JOB_MAX_RANKS];
    int leader_fd = -1;

    return hvd_control_connect(seen->control, &self->boot, self->addresses, self->bytes,
                               timeout_ms, &leader_fd, -1, peer_fds, &seen->err);
}

int rank_connect(struct job_rank *self, struct seen *seen, int timeout_ms)
{
    int status = rank_meet(self, seen);

    return status != 0 ? status : rank_join(self, seen, timeout_ms);
}

int rank_give_up(struct job_rank *self, struct seen *seen, int status)
{
    job_say(self, "%d %s", status, seen->err.text);
    hvd_control_destroy(seen->control, 1000);
    return 1;
}

static void keep_payload(struct seen *seen, const struct hvd_control_event *event)
{
    seen->payload = realloc(seen->payload, event->bytes + 1);
    memcpy(seen->payload, event->payload, event->bytes);
    seen->bytes = event->bytes;
}

static void handle(void *context, const struct hvd_control_event *event)
{
    struct seen *seen = context;
    long number = 0;

    if (event->kind == HVD_CONTROL_ABORT) {
        seen->aborts++;
        seen->abort_rank = event->rank;
        snprintf(seen->text, sizeof(seen->text), "%s", event->text);
        return;
    }
    if (event->bytes >= sizeof(number)) {
        memcpy(&number, event->payload, sizeof(number));
    }
    if (event->from == HVD_CONTROL_PARENT) {
        seen->is_answered = true;
        seen->answer = number;
        keep_payload(seen, event);
    } else {
        seen->from_children++;
        seen->sum += number;
    }
}

bool rank_run(struct seen *seen, rank_condition condition, int timeout_ms)
{
    int64_t deadline_ms = hvd_clock_ms() + timeout_ms;
    struct pollfd fd = {.fd = hvd_control_fd(seen->control), .events = POLLIN};

    for (;;) {
        int64_t left_ms;

        while (hvd_control_progress(seen->control, handle, seen) > 0) {
        }
        left_ms = deadline_ms - hvd_clock_ms();
        if (condition != NULL && condition(seen)) {
            return true;
        }
        if (left_ms <= 0) {
            return false;
        }
        poll(&fd, 1, (int)left_ms);
    }
}

bool rank_has_abort(const struct seen *seen)
{
    return seen->aborts > 0;
}

bool rank_has_answer(const struct seen *seen)
{
    return seen->is_answered;
}

static bool has_all_children(const struct seen *seen)
{
    const int *ranks;

    return seen->from_children == hvd_control_children(seen->control, &ranks);
}

long rank_sum(struct seen *seen, struct job_rank *self, long number)
{
    long total;

    if (!rank_run(seen, has_all_children, 30000)) {
        return -1;
    }
    total = seen->sum + number;
    seen->from_children = 0;
    seen->sum = 0;
    if (self->boot.rank != 0) {
        seen->is_answered = false;
        if (hvd_control_send_up(seen->control, MESSAGE_NUMBER, &total, sizeof(total)) !=
                0 ||
            !rank_run(seen, rank_has_answer, 30000)) {
            return -1;
        }
        total = seen->answer;
    }
    return hvd_control_send_down(seen->control, MESSAGE_NUMBER, &total, sizeof(total)) ==
                   0
               ? total
               : -1;
}

void rank_leave(struct seen *seen)
{
    hvd_control_expect_close(seen->control);
    hvd_control_destroy(seen->control, 5000);
    free(seen->payload);
    seen->control = NULL;
    seen->payload = NULL;
}

int rank_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}
