/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses between UCX and TCP for messages between nodes. */
#include "collectives/transport/net/net_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "collectives/transport/net/rdma.h"
#include "gpu_binding/base/env.h"

enum hvd_net_choice hvd_net_choice_of(const char *text, bool *is_wrong)
{
    static const char *const words[] = {
        [HVD_NET_AUTO] = "auto", [HVD_NET_UCX] = "ucx", [HVD_NET_TCP] = "tcp"};

    for (int i = HVD_NET_AUTO; text != NULL && i <= HVD_NET_TCP; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *is_wrong = false;
            return (enum hvd_net_choice)i;
        }
    }
    *is_wrong = text != NULL;
    return HVD_NET_AUTO;
}

static const char *const security_words[] = {
    [HVD_NET_SECURITY_OBJECTS] = "objects",
    [HVD_NET_SECURITY_MESSAGES] = "messages",
    [HVD_NET_SECURITY_ENCRYPT] = "encrypt",
};

const char *hvd_net_choice_security_word(enum hvd_net_security security)
{
    return security_words[security];
}

int hvd_net_choice_security(enum hvd_net_security *security, struct hvd_error *err)
{
    const char *text = getenv(HVD_ENV_NET_SECURITY);

    *security = HVD_NET_SECURITY_OBJECTS;
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    for (int i = HVD_NET_SECURITY_OBJECTS; i <= HVD_NET_SECURITY_ENCRYPT; i++) {
        if (strcasecmp(text, security_words[i]) == 0) {
            *security = (enum hvd_net_security)i;
            return 0;
        }
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    HVD_ENV_NET_SECURITY "=%.64s is none of objects, messages, encrypt",
                    text);
}

/* Returns true and writes the setting to text if HVD_NET_SECURITY rules out RDMA, which
 * cannot be authenticated or encrypted. Ignores unknown words, because hvd_net_create
 * reports them. */
static bool is_too_open(char *text, size_t size)
{
    enum hvd_net_security security;

    if (hvd_net_choice_security(&security, NULL) != 0 ||
        security == HVD_NET_SECURITY_OBJECTS) {
        return false;
    }
    snprintf(text, size, HVD_ENV_NET_SECURITY "=%s", security_words[security]);
    return true;
}

bool hvd_net_choice_has_no_rdma(enum hvd_net_choice choice, char *text, size_t size)
{
    if (choice == HVD_NET_TCP) {
        snprintf(text, size, HVD_ENV_NET "=tcp");
        return true;
    }
    return is_too_open(text, size) || hvd_rdma_is_unusable(text, size);
}

bool hvd_net_choice_obstacle(enum hvd_net_choice choice, char *text, size_t size)
{
    return choice != HVD_NET_UCX && hvd_net_choice_has_no_rdma(choice, text, size);
}
