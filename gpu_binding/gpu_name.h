/* SPDX-License-Identifier: Apache-2.0 */
/* Shortens the names of GPUs for people: "V100" at "18:00". */
#ifndef HVD_GPU_NAME_H
#define HVD_GPU_NAME_H

#include <stddef.h>

/* Writes "V100" for "GV100GL [Tesla V100 SXM2 32GB]", the name in the PCI database or the
 * driver. Cut to size. */
void hvd_gpu_short_model(const char *name, char *text, size_t size);

/* Writes "18:00" for "0000:18:00.0": omits a domain of 0 and a function of 0. Cut to
 * size. */
void hvd_gpu_short_bus(const char *bus, char *text, size_t size);

#endif
