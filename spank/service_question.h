/* SPDX-License-Identifier: Apache-2.0 */
/* One question of a task to the rendezvous service of its step. A program of its own asks
 * it, because a process of Slurm does not load libsodium. */
#ifndef HVD_SPANK_SERVICE_QUESTION_H
#define HVD_SPANK_SERVICE_QUESTION_H

#include "gpu_binding/base/error.h"

#define HVD_SPANK_ADDRESS_BYTES 136 /* "ADDRESS PORT" */

struct hvd_spank_service_question {
    const char *program; /* hvd-rendezvous */
    const char *service; /* HOST:PORT:KEY */
    int timeout_ms; /* for the program to answer */
};

/* Tells the other ranks this place, or learns it from rank 0 if it is empty. Returns 0,
 * or a failure whose text says why there is no answer. The program inherits no descriptor
 * but those of 0 to 2, and has ended afterwards. */
int hvd_spank_service_question_ask(const struct hvd_spank_service_question *question,
                                   char host_port[HVD_SPANK_ADDRESS_BYTES],
                                   struct hvd_error *err);

#endif
