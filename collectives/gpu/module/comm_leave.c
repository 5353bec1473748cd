/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators that go before their device does: no step waits for another rank, for a launcher
 * that waited here for one that waits in a collective for this one would do so for ever. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"

void hvd_comm_destroy(struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_device *device = comm->device;

    pthread_mutex_lock(&device->lock);
    comm->is_leaving = true;
    device->leaving++;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

/* Whether the device is done with what was put on its stream. As hvd_event_test. */
static int test_use(struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_device *device = comm->device;
    int status;

    if (comm->last_use == NULL) {
        status = hvd_event_create(device, &comm->last_use, NULL);
        status = status != 0 ? status
                             : hvd_event_record(comm->last_use,
                                                device->streams[comm->queue], NULL);
        if (status != 0) {
            return status;
        }
    }
    return hvd_event_test(comm->last_use, NULL);
}

bool hvd_comm_leave(struct hvd_gpu_comm *comm)
{
    int status = hvd_comm_handle(comm) == NULL ? 0 : test_use(comm);

    if (status == 0) {
        status = hvd_comm_finish(comm);
    }
    if (status == HVD_INPROGRESS) {
        return false;
    }
    hvd_event_destroy(comm->last_use);
    comm->last_use = NULL;
    /* What cannot be asked, or not be ended, goes with the device. */
    comm->has_left = true;
    return status == 0;
}
