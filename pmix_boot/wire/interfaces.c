/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses under which other nodes may reach this one. */
#include "pmix_boot/wire/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum kind {
    KIND_IPV4,
    KIND_IPV6,
    KIND_IPV4_LINK_LOCAL, /* often a management controller that every node has */
    KIND_LOOPBACK,
    KIND_COUNT,
    KIND_NONE,
};

/* IPv6 link-local addresses are left out: they mean nothing without an interface number. */
static enum kind kind_of(const struct ifaddrs *entry)
{
    const unsigned wanted = IFF_UP | IFF_RUNNING;

    if (entry->ifa_addr == NULL || (entry->ifa_flags & wanted) != wanted) {
        return KIND_NONE;
    }
    if (entry->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)entry->ifa_addr;
        bool is_link_local = (ntohl(in->sin_addr.s_addr) >> 16) == 0xa9fe;

        if ((entry->ifa_flags & IFF_LOOPBACK) != 0) {
            return KIND_LOOPBACK;
        }
        return is_link_local ? KIND_IPV4_LINK_LOCAL : KIND_IPV4;
    }
    if (entry->ifa_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)entry->ifa_addr;

        if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)) {
            return KIND_NONE;
        }
        return (entry->ifa_flags & IFF_LOOPBACK) != 0 ? KIND_LOOPBACK : KIND_IPV6;
    }
    return KIND_NONE;
}

static struct hvd_ip ip_of(const struct ifaddrs *entry)
{
    struct hvd_ip ip = {0};

    if (entry->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)entry->ifa_addr;

        ip.version = 4;
        memcpy(ip.bytes, &in->sin_addr, 4);
    } else {
        const struct sockaddr_in6 *in6 = (const void *)entry->ifa_addr;

        ip.version = 6;
        memcpy(ip.bytes, &in6->sin6_addr, 16);
    }
    return ip;
}

static bool is_named(const char *names, const char *name)
{
    size_t length = strlen(name);

    while (*names != '\0') {
        size_t word = strcspn(names, ",");

        if (word == length && strncmp(names, name, word) == 0) {
            return true;
        }
        names += word + (names[word] == ',' ? 1 : 0);
    }
    return false;
}

static void add_kind(const struct ifaddrs *all, enum kind kind, const char *names,
                     struct hvd_ip *list, int max, int *count)
{
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        if (*count < max && kind_of(entry) == kind &&
            (names == NULL || is_named(names, entry->ifa_name))) {
            list[(*count)++] = ip_of(entry);
        }
    }
}

static void list_names(const struct ifaddrs *all, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        if (kind_of(entry) == KIND_NONE || is_named(text, entry->ifa_name)) {
            continue;
        }
        int n = snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "",
                         entry->ifa_name);

        if (n < 0 || (size_t)n >= size - used) {
            text[used] = '\0';
            return;
        }
        used += (size_t)n;
    }
}

/* Every interface that was asked for must have an address. */
static int check_names(const struct ifaddrs *all, const char *names,
                       struct hvd_error *err)
{
    char name[IF_NAMESIZE];
    char there[200];

    list_names(all, there, sizeof(there));
    while (*names != '\0') {
        size_t word = strcspn(names, ",");

        if (word > 0) {
            snprintf(name, sizeof(name), "%.*s", (int)word, names);
            if (word >= sizeof(name) || !is_named(there, name)) {
                return hvd_fail(err, HVD_ERR_ARG,
                                "network interface %.*s %s; this host has: %s", (int)word,
                                names,
                                if_nametoindex(name) == 0 ? "does not exist"
                                                          : "is down or has no address",
                                there);
            }
        }
        names += word + (names[word] == ',' ? 1 : 0);
    }
    return 0;
}

int hvd_interfaces_list(const char *names, struct hvd_ip *list, int max, int *count,
                        struct hvd_error *err)
{
    struct ifaddrs *all = NULL;
    int found = 0;
    int status = 0;

    if (getifaddrs(&all) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot list the network interfaces: %m");
    }
    if (names != NULL) {
        status = check_names(all, names, err);
    }
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        if (kind != KIND_LOOPBACK || found == 0 || names != NULL) {
            add_kind(all, (enum kind)kind, names, list, max, &found);
        }
    }
    freeifaddrs(all);
    if (status == 0) {
        *count = found;
    }
    return status;
}

void hvd_ip_print(const struct hvd_ip *ip, uint16_t port, char *text)
{
    char address[INET6_ADDRSTRLEN] = "?";

    inet_ntop(ip->version == 4 ? AF_INET : AF_INET6, ip->bytes, address, sizeof(address));
    snprintf(text, 64, "%s port %u", address, port);
}
