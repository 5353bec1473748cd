/* SPDX-License-Identifier: Apache-2.0 */
/* What people call a GPU: "V100" at "18:00". */
#ifndef HVD_GPU_NAME_H
#define HVD_GPU_NAME_H

#include <stddef.h>

/* "V100" out of "GV100GL [Tesla V100 SXM2 32GB]", the name that the PCI database or the
 * driver has. Cut to size. */
void hvd_gpu_short_model(const char *name, char *text, size_t size);

/* "18:00" out of "0000:18:00.0": without a domain of 0 and a function of 0. Cut to
 * size. */
void hvd_gpu_short_bus(const char *bus, char *text, size_t size);

#endif
