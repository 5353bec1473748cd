/* SPDX-License-Identifier: Apache-2.0 */
/* Logs how the GPUs of a process set reach each other. */
#include "collectives/gpu/gpu_connectivity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/run/team.h"
#include "collectives/transport/net/net_choice.h"
#include "collectives/transport/net/rdma.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

/* The number of nodes named in a log line; further ones are only counted. */
static const int named_nodes = 4;

const char *hvd_gpu_member_host(const struct hvd_team *team, const struct hvd_boot *boot,
                                int member)
{
    return boot->peers[team->ranks[member]].host;
}

/* --- within a node --- */

/* How two ranks of a node communicate. */
struct pair {
    const char *how;
    /* the variable that forbids P2P between the two GPUs, or NULL */
    const char *obstacle;
};

static bool is_set_to_1(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && strcmp(text, "1") == 0;
}

/* Returns the variable that forbids NCCL to use P2P, with its value, or NULL. */
static const char *p2p_obstacle(void)
{
    const char *level = getenv(HVD_ENV_NCCL_P2P_LEVEL);

    if (is_set_to_1(HVD_ENV_NCCL_P2P_DISABLE)) {
        return HVD_ENV_NCCL_P2P_DISABLE "=1";
    }
    return level != NULL && (strcmp(level, "LOC") == 0 || strcmp(level, "0") == 0)
               ? HVD_ENV_NCCL_P2P_LEVEL "=LOC"
               : NULL;
}

static const char *without_p2p(void)
{
    return is_set_to_1(HVD_ENV_NCCL_SHM_DISABLE)
               ? "the network, because of " HVD_ENV_NCCL_SHM_DISABLE "=1"
               : "shared memory";
}

static struct pair look_at_pair(const struct hvd_gpu_module *module,
                                const struct hvd_gpu_identity *one,
                                const struct hvd_gpu_identity *other)
{
    enum hvd_gpu_link link = module->link(one->uuid, other->uuid);
    const char *obstacle = p2p_obstacle();
    bool is_near = link == HVD_GPU_LINK_PCIE || link == HVD_GPU_LINK_NVLINK;

    if (one->has_host_id && other->has_host_id) {
        return (struct pair){
            "the network, unless both have the same " HVD_ENV_NCCL_HOSTID, NULL};
    }
    if (is_near && obstacle == NULL) {
        return (struct pair){link == HVD_GPU_LINK_NVLINK ? "NVLink" : "P2P over PCIe",
                             NULL};
    }
    if (link == HVD_GPU_LINK_UNKNOWN && obstacle == NULL) {
        return (struct pair){"P2P if the GPUs can; this rank sees only one of them",
                             NULL};
    }
    return (struct pair){without_p2p(), is_near ? obstacle : NULL};
}

/* Whether this node logs warnings: it is the first one, or has another environment than
 * the first. So many nodes with the same environment give one warning. */
static bool may_warn(const struct hvd_team *team,
                     const struct hvd_gpu_identity *const *identities)
{
    int first = hvd_layout_rank(team->layout, 0, 0);

    return team->node == 0 ||
           identities[team->rank]->network != identities[first]->network;
}

static void log_intra_node(const struct hvd_team *team, const struct hvd_boot *boot,
                           const struct hvd_gpu_module *module,
                           const struct hvd_gpu_identity *const *identities)
{
    const struct hvd_layout *layout = team->layout;
    int first = layout->node_first[team->node], end = layout->node_first[team->node + 1];
    const char *host = hvd_gpu_member_host(team, boot, team->rank);
    const char *obstacle = NULL;
    int slower = 0;

    for (int i = first; i < end; i++) {
        int one = layout->node_rank[i];

        for (int j = i + 1; j < end; j++) {
            int other = layout->node_rank[j];
            struct pair pair = look_at_pair(module, identities[one], identities[other]);

            if (i == first) {
                hvd_log(HVD_LOG_INFO, "GPUs of ranks %d and %d on %s: %s",
                        team->ranks[one], team->ranks[other], host, pair.how);
            }
            slower += pair.obstacle != NULL;
            obstacle = pair.obstacle != NULL ? pair.obstacle : obstacle;
        }
    }
    if (slower > 0 && may_warn(team, identities)) {
        hvd_log(HVD_LOG_WARN,
                "%d pair%s of GPUs on %s could reach each other by P2P, but %s prevents "
                "NCCL from using it",
                slower, slower > 1 ? "s" : "", host, obstacle);
    }
}

