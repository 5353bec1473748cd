/* SPDX-License-Identifier: Apache-2.0 */
/* HVD_NET_SECURITY: all ranks must agree on it, and no rank may protect less than the
 * user asked for. */
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/net/net.h"
#include "gpu_binding/base/env.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
};

static const unsigned char secret[HVD_NET_SECRET_BYTES] = "the secret of this job";

static struct hvd_net *create(const char *word, enum hvd_net_choice choice, char *text)
{
    struct hvd_error err = {0};
    struct hvd_net *net = NULL;

    setenv(HVD_ENV_NET_SECURITY, word, 1);
    if (hvd_net_create(choice, &net, &err) != 0) {
        net = NULL;
    }
    strcpy(text, err.text);
    return net;
}

/* Creates a job of two ranks with these values of HVD_NET_SECURITY. Returns the error of
 * rank 0, or "" if it connects. */
static const char *meet(const char *first, const char *second)
{
    static char text[sizeof(((struct hvd_error *)NULL)->text)];
    const int node[RANKS] = {0, 1};
    const void *addresses[RANKS];
    size_t bytes[RANKS];
    struct hvd_error err = {0};
    struct hvd_net *nets[RANKS] = {create(first, HVD_NET_TCP, text),
                                   create(second, HVD_NET_TCP, text)};
    const struct hvd_net_job job = {.size = RANKS,
                                    .node = node,
                                    .host = "here",
                                    .secret = secret,
                                    .addresses = addresses,
                                    .bytes = bytes};

    for (int i = 0; i < RANKS; i++) {
        if (nets[i] == NULL) {
            return text;
        }
        hvd_net_address(nets[i], &addresses[i], &bytes[i]);
    }
    (void)hvd_net_connect(nets[0], &job, &err);
    strcpy(text, err.text);
    for (int i = 0; i < RANKS; i++) {
        hvd_net_destroy(nets[i]);
    }
    return text;
}

int main(void)
{
    char text[sizeof(((struct hvd_error *)NULL)->text)];
    const char *said;

    tap_ok(create("encryption", HVD_NET_TCP, text) == NULL &&
               strstr(text, "is none of objects, messages, encrypt") != NULL,
           "an unknown value is an error: %s", text);
    tap_ok(create("messages", HVD_NET_UCX, text) == NULL &&
               strstr(text, "UCX neither authenticates nor encrypts") != NULL,
           "UCX cannot protect messages: %s", text);
    tap_ok(meet("", "objects")[0] == '\0', "objects are the default");
    tap_ok(meet("encrypt", "ENCRYPT")[0] == '\0', "ranks with the same value connect");
    said = meet("encrypt", "");
    tap_ok(strstr(said, "=encrypt on rank 0, but objects on rank 1") != NULL,
           "the error of ranks with different values gives both: %s", said);
    said = meet("", "messages");
    tap_ok(strstr(said, "=objects on rank 0, but messages on rank 1") != NULL,
           "a rank with less protection gives the same error: %s", said);
    return tap_done();
}
