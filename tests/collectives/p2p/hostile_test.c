/* SPDX-License-Identifier: Apache-2.0 */
/* Sends envelopes (headers of messages) that no rank would write: they may end the job,
 * but must not touch any memory except that of receives. There are no links:
 * hvd_links_init and hvd_links_write are replaced. */
#include "collectives/p2p/p2p.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "collectives/p2p/links.h"
#include "pmix_boot/boot.h"
#include "collectives/set/sets.h"
#include "tests/tap.h"

enum {
    ROUNDS = 3000,
    ENVELOPES = 60,
    BYTES = 100000,
};

int __wrap_hvd_links_init(struct hvd_links *links, const struct hvd_links_config *config,
                          struct hvd_error *err);
int __wrap_hvd_links_write(struct hvd_links *links, int rank,
                           const struct hvd_envelope *envelope, const void *payload);

static struct hvd_links_config links_config;
static struct hvd_envelope written; /* the last envelope written to rank 1 */
static int ended, failed;

int __wrap_hvd_links_init(struct hvd_links *links, const struct hvd_links_config *config,
                          struct hvd_error *err)
{
    (void)err;
    links_config = *config;
    links->config = *config;
    links->links = calloc(2, sizeof(links->links[0]));
    return links->links != NULL ? 0 : HVD_ERR_NOMEM;
}

int __wrap_hvd_links_write(struct hvd_links *links, int rank,
                           const struct hvd_envelope *envelope, const void *payload)
{
    (void)payload;
    if (rank == 0) {
        return links->config.arrived(links->config.context, 0, envelope, payload);
    }
    written = *envelope;
    return 0;
}

static void on_end(void *context, struct hvd_entry *entry, int status, const char *text)
{
    (void)context;
    (void)entry;
    (void)text;
    ended++;
    failed += status != 0;
}

/* Creates struct hvd_p2p for rank 0 of a job of two ranks on different nodes. */
static struct hvd_p2p *open_p2p(void)
{
    static int node[] = {0, 1}, local_rank[] = {0, 0}, first[] = {0, 1, 2},
               node_rank[] = {0, 1};
    static struct hvd_boot boot;
    static const struct hvd_sets sets;
    const struct hvd_p2p_config config = {.boot = &boot, .sets = &sets, .ended = on_end};
    struct hvd_p2p *p2p = NULL;
    struct hvd_error err = {0};

    boot.rank = 0;
    boot.size = 2;
    boot.layout = (struct hvd_layout){.size = 2,
                                      .nodes = 2,
                                      .node = node,
                                      .local_rank = local_rank,
                                      .node_first = first,
                                      .node_rank = node_rank};
    if (hvd_p2p_create(&config, &p2p, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(99);
    }
    ended = failed = 0;
    written = (struct hvd_envelope){0};
    return p2p;
}

static struct hvd_request *start(struct hvd_p2p *p2p, enum hvd_kind kind, void *data,
                                 size_t bytes, int64_t tag)
{
    struct hvd_request *request = hvd_request_create(1);
    struct hvd_entry *entry = &request->entries[0];

    request->tag = tag;
    entry->descriptor.kind = kind;
    entry->descriptor.root = 1;
    entry->descriptor.dtype = HVD_UINT8;
    entry->input = entry->output = data;
    entry->output_bytes = bytes;
    hvd_p2p_start(p2p, entry, 0);
    return request;
}

/* Delivers an envelope from rank 1 if hvd_envelope_check accepts it, as the links do. */
static int arrive(const struct hvd_envelope *envelope)
{
    static const char payload[HVD_PIECE_BYTES + 1];
    struct hvd_error err = {0};
    int status =
        hvd_envelope_check(envelope, sizeof(*envelope) + envelope->payload, &err);

    return status != 0 ? status
                       : links_config.arrived(links_config.context, 1, envelope, payload);
}

static struct hvd_envelope piece(uint32_t payload, uint64_t at)
{
    return (struct hvd_envelope){.type = HVD_ENVELOPE_DATA,
                                 .payload = payload,
                                 .receive = written.receive,
                                 .at = at};
}

/* Starts a receive of BYTES, then lets rank 1 offer a message of that size: this rank
 * must ask for it in pieces. */
static struct hvd_request *receive_in_pieces(struct hvd_p2p *p2p, char *in)
{
    struct hvd_request *request = start(p2p, HVD_KIND_RECEIVE, in, BYTES, 4);
    const struct hvd_envelope offer = {
        .type = HVD_ENVELOPE_OFFER, .tag = 4, .bytes = BYTES, .send = 77};

