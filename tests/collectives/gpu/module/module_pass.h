/* SPDX-License-Identifier: Apache-2.0 */
/* A device of hvd_gpu.so on the stand-in, for tests of the module by itself. A pass opens
 * the device, runs work on it, and closes it. */
#ifndef MODULE_PASS_H
#define MODULE_PASS_H

#include "collectives/gpu/gpu_module.h"

enum {
    PASS_COUNT = 1000, /* floats */
    PASS_BYTES = PASS_COUNT * (int)sizeof(float),
};

/* The objects that one pass has opened. */
struct pass {
    struct hvd_gpu_device *device;
    struct hvd_gpu_comm *comm;
    struct hvd_gpu_event *ready, *done;
    void *memory;
    void *pinned; /* host memory of the same size */
    struct hvd_error err;
};

extern const struct hvd_gpu_module *pass_module;
extern float pass_in[PASS_COUNT], pass_out[PASS_COUNT]; /* host memory */

bool pass_load(const char *path); /* loads the module; if that fails, prints the reason */

/* Opens everything. A failure is in pass->err; pass_close closes what was opened. */
int pass_open(struct pass *pass);
int pass_open_device(struct pass *pass, int device); /* opens only the device */
void pass_close(struct pass *pass);
bool pass_has_left(void); /* whether some objects were not released */

/* pass_run submits the work and waits until it is on its stream. pass_await waits until
 * the device has reached the event. */
int pass_run(struct pass *pass, struct hvd_gpu_work *work);
int pass_await(struct pass *pass, struct hvd_gpu_event *event);

/* Copies pass_in to the device, doubles it there, and copies it to pass_out. */
int pass_go_around(struct pass *pass);
bool pass_is_twice(void);

void pass_ignore(void *context); /* does nothing; for the callback `wake` */
void pass_pause_ms(long ms);

#endif
