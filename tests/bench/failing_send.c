/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of ucp_am_send_nbx in an hvd-bench for tests: one rank cannot send one
 * of its messages. HVD_TEST_SEND_FAILS=RANK:NUMBER: the rank, and how many messages it
 * sends before. HVD_TEST_SEND_LATE=1: UCX accepts the message and reports the failure
 * later. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

typedef ucs_status_ptr_t send_function(ucp_ep_h endpoint, unsigned id, const void *header,
                                       size_t header_bytes, const void *data,
                                       size_t count, const ucp_request_param_t *params);

static ucp_send_nbx_callback_t on_sent;

static void report_failure(void *request, ucs_status_t status, void *user_data)
{
    (void)status;
    on_sent(request, UCS_ERR_NO_RESOURCE, user_data);
}

/* Returns whether this call is the one that fails. */
static int fails_now(void)
{
    static int sent;
    const char *wanted = getenv("HVD_TEST_SEND_FAILS"), *rank = getenv("HOROVOD_RANK");
    char now[32];

    snprintf(now, sizeof(now), "%s:%d", rank != NULL ? rank : "", sent++);
    return wanted != NULL && strcmp(now, wanted) == 0;
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h endpoint, unsigned id, const void *header,
                                 size_t header_bytes, const void *data, size_t count,
                                 const ucp_request_param_t *params)
{
    void *found = dlsym(RTLD_NEXT, "ucp_am_send_nbx");
    ucp_request_param_t changed = *params;
    send_function *send_next;

    memcpy(&send_next, &found, sizeof(send_next)); /* ISO C has no such cast */
    if (fails_now()) {
        if (getenv("HVD_TEST_SEND_LATE") == NULL) {
            return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
        }
        on_sent = params->cb.send;
        changed.cb.send = report_failure;
        changed.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    }
    return send_next(endpoint, id, header, header_bytes, data, count, &changed);
}