    tap_ok(arrive(&offer) == 0 && written.type == HVD_ENVELOPE_READY &&
               written.send == 77,
           "a receive asks for a large message of another node in pieces");
    return request;
}

static void test_pieces(void)
{
    struct hvd_p2p *p2p = open_p2p();
    char *in = malloc(BYTES);
    struct hvd_request *request = receive_in_pieces(p2p, in);
    struct hvd_envelope good = piece(HVD_PIECE_BYTES, 0);
    struct hvd_envelope again = good,
                        beyond = piece(HVD_PIECE_BYTES, 3 * HVD_PIECE_BYTES);
    struct hvd_envelope strange = piece(1, HVD_PIECE_BYTES);

    strange.receive = 12345;
    tap_ok(arrive(&good) == 0, "the first piece is accepted");
    tap_ok(arrive(&again) == HVD_ERR_NET, "the same piece again is refused");
    tap_ok(arrive(&strange) == HVD_ERR_NET, "a piece for an unknown receive is refused");
    good.at = HVD_PIECE_BYTES;
    tap_ok(arrive(&good) == 0 && (good.at += HVD_PIECE_BYTES, arrive(&good) == 0) &&
               arrive(&beyond) == HVD_ERR_NET,
           "a last piece that is too long is refused");
    tap_ok(hvd_p2p_failure(p2p)->status == HVD_ERR_NET, "the job has failed");
    hvd_p2p_drop(p2p, HVD_ERR_NET, "the end");
    tap_ok(arrive(&good) == 0, "after the end every envelope is ignored");
    hvd_request_drop(request);
    hvd_p2p_destroy(p2p);
    free(in);
}

static int answer(enum hvd_envelope_type type, uint64_t send, uint64_t taken)
{
    const struct hvd_envelope envelope = {.type = type, .send = send, .taken = taken};

    return arrive(&envelope);
}

static void test_answers(void)
{
    struct hvd_p2p *p2p = open_p2p();
    static char out[BYTES];
    struct hvd_request *request = start(p2p, HVD_KIND_SEND, out, BYTES, 1);

    tap_ok(written.type == HVD_ENVELOPE_OFFER, "a large message is offered first");
    tap_ok(answer(HVD_ENVELOPE_DONE, written.send + 1, 0) == HVD_ERR_NET,
           "an answer to an unknown offer is refused");
    tap_ok(answer(HVD_ENVELOPE_FLUSHED, 0, 0) == HVD_ERR_NET,
           "an answer to no flush is refused");
    tap_ok(answer(HVD_ENVELOPE_TAKEN, 0, 1) == HVD_ERR_NET,
           "a claim to have taken a message that was never sent is refused");
    tap_ok(answer(HVD_ENVELOPE_DONE, written.send, 0) == 0 && ended == 1 && failed == 0,
           "the right answer ends the send");
    hvd_request_drop(request);
    hvd_p2p_destroy(p2p);
}

static uint64_t some(uint64_t usual)
{
    return rand() % 3 > 0 ? usual
           : rand() % 2 > 0
               ? (uint64_t)(rand() % 100000)
               : ((uint64_t)rand() << 33) ^ ((uint64_t)rand() << 5) ^ (uint64_t)rand();
}

static struct hvd_envelope random_envelope(void)
{
    return (struct hvd_envelope){
        .type = (uint32_t)(rand() % (HVD_ENVELOPE_TYPES + 1)),
        .payload = (uint32_t)(rand() % 2 > 0 ? 0 : rand() % (HVD_PIECE_BYTES + 1)),
        .dtype = (uint32_t)(rand() % (HVD_DTYPE_COUNT + 1)),
        .set = rand() % 2,
        .tag = rand() % 4,
        .bytes = some(rand() % 2 > 0 ? BYTES : 100),
        .send = some((uint64_t)(rand() % 8)),
        .receive = some((uint64_t)(rand() % 8)),
        .at = some(0),
        .taken = some(0),
    };
}

/* Checks that every request ends exactly once, whatever arrives. A sanitizer watches the
 * memory. */
static void test_random(void)
{
    bool ok = true;

    for (int i = 0; i < ROUNDS; i++) {
        struct hvd_p2p *p2p = open_p2p();
        struct hvd_request *requests[4];
        char *data[4];

        for (int j = 0; j < 4; j++) {
            const size_t bytes = j % 2 > 0 ? BYTES : 100;

            data[j] = malloc(bytes);
            memset(data[j], j, bytes);
            requests[j] =
                start(p2p, j < 3 ? HVD_KIND_RECEIVE : HVD_KIND_SEND, data[j], bytes, j);
        }
        for (int j = 0; j < ENVELOPES; j++) {
            const struct hvd_envelope envelope = random_envelope();

            arrive(&envelope);
        }
        hvd_p2p_drop(p2p, HVD_ERR_NET, "the end");
        ok = ok && ended == 4;
        for (int j = 0; j < 4; j++) {
            hvd_request_drop(requests[j]);
            free(data[j]);
        }
        hvd_p2p_destroy(p2p);
    }
    tap_ok(ok, "whatever arrives, each request ends exactly once");
}

int main(void)
{
    srand(tap_seed(1));
    test_pieces();
    test_answers();
    test_random();
    return tap_done();
}
