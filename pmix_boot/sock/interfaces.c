/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses at which other nodes may reach this one. */
#include "pmix_boot/sock/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    KIND_IPV4,
    KIND_IPV6,
    KIND_IPV4_LINK_LOCAL, /* often a management controller that every node has */
    KIND_LOOPBACK,
    KIND_NONE,
};

/* Classifies an address. IPv6 link-local addresses are left out: they mean nothing
 * without an interface number. */
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

/* Turns an IPv4-mapped IPv6 address into the IPv4 address. */
static struct hvd_ip unmap_ip(const struct hvd_ip *ip)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct hvd_ip plain = {.version = 4};

    if (ip->version != 6 || memcmp(ip->bytes, mapped, sizeof(mapped)) != 0) {
        return *ip;
    }
    memcpy(plain.bytes, ip->bytes + sizeof(mapped), 4);
    return plain;
}

struct hvd_ip hvd_ip_of(const struct sockaddr *address)
{
    struct hvd_ip ip = {0};

    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;

        ip.version = 4;
        memcpy(ip.bytes, &in->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)address;

        ip.version = 6;
        memcpy(ip.bytes, &in6->sin6_addr, 16);
    }
    return unmap_ip(&ip);
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

/* Reads the speed of an interface in Mbit/s; 0: the kernel does not know it. */
static int speed_of(const char *name)
{
    char path[64];
    FILE *file;
    int speed = 0;

    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &speed) != 1 || speed < 0) {
            speed = 0;
        }
        fclose(file);
    }
    return speed;
}

struct candidate {
    const struct ifaddrs *entry;
    enum kind kind;
    int speed;
    int number; /* position in the system's list */
};

static int by_promise(const void *a, const void *b)
{
    const struct candidate *one = a;
    const struct candidate *other = b;

    if (one->kind != other->kind) {
        return one->kind < other->kind ? -1 : 1;
    }
    if (one->speed != other->speed) {
        return one->speed > other->speed ? -1 : 1;
    }
    return one->number - other->number;
}

/* Lists the addresses of the named interfaces, best first. The caller frees the list.
 * Returns NULL if memory runs out. */
static struct candidate *rank_all(const struct ifaddrs *all, const char *names,
                                  int *count)
{
    struct candidate *list;
    int most = 1;

    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        most++;
    }
    *count = 0;
    list = calloc((size_t)most, sizeof(*list));
    if (list == NULL) {
        return NULL;
    }
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        enum kind kind = kind_of(entry);

        if (kind != KIND_NONE && (names == NULL || is_named(names, entry->ifa_name))) {
            list[*count] =
                (struct candidate){entry, kind, speed_of(entry->ifa_name), *count};
            (*count)++;
        }
    }
    qsort(list, (size_t)*count, sizeof(*list), by_promise);
    return list;
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

/* Checks that every named interface has an address. */
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

/* Adds an address unless it is listed, because two interfaces may have the same. Returns
 * how many were added. */
static int add_once(struct hvd_ip *list, int count, const struct hvd_ip *ip)
{
    for (int i = 0; i < count; i++) {
        if (memcmp(&list[i], ip, sizeof(*ip)) == 0) {
            return 0;
        }
    }
    list[count] = *ip;
    return 1;
}

int hvd_interfaces_list(const char *names, struct hvd_ip *list, int max, int *count,
                        struct hvd_error *err)
{
    struct ifaddrs *all = NULL;
    struct candidate *candidates;
    int listed = 0;
    int found = 0;
    int status = 0;

    if (getifaddrs(&all) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot list the network interfaces: %m");
    }
    if (names != NULL) {
        status = names[strspn(names, ",")] != '\0'
                     ? check_names(all, names, err)
                     : hvd_fail(err, HVD_ERR_ARG,
                                "'%.60s' names no network interface: name one, or unset "
                                "HVD_IFACE",
                                names);
    }
    candidates = rank_all(all, names, &listed);
    if (candidates == NULL) {
        freeifaddrs(all);
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    for (int i = 0; i < listed && found < max; i++) {
        if (candidates[i].kind != KIND_LOOPBACK || names != NULL ||
            candidates[0].kind == KIND_LOOPBACK) {
            const struct hvd_ip ip = hvd_ip_of(candidates[i].entry->ifa_addr);

            found += add_once(list, found, &ip);
        }
    }
    free(candidates);
    freeifaddrs(all);
    if (status == 0) {
        *count = found;
    }
    return status;
}

int hvd_interfaces_own_init(struct hvd_interfaces_own *own, struct hvd_error *err)
{
    struct ifaddrs *all = NULL;
    size_t most = 1;

    *own = (struct hvd_interfaces_own){0};
    if (getifaddrs(&all) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot list the network interfaces: %m");
    }
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        most++;
    }
    own->list = calloc(most, sizeof(*own->list));
    for (const struct ifaddrs *entry = all; entry != NULL && own->list != NULL;
         entry = entry->ifa_next) {
        struct hvd_ip ip = {0};

        if (entry->ifa_addr != NULL) {
            ip = hvd_ip_of(entry->ifa_addr);
        }
        if (ip.version != 0) {
            own->list[own->count++] = ip;
        }
    }
    freeifaddrs(all);
    return own->list != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
}

void hvd_interfaces_own_finish(struct hvd_interfaces_own *own)
{
    free(own->list);
    *own = (struct hvd_interfaces_own){0};
}

/* The kernel treats a connection to 0.0.0.0 or :: as one to loopback. */
static bool is_loopback_or_none(const struct hvd_ip *ip)
{
    static const unsigned char zeros[15];

    return ip->version == 4
               ? ip->bytes[0] == 127 || ip->bytes[0] == 0
               : memcmp(ip->bytes, zeros, sizeof(zeros)) == 0 && ip->bytes[15] <= 1;
}

bool hvd_interfaces_are_own(const struct hvd_interfaces_own *own, const struct hvd_ip *ip)
{
    const struct hvd_ip plain = unmap_ip(ip);
    const size_t bytes = plain.version == 4 ? 4 : 16;

    if (is_loopback_or_none(&plain)) {
        return true;
    }
    for (int i = 0; i < own->count; i++) {
        if (own->list[i].version == plain.version &&
            memcmp(own->list[i].bytes, plain.bytes, bytes) == 0) {
            return true;
        }
    }
    return false;
}

bool hvd_interfaces_are(const char *names)
{
    while (*names != '\0') {
        size_t word = strcspn(names, ",");
        char name[IF_NAMESIZE];

        snprintf(name, sizeof(name), "%.*s", (int)word, names);
        if (word == 0 || word >= sizeof(name) || if_nametoindex(name) == 0) {
            return false;
        }
        names += word + (names[word] == ',' ? 1 : 0);
    }
    return true;
}

void hvd_ip_print(const struct hvd_ip *ip, uint16_t port, char *text)
{
    char address[INET6_ADDRSTRLEN] = "?";

    inet_ntop(ip->version == 4 ? AF_INET : AF_INET6, ip->bytes, address, sizeof(address));
    snprintf(text, 64, "%s port %u", address, port);
}
