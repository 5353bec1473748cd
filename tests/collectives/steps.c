/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a training job that repeat until they are replayed. */
#include "tests/collectives/steps.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/collectives/calls.h"

static float values[STEP_TENSORS][STEP_ELEMENTS];
/* of the job when a tensor started; step_is_right may run after shutdown */
static int size;

struct hvd_request *step_start(int tensor, struct hvd_error *err)
{
    static const int64_t shape[] = {STEP_ELEMENTS};
    float *data = values[tensor];
    struct hvd_request *request = NULL;
    struct hvd_error ignored = {0};
    char name[16] = "";
    struct hvd_tensor described = call_tensor(name, HVD_FLOAT32, shape, 1, data, data);
    int status;

    snprintf(name, sizeof(name), "step.%d", tensor);
    for (int i = 0; i < STEP_ELEMENTS; i++) {
        data[i] = (float)(tensor + i % 7);
    }
    size = hvd_size();
    status = hvd_allreduce_start(&described, 1, HVD_SUM, 1, 1, 0, &request,
                                 err != NULL ? err : &ignored);
    if (status != 0 && err == NULL) {
        call_finish(status, &request, &ignored);
    }
    return request;
}

bool step_is_right(int tensor)
{
    bool good = true;

    for (int i = 0; i < STEP_ELEMENTS && good; i++) {
        good = values[tensor][i] == (float)(size * (tensor + i % 7));
    }
    return good;
}

static int play_step(bool *good, struct hvd_error *err)
{
    struct hvd_request *requests[STEP_TENSORS];
    int status = 0, started = 0;

    while (started < STEP_TENSORS && status == 0) {
        requests[started] = step_start(started, err);
        status = err->status;
        started += status == 0 ? 1 : 0;
    }
    for (int i = 0; i < started; i++) {
        if (status == 0) {
            status = hvd_wait(requests[i], err);
        }
        *good &= status != 0 || step_is_right(i);
        hvd_request_free(requests[i]);
    }
    return status;
}

int steps_try(int count, bool *good, struct hvd_error *err)
{
    int status = 0;

    for (int step = 0; step < count && status == 0; step++) {
        status = play_step(good, err);
    }
    return status;
}

bool steps_play(int count)
{
    struct hvd_error err = {0};
    bool good = true;
    int status = steps_try(count, &good, &err);

    if (status != 0) {
        call_finish(status, NULL, &err);
    }
    return good;
}
