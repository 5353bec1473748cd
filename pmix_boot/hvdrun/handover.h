/* SPDX-License-Identifier: Apache-2.0 */
/* hvdrun becomes another launcher. */
#ifndef HVDRUN_HANDOVER_H
#define HVDRUN_HANDOVER_H

#include "pmix_boot/hvdrun/way.h"

/* Does not return but with the reason why the other launcher cannot be started. */
int hvdrun_handover(const struct hvdrun_options *options, enum hvdrun_way way,
                    struct hvd_error *err);

#endif
