/* SPDX-License-Identifier: Apache-2.0 */
/* Makes UCX look as if it supported CUDA. The functions in this file are found before
 * those of libucp. They claim CUDA support, and pass device memory on to libucp as host
 * memory, which it is in the stand-in. Linked into the program, with its symbols
 * exported, so that hvd_ucx.so finds them. See README.md. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_cuda.h"

/* Finds UCX's own function of that name. */
static void find_next(const char *name, void *function)
{
    void *library = dlopen("libucp.so.0", RTLD_NOW);
    void *found = library != NULL ? dlsym(library, name) : NULL;

    if (found == NULL) {
        fprintf(stderr, "fake UCX: libucp has no %s\n", name);
        abort();
    }
    memcpy(function, &found, sizeof(found));
}

static void must(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "fake UCX: %s\n", what);
        abort();
    }
}

/* With FAKE_UCX_CUDA=0, UCX has no CUDA support, like Debian's package. */
static bool has_cuda(void)
{
    const char *text = getenv("FAKE_UCX_CUDA");

    return text == NULL || strcmp(text, "0") != 0;
}

static bool has_sent; /* device memory was sent since the worker was created */

/* Returns the stand-in's address of the buffer. Device memory must be declared as such in
 * param, and other memory must not be; param is changed to host memory. */
static void *reach(const void *buffer, size_t count, ucp_request_param_t *param)
{
    bool is_named = (param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) != 0 &&
                    param->memory_type == UCS_MEMORY_TYPE_CUDA;
    void *own = fake_gpu_reach(buffer, count);

    if (!is_named) {
        must(count == 0 || own == buffer, "device memory goes as host memory");
        return own;
    }
    must(has_cuda(), "it has no CUDA");
    must(fake_gpu_device() >= 0, "device memory without its context");
    must(own != NULL && own != buffer, "what is not device memory goes as such");
    param->memory_type = UCS_MEMORY_TYPE_HOST;
    has_sent = true;
    return own;
}

HVD_EXPORT ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
    ucs_status_t (*next)(ucp_context_h context, ucp_context_attr_t * attr);
    ucs_status_t status;

    find_next("ucp_context_query", &next);
    status = next(context, attr);
    if (status == UCS_OK && has_cuda() &&
        (attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) != 0) {
        attr->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
    }
    return status;
}

HVD_EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header,
                                            size_t header_length, const void *buffer,
                                            size_t count,
                                            const ucp_request_param_t *param)
{
    ucs_status_ptr_t (*next)(ucp_ep_h ep, unsigned id, const void *header,
                             size_t header_length, const void *buffer, size_t count,
                             const ucp_request_param_t *param);
    ucp_request_param_t changed = *param;
    const void *own = reach(buffer, count, &changed);

    find_next("ucp_am_send_nbx", &next);
    if (own != buffer && fake_gpu_fails("ucp_am_send_nbx")) {
        return UCS_STATUS_PTR(UCS_ERR_IO_ERROR);
    }
    return next(ep, id, header, header_length, own, count, &changed);
}

HVD_EXPORT ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc,
                                                 void *buffer, size_t count,
                                                 const ucp_request_param_t *param)
{
    ucs_status_ptr_t (*next)(ucp_worker_h worker, void *data_desc, void *buffer,
                             size_t count, const ucp_request_param_t *param);
    ucp_request_param_t changed = *param;
    void *own = reach(buffer, count, &changed);

    find_next("ucp_am_recv_data_nbx", &next);
    if (fake_gpu_fails("ucp_am_recv_data_nbx")) {
        ucp_am_data_release(worker, data_desc);
        return UCS_STATUS_PTR(UCS_ERR_IO_ERROR);
    }
    return next(worker, data_desc, own, count, &changed);
}

/* Requires a context: once device memory has been sent, a CUDA transport of UCX queries
 * its own events, which fails without a context. */
static void must_have_context(void)
{
    must(!has_sent || fake_gpu_device() >= 0, "called without the context");
}

HVD_EXPORT ucs_status_t ucp_worker_arm(ucp_worker_h worker)
{
    ucs_status_t (*next)(ucp_worker_h worker);

    must_have_context();
    find_next("ucp_worker_arm", &next);
    return next(worker);
}

HVD_EXPORT unsigned ucp_worker_progress(ucp_worker_h worker)
{
    unsigned (*next)(ucp_worker_h worker);

    must_have_context();
    find_next("ucp_worker_progress", &next);
    return next(worker);
}

HVD_EXPORT void ucp_worker_destroy(ucp_worker_h worker)
{
    void (*next)(ucp_worker_h worker);

    must_have_context();
    has_sent = false;
    find_next("ucp_worker_destroy", &next);
    next(worker);
}
