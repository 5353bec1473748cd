/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: how this process would start, and the other ranks that it would
 * find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/attr.h"
#include "pmix_boot/boot.h"

HVD_EXPORT int hvd_start_describe(char *text, size_t size)
{
    struct hvd_error err = {0};
    const char *how = NULL;
    int status = hvd_boot_describe(&how, &err);

    snprintf(text, size, "%s", status == 0 ? how : err.text);
    return status;
}

/* Copies hosts and texts into one block, behind the record that points to them. */
static struct hvd_start_facts *copy_texts(const struct hvd_boot *boot)
{
    size_t count = (size_t)boot->size;
    size_t bytes = sizeof(struct hvd_start_facts) + 2 * count * sizeof(char *);
    struct hvd_start_facts *copy;
    const char **hosts;
    char *at;

    for (size_t rank = 0; rank < count; rank++) {
        bytes += strlen(boot->peers[rank].host) + boot->peers[rank].card_bytes + 2;
    }
    copy = malloc(bytes);
    if (copy == NULL) {
        return NULL;
    }
    hosts = (const char **)(copy + 1);
    at = (char *)(hosts + 2 * count);
    for (size_t rank = 0; rank < count; rank++) {
        const struct hvd_boot_peer *peer = &boot->peers[rank];

        hosts[rank] = at;
        at = stpcpy(at, peer->host) + 1;
        hosts[count + rank] = at;
        at = mempcpy(at, peer->card, peer->card_bytes);
        *at++ = '\0';
    }
    *copy = (struct hvd_start_facts){boot->rank, boot->size, hosts, hosts + count};
    return copy;
}

HVD_EXPORT int hvd_start_gather(const char *text, int timeout_ms,
                                struct hvd_start_facts **facts, struct hvd_error *err)
{
    struct hvd_boot_query query = {
        .card = text, .card_bytes = strlen(text), .timeout_ms = timeout_ms};
    struct hvd_start_facts *copy;
    struct hvd_boot *boot;
    int status;

    if (hvd_rank() >= 0) {
        return hvd_fail(err, HVD_ERR_STATE,
                        "hvd_start_gather must be called before hvd_init");
    }
    status = hvd_boot_create(&query, &boot, err);
    if (status < 0) {
        return status;
    }
    copy = copy_texts(boot);
    hvd_boot_destroy(boot);
    if (copy == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the texts of all ranks");
    }
    *facts = copy;
    return 0;
}
