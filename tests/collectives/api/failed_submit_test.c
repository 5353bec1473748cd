/* SPDX-License-Identifier: Apache-2.0 */
/* The submission of one tensor fails, which ends the job. All other tensors of its
 * request must end, too: none may be lost between the queue of submissions and the
 * agreement. Linked with --wrap=hvd_agreement_submit. */
#include <string.h>

#include "collectives/agreement/agreement.h"
#include "collectives/request/request.h"
#include "collectives/hvd.h"
#include "tests/tap.h"

enum {
    TENSORS = 6,
    LIMIT_MS = 20000
};

int __real_hvd_agreement_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                                int64_t now_ns);
int __wrap_hvd_agreement_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                                int64_t now_ns);

int __wrap_hvd_agreement_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                                int64_t now_ns)
{
    bool fails = strcmp(entry->descriptor.name, "x1") == 0;
    int status = __real_hvd_agreement_submit(agreement, entry, now_ns);

    return fails ? HVD_ERR_NOMEM : status;
}

/* Starts one request with all tensors, so that they are submitted at the same time. */
static int start(struct hvd_request **request, struct hvd_error *err)
{
    static const char *const names[TENSORS] = {"x0", "x1", "x2", "x3", "x4", "x5"};
    static float values[TENSORS];
    struct hvd_tensor tensors[TENSORS];

    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = (struct hvd_tensor){.name = names[i],
                                         .input = &values[i],
                                         .output = &values[i],
                                         .dtype = HVD_FLOAT32,
                                         .device = HVD_DEVICE_CPU};
    }
    return hvd_allreduce_start(tensors, TENSORS, HVD_SUM, 1, 1, 0, request, err);
}

int main(void)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status;

    if (hvd_init(&err) != 0 || start(&request, &err) != 0) {
        tap_ok(false, "%s", err.text);
        return tap_done();
    }
    status = hvd_wait_for(request, LIMIT_MS, &err);
    if (tap_ok(status == HVD_ERR_NOMEM, "all tensors of the request fail")) {
        hvd_request_free(request);
    } else {
        tap_note("status %d %s", status, err.text);
    }
    /* if the request is still in progress, hvd_shutdown would wait for it for ever */
    if (status != HVD_INPROGRESS) {
        tap_ok(hvd_shutdown() == 0, "shutdown returns after the failure");
    }
    return tap_done();
}
