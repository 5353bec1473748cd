/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts may open connections to UCX. */
#include "collectives/transport/net/net_filter.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_binding/base/hvd_status.h"

enum {
    /* With these a filter fits into net.core.optmem_max of older kernels, 20 KiB. */
    MOST_IPV4 = 256,
    MOST_IPV6 = 16,
    FIXED_STEPS = 13,
    STEPS_PER_IPV4 = 2,
    STEPS_PER_IPV6 = 9,
    MOST_STEPS = FIXED_STEPS + MOST_IPV4 * STEPS_PER_IPV4 + MOST_IPV6 * STEPS_PER_IPV6,
    /* Where the kernel has the headers: a filter sees a TCP packet from its TCP header on. */
    TCP_FLAGS = 13,
    TCP_SYN = 0x02,
    TCP_ACK = 0x10,
    IPV4_SOURCE = 12,
    IPV6_SOURCE = 8,
};

/* --- addresses --- */

static bool is_ipv4(const struct hvd_net_host_address *address)
{
    return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address->bytes);
}

static int append(struct hvd_net_host_addresses *addresses,
                  const struct hvd_net_host_address *address)
{
    struct hvd_net_host_address *list =
        realloc(addresses->list, (addresses->count + 1) * sizeof(*list));

    if (list == NULL) {
        return HVD_ERR_NOMEM;
    }
    addresses->list = list;
    list[addresses->count++] = *address;
    return 0;
}

/* False for one that is not IP, or not for connections between nodes. */
static bool read_address(const struct sockaddr *from, struct hvd_net_host_address *out)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const struct in6_addr *ipv6 = &((const struct sockaddr_in6 *)from)->sin6_addr;

    if (from == NULL || (from->sa_family != AF_INET && from->sa_family != AF_INET6)) {
        return false;
    }
    if (from->sa_family == AF_INET) {
        memcpy(out->bytes, mapped, sizeof(mapped));
        memcpy(out->bytes + sizeof(mapped), &((const struct sockaddr_in *)from)->sin_addr,
               4);
        return true;
    }
    memcpy(out->bytes, ipv6, sizeof(out->bytes));
    return !IN6_IS_ADDR_LINKLOCAL(ipv6);
}

/* FNV-1a. */
static uint64_t hash(uint64_t value, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        value = (value ^ ((const uint8_t *)data)[i]) * 1099511628211u;
    }
    return value;
}

static uint64_t find_network(void)
{
    char boot[64];
    struct stat namespace;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, boot, sizeof(boot)) : -1;
    uint64_t value = 14695981039346656037u;

    if (fd >= 0) {
        close(fd);
    }
    if (bytes <= 0 || stat("/proc/self/ns/net", &namespace) != 0) {
        return 0;
    }
    value = hash(value, boot, (size_t)bytes);
    value = hash(value, &namespace.st_dev, sizeof(namespace.st_dev));
    return hash(value, &namespace.st_ino, sizeof(namespace.st_ino));
}

int hvd_net_host_addresses_find(struct hvd_net_host_addresses *addresses)
{
    struct ifaddrs *interfaces;
    int status = 0;

    if (getifaddrs(&interfaces) != 0) {
        return HVD_ERR_SYS;
    }
    for (struct ifaddrs *at = interfaces; at != NULL && status == 0; at = at->ifa_next) {
        struct hvd_net_host_address address;

        if (read_address(at->ifa_addr, &address)) {
            status = append(addresses, &address);
        }
    }
    freeifaddrs(interfaces);
    addresses->network = find_network();
    return status;
}

static bool has(const struct hvd_net_host_addresses *addresses,
                const struct hvd_net_host_address *address)
{
    for (size_t i = 0; i < addresses->count; i++) {
        if (memcmp(&addresses->list[i], address, sizeof(*address)) == 0) {
            return true;
        }
    }
    return false;
}

int hvd_net_host_addresses_add(struct hvd_net_host_addresses *addresses,
                               const struct hvd_net_host_addresses *own,
                               const struct hvd_net_host_addresses *other)
{
    bool is_shared = own->network != 0 && own->network == other->network;
    int status = 0;

    for (size_t i = 0; i < other->count && status == 0; i++) {
        if (is_shared || !has(own, &other->list[i])) {
            status = append(addresses, &other->list[i]);
        }
    }
    return status;
}

void hvd_net_host_addresses_finish(struct hvd_net_host_addresses *addresses)
{
    free(addresses->list);
    *addresses = (struct hvd_net_host_addresses){0};
}

/* --- the filter --- */

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hvd_net_host_address));
}

