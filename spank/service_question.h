/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a task ask the rendezvous service of its step. A separate program asks it,
 * because the processes of Slurm do not load libsodium. */
#ifndef HVD_SPANK_SERVICE_QUESTION_H
#define HVD_SPANK_SERVICE_QUESTION_H

#include "gpu_binding/base/error.h"

#define HVD_SPANK_ADDRESS_BYTES 136 /* "ADDRESS PORT PORT" */

struct hvd_spank_service_question {
    const char *program; /* path of hvd-rendezvous */
    const char *service; /* HOST:PORT:KEY */
    int rank; /* of the task that asks */
    int timeout_ms; /* how long to wait for the program's answer */
};

/* If host_port is not empty, publishes it for the other ranks. If it is empty, waits for
 * the text that rank 0 publishes, and writes it to host_port. Returns 0, or a failure
 * with the reason in err. The program inherits only the descriptors 0 to 2, and has ended
 * when this returns. */
int hvd_spank_service_question_ask(const struct hvd_spank_service_question *question,
                                   char host_port[HVD_SPANK_ADDRESS_BYTES],
                                   struct hvd_error *err);

#endif
