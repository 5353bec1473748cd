/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of README.md. */
#ifndef HVD_SIMULATE_TABLES_H
#define HVD_SIMULATE_TABLES_H

#include "gpu_binding/base/error.h"

/* Markdown to standard output. */
int simulate_tables(struct hvd_error *err);

#endif