static void sort(struct hvd_net_host_addresses *addresses)
{
    size_t kept = 0;

    if (addresses->count > 0) {
        qsort(addresses->list, addresses->count, sizeof(*addresses->list), compare);
    }
    for (size_t i = 0; i < addresses->count; i++) {
        if (kept == 0 || compare(&addresses->list[kept - 1], &addresses->list[i]) != 0) {
            addresses->list[kept++] = addresses->list[i];
        }
    }
    addresses->count = kept;
}

/* 32 bits of an address, as a filter loads them. */
static uint32_t word(const struct hvd_net_host_address *address, size_t index)
{
    uint32_t value;

    memcpy(&value, &address->bytes[4 * index], sizeof(value));
    return ntohl(value);
}

/* As many of the first bits as leave no more than MOST_IPV4 different ones, in a sorted list. */
static uint32_t ipv4_mask(const struct hvd_net_host_addresses *addresses)
{
    uint32_t mask = UINT32_MAX;

    for (;; mask <<= 1) {
        int count = 0;
        uint32_t last = 0;

        for (size_t i = 0; i < addresses->count; i++) {
            const struct hvd_net_host_address *address = &addresses->list[i];

            if (is_ipv4(address) && (count == 0 || (word(address, 3) & mask) != last)) {
                last = word(address, 3) & mask;
                count++;
            }
        }
        if (count <= MOST_IPV4) {
            return mask;
        }
    }
}

static void step(struct sock_fprog *program, struct sock_filter what)
{
    assert(program->len < MOST_STEPS);
    program->filter[program->len++] = what;
}

static void load_ip(struct sock_fprog *program, uint16_t size, int at)
{
    step(program, (struct sock_filter)BPF_STMT(BPF_LD | size | BPF_ABS,
                                               (uint32_t)(SKF_NET_OFF + at)));
}

static void answer(struct sock_fprog *program, bool is_let_in)
{
    step(program,
         (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, is_let_in ? UINT32_MAX : 0));
}

/* Goes on with the next step if it is equal, else skips some. */
static void require(struct sock_fprog *program, uint32_t value, uint8_t skipped)
{
    step(program,
         (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped));
}

static void let_ipv4_in(struct sock_fprog *program,
                        const struct hvd_net_host_addresses *addresses)
{
    uint32_t mask = ipv4_mask(addresses), last = 0;
    bool is_first = true;

    load_ip(program, BPF_W, IPV4_SOURCE);
    step(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    for (size_t i = 0; i < addresses->count; i++) {
        uint32_t value = word(&addresses->list[i], 3) & mask;

        if (is_ipv4(&addresses->list[i]) && (is_first || value != last)) {
            require(program, value, 1);
            answer(program, true);
            last = value;
            is_first = false;
        }
    }
    answer(program, false);
}

static void let_ipv6_in(struct sock_fprog *program,
                        const struct hvd_net_host_addresses *addresses, bool are_all)
{
    for (size_t i = 0; i < addresses->count && !are_all; i++) {
        if (!is_ipv4(&addresses->list[i])) {
            for (int w = 0; w < 4; w++) {
                load_ip(program, BPF_W, IPV6_SOURCE + 4 * w);
                require(program, word(&addresses->list[i], (size_t)w),
                        (uint8_t)(2 * (3 - w) + 1));
            }
            answer(program, true);
        }
    }
    answer(program, are_all);
}

int hvd_net_filter_make(struct hvd_net_host_addresses *addresses, struct sock_fprog *out)
{
    struct sock_fprog program = {0};
    size_t ipv6 = 0, at;

    program.filter = calloc(MOST_STEPS, sizeof(*program.filter));
    if (program.filter == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (addresses->count == 0) {
        answer(&program, false);
        *out = program;
        return 0;
    }
    sort(addresses);
    for (size_t i = 0; i < addresses->count; i++) {
        ipv6 += !is_ipv4(&addresses->list[i]);
    }
    step(&program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, TCP_FLAGS));
    step(&program,
         (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TCP_SYN | TCP_ACK));
    require(&program, TCP_SYN, 1);
    step(&program, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1));
    answer(&program, true);
    load_ip(&program, BPF_B, 0);
    step(&program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4));
    require(&program, 6, 1);
    at = program.len;
    step(&program, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
    let_ipv4_in(&program, addresses);
    program.filter[at].k = (uint32_t)(program.len - at - 1);
    let_ipv6_in(&program, addresses, ipv6 > MOST_IPV6);
    *out = program;
    return 0;
}

bool hvd_net_filter_attach(const struct sock_fprog *filter, int fd)
{
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, filter, sizeof(*filter)) == 0;
}
