/* SPDX-License-Identifier: Apache-2.0 */
/* Mail whose sizes and bytes are computed from a seed. */
#include "tests/collectives/transport/shm/mail_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "collectives/transport/shm/shm.h"

static void bail_out(const struct hvd_error *err)
{
    printf("Bail out! %s\n", err->text);
    exit(99);
}

static struct hvd_shm_sizes sizes_of(int local_size)
{
    return (struct hvd_shm_sizes){
        .local_size = local_size,
        .extra_bytes = hvd_mail_extra_bytes(local_size),
        .reserved_bytes = hvd_mail_reserved_bytes(local_size),
        .geometry = {.slots = 2, .slot_bytes = 4096, .recv_bytes = 4096},
    };
}

void mail_open_node(struct mail_node *node, int size)
{
    const struct hvd_shm_sizes sizes = sizes_of(size);
    struct hvd_error err = {0};

    node->size = size;
    node->file = hvd_shm_open(&sizes, &err);
    if (node->file < 0) {
        bail_out(&err);
    }
    for (int i = 0; i < size; i++) {
        node->bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
}

void mail_close_node(struct mail_node *node)
{
    for (int i = 0; i < node->size; i++) {
        close(node->bells[i]);
    }
    close(node->file);
}

void mail_open_rank(const struct mail_node *node, int local_rank, void *memory,
                    struct mail_rank *rank)
{
    const struct hvd_shm_sizes sizes = sizes_of(node->size);
    struct hvd_error err = {0};
    int status = hvd_shm_create(dup(node->file), local_rank, &sizes, node->bells,
                                &rank->shm, &err);

    if (status == 0) {
        status =
            hvd_mail_create(rank->shm, memory != NULL ? memory : hvd_shm_extra(rank->shm),
                            &rank->mail, &err);
    }
    if (status != 0) {
        bail_out(&err);
    }
}

void mail_close_rank(struct mail_rank *rank)
{
    hvd_mail_destroy(rank->mail);
    hvd_shm_destroy(rank->shm);
}

/* --- data --- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Returns the seed of a piece's random bytes. It is the same for all receivers of a piece
 * of control mail. */
static uint64_t start_of(enum hvd_mail_kind kind, unsigned seed, int from, int to,
                         uint32_t number)
{
    const uint64_t stream = kind == HVD_MAIL_CONTROL
                                ? (uint64_t)from
                                : (uint64_t)(MAIL_MAX_RANKS * (to + 1) + from);

    return mix(mix(seed) ^ mix(stream << 32 | number));
}

/* Returns a random size. Most mail is short, and some is longer than a ring. */
static size_t size_of(uint64_t start)
{
    unsigned percent = (unsigned)(start % 100);
    size_t limit = percent < 75 ? 200 : percent < 96 ? 40000 : MAIL_MAX_BYTES;

    return (size_t)(mix(start) % (limit + 1));
}

static char *make_payload(uint64_t start, size_t bytes)
{
    char *payload = malloc(bytes + 8);

    for (size_t i = 0; i < bytes; i += 8) {
        start = start * 6364136223846793005u + 1442695040888963407u;
        memcpy(payload + i, &start, 8);
    }
    return payload;
}

int mail_post(struct hvd_mail *mail, enum hvd_mail_kind kind, unsigned seed, int from,
              int to, uint32_t number)
{
    uint64_t start = start_of(kind, seed, from, to, number);
    size_t bytes = size_of(start);
    char *payload = make_payload(start, bytes);
    struct hvd_error err = {0};
    int status = kind == HVD_MAIL_CONTROL
                     ? hvd_mail_send_control(mail, number, payload, bytes, &err)
                     : hvd_mail_send_p2p(mail, to, payload, bytes, &err);

    free(payload);
    return status;
}

int mail_check(void *context, int from, uint32_t type, const void *payload, size_t bytes)
{
    struct mail_tally *tally = context;
    uint32_t number = tally->got[from]++;
    uint64_t start = start_of(tally->kind, tally->seed, from, tally->rank, number);
    char *wanted = make_payload(start, size_of(start));

    if (type != (tally->kind == HVD_MAIL_CONTROL ? number : 0) ||
        bytes != size_of(start) || (uintptr_t)payload % 8 != 0 ||
        memcmp(payload, wanted, bytes) != 0) {
        printf("# number %u of local rank %d: got type %u, %zu bytes\n", number, from,
               type, bytes);
        tally->is_wrong = true;
    }
    free(wanted);
    return 0;
}