/* --- between nodes --- */

enum transport {
    OVER_TCP,
    OVER_RDMA_STAGED,
    OVER_GPUDIRECT,
    TRANSPORTS
};

static enum transport transport_of(int32_t network)
{
    if ((network & HVD_GPU_NET_IB) == 0 || (network & HVD_GPU_NET_IB_OFF) != 0) {
        return OVER_TCP;
    }
    return (network & HVD_GPU_NET_GPUDIRECT) != 0 ? OVER_GPUDIRECT : OVER_RDMA_STAGED;
}

/* The capabilities that both ends of a link between nodes have. */
struct node_link {
    enum transport transport;
    bool has_ucx_cuda;
};

static struct node_link link_between(int32_t one, int32_t other)
{
    enum transport transport =
        transport_of(one) < transport_of(other) ? transport_of(one) : transport_of(other);

    return (struct node_link){.transport = transport,
                              .has_ucx_cuda = (one & other & HVD_GPU_NET_UCX_CUDA) != 0};
}

static int describe_ranks(const struct hvd_team *team, const struct hvd_boot *boot,
                          int node, char *text, size_t size)
{
    const struct hvd_layout *layout = team->layout;
    int first = team->ranks[hvd_layout_rank(layout, node, 0)];
    int count = hvd_layout_local_size(layout, node);
    int last = team->ranks[hvd_layout_rank(layout, node, count - 1)];
    const char *host = boot->peers[first].host;

    if (count == 1) {
        return snprintf(text, size, "rank %d on %s", first, host);
    }
    return snprintf(text, size, "ranks %d%s%d on %s", first,
                    last - first == count - 1 ? "-" : " to ", last, host);
}

/* Logs the nodes reached over one transport. */
static void log_nodes_over(const struct hvd_team *team, const struct hvd_boot *boot,
                           const struct node_link *links, struct node_link wanted,
                           const char *names)
{
    static const char *const words[TRANSPORTS] = {
        [OVER_TCP] = "TCP through host memory",
        [OVER_RDMA_STAGED] = "InfiniBand through host memory, without GPUDirect",
        [OVER_GPUDIRECT] = "InfiniBand with GPUDirect",
    };
    char text[512] = "";
    size_t used = 0;
    int count = 0;

    for (int node = 0; node < team->layout->nodes; node++) {
        if (node == team->node || links[node].transport != wanted.transport ||
            links[node].has_ucx_cuda != wanted.has_ucx_cuda) {
            continue;
        }
        if (count < named_nodes && used + 1 < sizeof(text)) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s",
                                     count > 0 ? ", " : "");
            used += (size_t)describe_ranks(team, boot, node, text + used,
                                           sizeof(text) - used);
            used = used < sizeof(text) ? used : sizeof(text) - 1;
        }
        count++;
    }
    if (count > named_nodes) {
        snprintf(text + used, sizeof(text) - used, " and %d more nodes",
                 count - named_nodes);
    }
    if (count > 0) {
        bool has_names = wanted.transport != OVER_TCP;

        hvd_log(HVD_LOG_INFO, "GPUs of this node and %s: %s%s%s%s; UCX sends %s", text,
                words[wanted.transport], has_names ? " (" : "", has_names ? names : "",
                has_names ? ")" : "",
                wanted.has_ucx_cuda ? "GPU memory" : "pinned host memory");
    }
}

