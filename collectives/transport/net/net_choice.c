/* SPDX-License-Identifier: Apache-2.0 */
/* UCX or TCP between nodes. */
#include "collectives/transport/net/net_choice.h"

#include <stdio.h>
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

bool hvd_net_choice_has_no_rdma(enum hvd_net_choice choice, char *text, size_t size)
{
    if (choice == HVD_NET_TCP) {
        snprintf(text, size, HVD_ENV_NET "=tcp");
        return true;
    }
    return hvd_rdma_is_unusable(text, size);
}

bool hvd_net_choice_obstacle(enum hvd_net_choice choice, char *text, size_t size)
{
    return choice != HVD_NET_UCX && hvd_net_choice_has_no_rdma(choice, text, size);
}
