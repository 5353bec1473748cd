/* SPDX-License-Identifier: Apache-2.0 */
/* Binding tables of nodes, equal ones folded into one. */
#ifndef HVD_SPANK_SHAPES_H
#define HVD_SPANK_SHAPES_H

#include <stdio.h>

#include "gpu_binding/base/error.h"

struct hvd_shape {
    char *text;
    char hosts[512]; /* the first names, in order of arrival */
    int host_count;
};

/* Zeroed: none. */
struct hvd_shapes {
    int count;
    struct hvd_shape *shapes;
    int host_count; /* of all shapes */
};

/* Takes a copy of text. Returns 0 or HVD_ERR_NOMEM. */
int hvd_shapes_add(struct hvd_shapes *shapes, const char *host, const char *text);

/* Prints each shape below the names of its hosts. */
void hvd_shapes_print(const struct hvd_shapes *shapes, FILE *out);

/* Frees and zeroes. */
void hvd_shapes_finish(struct hvd_shapes *shapes);

#endif
