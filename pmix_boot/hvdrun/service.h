/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the rendezvous service of hvdrun's job, a program that is installed with
 * hvdrun. */
#ifndef HVDRUN_SERVICE_H
#define HVDRUN_SERVICE_H

#include "pmix_boot/rendezvous/start.h"

/* Finds the program and starts it; the caller ends it with hvd_rendezvous_stop. */
int hvdrun_service_start(const struct hvd_rendezvous_rules *rules,
                         struct hvd_rendezvous_service *service, struct hvd_error *err);

#endif