static const char *look_up(const char *name)
{
    return getenv(name);
}

static void warn_of_cards(const char *names, const char *host)
{
    char obstacle[128];

    if (hvd_rdma_nccl_obstacle(look_up, obstacle, sizeof(obstacle))) {
        hvd_log(HVD_LOG_WARN,
                "%s has InfiniBand (%s), but %s prevents NCCL from using it", host, names,
                obstacle);
    }
    if (hvd_rdma_ucx_obstacle(look_up, names, obstacle, sizeof(obstacle))) {
        hvd_log(HVD_LOG_WARN, "%s has InfiniBand (%s), but %s prevents UCX from using it",
                host, names, obstacle);
    }
}

/* Warns if HVD_NET_SECURITY asks for more protection than NCCL's own connections have. */
static void warn_of_security(void)
{
    enum hvd_net_security security;

    if (hvd_net_choice_security(&security, NULL) == 0 &&
        security != HVD_NET_SECURITY_OBJECTS) {
        hvd_log(HVD_LOG_WARN,
                HVD_ENV_NET_SECURITY
                "=%s does not protect tensors on GPUs: NCCL sends them "
                "between nodes unprotected; with " HVD_ENV_GPU_PATH
                "=host they go over hvd's own TCP",
                hvd_net_choice_security_word(security));
    }
}

static void log_inter_node(const struct hvd_team *team, const struct hvd_boot *boot,
                           const struct hvd_gpu_identity *const *identities)
{
    const struct hvd_layout *layout = team->layout;
    struct node_link *links = calloc((size_t)layout->nodes, sizeof(links[0]));
    struct hvd_rdma_devices found;

    if (team->node == 0) {
        warn_of_security();
    }
    hvd_rdma_find("", &found);
    if (found.names[0] != '\0' && may_warn(team, identities)) {
        warn_of_cards(found.names, hvd_gpu_member_host(team, boot, team->rank));
    }
    for (int node = 0; links != NULL && node < layout->nodes; node++) {
        int leader = hvd_layout_rank(layout, node, 0);

        links[node] =
            link_between(identities[leader]->network, identities[team->rank]->network);
    }
    for (int i = 0; links != NULL && i < 2 * TRANSPORTS; i++) {
        const struct node_link wanted = {.transport = (enum transport)(i / 2),
                                         .has_ucx_cuda = i % 2 != 0};

        log_nodes_over(team, boot, links, wanted, found.names);
    }
    free(links);
}

int32_t hvd_gpu_network_flags(const struct hvd_gpu_identity *identity)
{
    struct hvd_rdma_devices found;
    char obstacle[128];
    int32_t network = 0;

    hvd_rdma_find("", &found);
    network |= found.names[0] != '\0' ? HVD_GPU_NET_IB : 0;
    network |= hvd_rdma_nccl_obstacle(look_up, obstacle, sizeof(obstacle))
                   ? HVD_GPU_NET_IB_OFF
                   : 0;
    network |= hvd_rdma_ucx_obstacle(look_up, found.names, obstacle, sizeof(obstacle))
                   ? HVD_GPU_NET_UCX_OFF
                   : 0;
    network |= p2p_obstacle() != NULL ? HVD_GPU_NET_P2P_OFF : 0;
    network |= found.has_peermem || identity->has_dma_buf ? HVD_GPU_NET_GPUDIRECT : 0;
    return network;
}

void hvd_gpu_connectivity_log(const struct hvd_team *team, const struct hvd_boot *boot,
                              const struct hvd_gpu_module *module,
                              const struct hvd_gpu_identity *const *identities)
{
    if (team->local_rank != 0) {
        return;
    }
    log_intra_node(team, boot, module, identities);
    if (team->layout->nodes > 1) {
        log_inter_node(team, boot, identities);
    }
}
