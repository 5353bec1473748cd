/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-boot: speaks PMIx for the rank that started it, once, and ends. See
 * helper_protocol.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "pmix_boot/helper_protocol.h"
#include "pmix_boot/modex.h"
#include "pmix_boot/pmix_modex.h"
#include "pmix_boot/sock/socket.h"

/* Makes the kernel kill the helper when the rank dies. A helper that outlived a killed
 * rank would make the rank look alive. */
static int follow_parent(int parent)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent ? 0 : HVD_ERR_SYS;
}

static int receive_array(size_t bytes, void **out)
{
    *out = malloc(bytes);
    return *out != NULL ? hvd_socket_receive(HVD_HELPER_FD, *out, bytes) : HVD_ERR_NOMEM;
}

static int receive_request(struct hvd_modex_query *query, struct hvd_modex_key *key)
{
    struct hvd_helper_request request;
    void *ranks = NULL;
    int status = hvd_socket_receive(HVD_HELPER_FD, &request, sizeof(request));

    if (status < 0 || (status = follow_parent(request.parent)) < 0) {
        return status;
    }
    status = receive_array(request.bytes, &query->mine.data);
    if (status == 0 && request.count > 0) {
        status = receive_array((size_t)request.count * sizeof(int), &ranks);
    }
    query->mine.bytes = request.bytes;
    query->ranks = ranks;
    query->count = request.count;
    query->timeout_ms = request.timeout_ms;
    *key = request.key;
    return status;
}

static int send_answer(const struct hvd_helper_answer *answer,
                       const struct hvd_modex *modex)
{
    int status = hvd_socket_send(HVD_HELPER_FD, answer, sizeof(*answer));

    for (int rank = 0; rank < modex->size && status == 0; rank++) {
        const struct hvd_blob *blob = &modex->blobs[rank];
        uint64_t bytes = blob->bytes;

        status = hvd_socket_send(HVD_HELPER_FD, &bytes, sizeof(bytes));
        if (status == 0) {
            status = hvd_socket_send(HVD_HELPER_FD, blob->data, blob->bytes);
        }
    }
    return status;
}

int main(void)
{
    struct hvd_modex_query query = {0};
    struct hvd_modex_key key;
    struct hvd_helper_answer answer = {0};
    struct hvd_modex modex = {0};

    if (receive_request(&query, &key) < 0) {
        fprintf(stderr, "hvd-boot: libhvd starts this program itself; it has no use on a "
                        "command line\n");
        return EXIT_FAILURE;
    }
    hvd_pmix_modex(&query, &key, HVD_HELPER_FD, &modex, &answer.error);
    answer.rank = modex.rank;
    answer.size = modex.size;
    /* _exit rather than exit: nothing is left to do, and the rank waits for this process
     * to end. */
    _exit(send_answer(&answer, &modex) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}
