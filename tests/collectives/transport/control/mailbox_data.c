/* SPDX-License-Identifier: Apache-2.0 */
/* Messages whose sizes and bytes follow from a seed. */
#include "tests/collectives/transport/control/mailbox_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t start(unsigned seed, int sender, uint32_t number)
{
    return mix(mix(seed) ^ mix((uint64_t)sender << 32 | number));
}

size_t mailbox_size(unsigned seed, int sender, uint32_t number)
{
    uint64_t x = start(seed, sender, number);
    unsigned percent = (unsigned)(x % 100);
    size_t limit = percent < 75 ? 200 : percent < 96 ? 40000 : MAILBOX_MAX_BYTES;

    return (size_t)(mix(x) % (limit + 1));
}

void mailbox_fill(char *buffer, unsigned seed, int sender, uint32_t number, size_t bytes)
{
    uint64_t x = start(seed, sender, number);

    for (size_t i = 0; i < bytes; i += 8) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        memcpy(buffer + i, &x, 8);
    }
}

bool mailbox_is_right(const void *payload, unsigned seed, int sender, uint32_t number,
                      size_t bytes)
{
    char *wanted = malloc(bytes + 8);
    bool is_right;

    mailbox_fill(wanted, seed, sender, number, bytes);
    is_right = memcmp(wanted, payload, bytes) == 0;
    free(wanted);
    return is_right;
}

int mailbox_post(struct hvd_mailbox *box, unsigned seed, int sender, uint32_t number)
{
    size_t bytes = mailbox_size(seed, sender, number);
    char *payload = malloc(bytes + 8);
    int status;

    mailbox_fill(payload, seed, sender, number, bytes);
    status = hvd_mailbox_send(box, number, payload, bytes);
    free(payload);
    return status;
}

void mailbox_check(void *context, int from, uint32_t type, const void *payload,
                   size_t bytes)
{
    struct mailbox_tally *tally = context;

    if (type != tally->got[from] || bytes != mailbox_size(tally->seed, from, type) ||
        (uintptr_t)payload % 8 != 0 ||
        !mailbox_is_right(payload, tally->seed, from, type, bytes)) {
        printf("# local rank %d sent %u: got type %u, %zu bytes\n", from,
               tally->got[from], type, bytes);
        tally->is_wrong = true;
    }
    tally->got[from]++;
}
