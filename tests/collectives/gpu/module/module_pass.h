/* SPDX-License-Identifier: Apache-2.0 */
/* One device of hvd_gpu.so on the stand-in, for tests of the module by itself. */
#ifndef MODULE_PASS_H
#define MODULE_PASS_H

#include "collectives/gpu/gpu_module.h"

enum {
    PASS_COUNT = 1000, /* floats */
    PASS_BYTES = PASS_COUNT * (int)sizeof(float),
};

/* What one pass has opened. */
struct pass {
    struct hvd_gpu_device *device;
    struct hvd_gpu_comm *comm;
    struct hvd_gpu_event *ready, *done;
    void *memory;
    void *pinned; /* of the host, as large */
    struct hvd_error err;
};

extern const struct hvd_gpu_module *pass_module;
extern float pass_in[PASS_COUNT], pass_out[PASS_COUNT]; /* host memory */

bool pass_load(const char *path); /* of the module; false, and the reason printed */

/* Opens everything, of which pass_close closes what is there; a failure is in
 * pass->err. */
int pass_open(struct pass *pass);
int pass_open_device(struct pass *pass, int device); /* it alone */
void pass_close(struct pass *pass);
bool pass_has_left(void); /* something that was not given back */

/* Submits it, and waits until it is on its stream; until an event is reached. */
int pass_run(struct pass *pass, struct hvd_gpu_work *work);
int pass_await(struct pass *pass, struct hvd_gpu_event *event);

/* pass_in to the device, where it is doubled, to pass_out. */
int pass_go_around(struct pass *pass);
bool pass_is_twice(void);

void pass_ignore(void *context); /* as wake */
void pass_pause_ms(long ms);

#endif
