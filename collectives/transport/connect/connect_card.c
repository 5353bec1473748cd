/* SPDX-License-Identifier: Apache-2.0 */
/* Collects, filters and decodes the addresses of a rank's sockets. */
#include "collectives/transport/connect/connect_card.h"

#include <assert.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmix_boot/sock/listen_address.h"

/* Fills in machine and network. Both stay 0 if /proc cannot be read; the host then equals
 * no other. */
static void name_host(struct hvd_connect_card *card)
{
    struct stat network;
    char boot_id[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, boot_id, sizeof(boot_id)) : 0;

    static_assert(sizeof(card->machine) <= crypto_generichash_BYTES_MIN,
                  "part of a hash");
    if (fd >= 0) {
        close(fd);
    }
    if (length > 0 && stat("/proc/self/ns/net", &network) == 0) {
        unsigned char hash[crypto_generichash_BYTES_MIN];

        crypto_generichash(hash, sizeof(hash), (const unsigned char *)boot_id,
                           (unsigned long long)length, NULL, 0);
        memcpy(&card->machine, hash, sizeof(card->machine));
        card->network = network.st_ino;
    }
}

static bool is_same_host(const struct hvd_connect_card *card,
                         const struct hvd_connect_card *own)
{
    return card->network != 0 && card->network == own->network &&
           card->machine == own->machine;
}

int hvd_connect_card_drop_own(struct hvd_connect_card *card,
                              const struct hvd_connect_card *own,
                              const struct hvd_interfaces_own *addresses)
{
    const int count = card->count;

    if (is_same_host(card, own)) {
        return 0;
    }
    card->count = 0;
    for (int i = 0; i < count; i++) {
        if (!hvd_interfaces_are_own(addresses, &card->addresses[i])) {
            card->addresses[card->count++] = card->addresses[i];
        }
    }
    return count - card->count;
}

int hvd_connect_card_list(struct hvd_connect_card *card, struct hvd_error *err)
{
    int count = 0;
    int status = hvd_interfaces_list(hvd_listen_interfaces(), card->addresses,
                                     HVD_CONNECT_CARD_ADDRESSES, &count, err);

    card->count = (uint16_t)count;
    name_host(card);
    return status;
}

size_t hvd_connect_card_bytes(const struct hvd_connect_card *card)
{
    return offsetof(struct hvd_connect_card, addresses) +
           card->count * sizeof(card->addresses[0]);
}

int hvd_connect_card_parse(struct hvd_connect_card *card, const void *data, size_t bytes)
{
    struct hvd_connect_card read = {0};

    if (bytes < offsetof(struct hvd_connect_card, addresses) || bytes > sizeof(read)) {
        return HVD_ERR_ARG;
    }
    memcpy(&read, data, bytes);
    if (read.count > HVD_CONNECT_CARD_ADDRESSES ||
        hvd_connect_card_bytes(&read) != bytes) {
        return HVD_ERR_ARG;
    }
    *card = read;
    return 0;
}
