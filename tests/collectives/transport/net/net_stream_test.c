/* SPDX-License-Identifier: Apache-2.0 */
/* Tests fragments over a connection, which may cut them anywhere. */
#include "collectives/transport/net/net_stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

enum {
    FRAGMENTS = 40,
    MAGIC_AT = 4, /* position of the magic number in the front of a fragment */
    FRONT_BYTES = 8 + sizeof(struct hvd_net_header) + HVD_SEAL_TAG_BYTES,
};

static char text[HVD_NET_FRAGMENT_BYTES];
static struct hvd_net_fragment fragments[FRAGMENTS];

/* Counts of fragments at both ends. */
static struct {
    int sent;
    int failed;
    int arrived;
    bool are_right; /* all that arrived were in order and complete */
    int answer; /* status that on_arrival returns */
} seen;

static void on_sent(void *context, struct hvd_net_fragment *fragment, int status)
{
    (void)context;
    (void)fragment;
    seen.sent += status == 0 ? 1 : 0;
    seen.failed += status != 0 ? 1 : 0;
}

static int on_arrival(void *context, const struct hvd_net_header *header,
                      const void *data, size_t bytes)
{
    const struct hvd_net_fragment *wanted = &fragments[seen.arrived];

    (void)context;
    seen.are_right = seen.are_right && seen.arrived < FRAGMENTS &&
                     bytes == wanted->bytes &&
                     memcmp(header, &wanted->header, sizeof(*header)) == 0 &&
                     memcmp(data, wanted->data, bytes) == 0;
    seen.arrived++;
    return seen.answer;
}

/* Makes fragments of all lengths, among them the longest and an empty one. */
static void begin(unsigned seed)
{
    srand(seed);
    memset(&seen, 0, sizeof(seen));
    seen.are_right = true;
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)rand();
    }
    for (int i = 0; i < FRAGMENTS; i++) {
        size_t most = i % 2 != 0 ? 100 : HVD_NET_FRAGMENT_BYTES;
        size_t bytes = i == 3   ? 0
                       : i == 4 ? HVD_NET_FRAGMENT_BYTES
                                : (size_t)rand() % most;

        fragments[i] = (struct hvd_net_fragment){
            .header = {.key = (uint64_t)rand(), .sequence = (uint32_t)i},
            .data = text + rand() % (int)(sizeof(text) - bytes + 1),
            .bytes = bytes,
            .covered = rand() % 2 != 0 ? 0 : bytes};
    }
}

static void make_pair(int fds[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) {
        exit(98);
    }
}

static void close_pair(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

/* --- protection --- */

static const char *const protection_names[] = {
    [HVD_NET_PROTECT_OBJECTS] = "objects",
    [HVD_NET_PROTECT_MESSAGES] = "messages",
    [HVD_NET_ENCRYPT_AES] = "encrypted with AES",
    [HVD_NET_ENCRYPT_CHACHA] = "encrypted with ChaCha",
};

static const struct hvd_handshake_keys keys = {.child_seal = "seal",
                                               .child_cipher = "cipher"};

static void protect_outlet(struct hvd_net_outlet *outlet, int protection)
{
    if (hvd_net_outlet_protect(outlet, (enum hvd_net_protection)protection, &keys) != 0) {
        exit(98);
    }
}

static void protect_inlet(struct hvd_net_inlet *inlet, int protection)
{
    if (hvd_net_seal_init(&inlet->seal, (enum hvd_net_protection)protection, &keys) !=
        0) {
        exit(98);
    }
}

static bool is_possible(int protection)
{
    return protection != HVD_NET_ENCRYPT_AES || hvd_net_seal_has_aes();
}

/* --- both ends together --- */

/* Makes progress until all fragments have arrived or nothing moves. */
static void drive(struct hvd_net_outlet *outlet, struct hvd_net_inlet *inlet,
                  struct hvd_net_buffers *buffers)
{
    for (int idle = 0; seen.arrived < FRAGMENTS && idle < 3; idle++) {
        int read = hvd_net_inlet_read(inlet, buffers, on_arrival, NULL);
        int flushed = hvd_net_outlet_flush(outlet, on_sent, NULL);

        idle = read != 0 || flushed != 0 ? -1 : idle;
    }
}

static void fragments_arrive(unsigned seed, bool is_late, int protection)
{
    struct hvd_net_buffers buffers = {0};
    struct hvd_net_outlet outlet = {.fd = -1};
    struct hvd_net_inlet inlet = {0};
    int at_once = 0;
    int fds[2];

    begin(seed);
    make_pair(fds);
    inlet.fd = fds[1];
    protect_inlet(&inlet, protection);
    if (!is_late) {
        protect_outlet(&outlet, protection);
        outlet.fd = fds[0];
    }
    for (int i = 0; i < FRAGMENTS; i++) {
        at_once += hvd_net_outlet_send(&outlet, &fragments[i]) == 0 ? 1 : 0;
    }
    if (is_late) {
        protect_outlet(&outlet, protection);
        outlet.fd = fds[0];
    }
    drive(&outlet, &inlet, &buffers);
    tap_ok(seen.arrived == FRAGMENTS && seen.are_right,
           "%s: %d of %d fragments arrive complete and in order%s",
           protection_names[protection], seen.arrived, FRAGMENTS,
           is_late ? ", also those sent before the connection" : "");
    tap_ok(at_once < FRAGMENTS && at_once + seen.sent == FRAGMENTS && seen.failed == 0,
           "each fragment is sent once: %d at once, %d later", at_once, seen.sent);
    tap_ok(inlet.buffer == NULL && outlet.first == NULL,
           "no buffer and no fragment is left over");
    hvd_net_outlet_finish(&outlet);
    hvd_net_inlet_finish(&inlet, &buffers);
    hvd_net_buffers_finish(&buffers);
    close_pair(fds);
}

/* --- reading a connection --- */

/* Fills `out` with the bytes that are sent for a fragment, as number `number` of its
 * connection. Returns how many bytes these are. */
static size_t put(char *out, const struct hvd_net_fragment *fragment, uint64_t number,
                  int protection)
{
    struct hvd_net_outlet outlet = {0};
    size_t bytes = 0;
    ssize_t got;
    int fds[2];
    int size = 4 << 20;

    make_pair(fds);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    protect_outlet(&outlet, protection);
    outlet.seal.tags.number = number;
    outlet.fd = fds[0];
    if (hvd_net_outlet_send(
            &outlet, &(struct hvd_net_fragment){.header = fragment->header,
                                                .data = fragment->data,
                                                .bytes = fragment->bytes,
                                                .covered = fragment->covered}) != 0) {
        exit(98);
    }
    while ((got = read(fds[1], out + bytes, FRONT_BYTES + HVD_NET_FRAGMENT_BYTES)) > 0) {
        bytes += (size_t)got;
    }
    hvd_net_outlet_finish(&outlet);
    close_pair(fds);
    return bytes;
}

/* Writes all fragments in pieces of random length, and reads each piece before the next
 * is written. */
static void pieces_arrive(unsigned seed)
{
    static char stream[FRAGMENTS * (FRONT_BYTES + HVD_NET_FRAGMENT_BYTES)];
    struct hvd_net_buffers buffers = {0};
    struct hvd_net_inlet inlet = {0};
    size_t bytes = 0;
    int status = 0;
    int fds[2];

    begin(seed);
    make_pair(fds);
    protect_inlet(&inlet, HVD_NET_PROTECT_OBJECTS);
    inlet.fd = fds[1];
    for (int i = 0; i < FRAGMENTS; i++) {
        bytes += put(stream + bytes, &fragments[i], (uint64_t)i, HVD_NET_PROTECT_OBJECTS);
    }
    for (size_t at = 0; at < bytes && status >= 0;) {
        size_t piece = 1 + (size_t)rand() % (rand() % 2 != 0 ? 50 : 60000);
        ssize_t written =
            write(fds[0], stream + at, piece < bytes - at ? piece : bytes - at);

        at += written > 0 ? (size_t)written : 0;
        status = hvd_net_inlet_read(&inlet, &buffers, on_arrival, NULL);
    }
    tap_ok(status >= 0 && seen.arrived == FRAGMENTS && seen.are_right,
           "%d of %d fragments that come in pieces are put together", seen.arrived,
           FRAGMENTS);
    shutdown(fds[0], SHUT_WR);
    errno = EBADF;
    status = hvd_net_inlet_read(&inlet, &buffers, on_arrival, NULL);
    tap_ok(status == HVD_ERR_PEER && errno == 0,
           "an end between two fragments is a proper end");
    hvd_net_inlet_finish(&inlet, &buffers);
    hvd_net_buffers_finish(&buffers);
    close_pair(fds);
}

/* Writes the first `bytes` bytes of a fragment, with the byte at `change` replaced by
 * `wrong` unless that is 0, and then ends the connection. Returns the reader's status. */
static int read_wrong(size_t bytes, size_t change, char wrong)
{
    static char stream[FRONT_BYTES + HVD_NET_FRAGMENT_BYTES];
    struct hvd_net_buffers buffers = {0};
    struct hvd_net_inlet inlet = {0};
    int status, error;
    int fds[2];

    make_pair(fds);
    inlet.fd = fds[1];
    protect_inlet(&inlet, HVD_NET_PROTECT_OBJECTS);
    put(stream, &fragments[1], 0, HVD_NET_PROTECT_OBJECTS);
    stream[change] = wrong != 0 ? wrong : stream[change];
    if (write(fds[0], stream, bytes) != (ssize_t)bytes) {
        exit(98);
    }
    shutdown(fds[0], SHUT_WR);
    do {
        status = hvd_net_inlet_read(&inlet, &buffers, on_arrival, NULL);
    } while (status > 0 || (status == 0 && bytes == 0));
    if (status == 0) {
        status = hvd_net_inlet_read(&inlet, &buffers, on_arrival, NULL);
    }
    error = errno;
    hvd_net_inlet_finish(&inlet, &buffers);
    hvd_net_buffers_finish(&buffers);
    close_pair(fds);
    errno = error;
    return status;
}

static void wrong_streams_are_told(unsigned seed)
{
    int status;

    begin(seed);
    tap_ok(read_wrong(FRONT_BYTES, MAGIC_AT, 0x55) == HVD_ERR_NET && seen.arrived == 0,
           "a wrong magic number is an error");
    tap_ok(read_wrong(FRONT_BYTES, 1, (char)0xff) == HVD_ERR_NET && seen.arrived == 0,
           "a length that no fragment can have is an error");
    errno = 0;
    fragments[1].bytes = fragments[1].covered = 20;
    status = read_wrong(FRONT_BYTES + 19, 0, 0);
    tap_ok(status == HVD_ERR_PEER && errno == ECONNRESET && seen.arrived == 0,
           "an end within a fragment is not a proper end");
    seen.answer = HVD_ERR_MISMATCH;
    tap_ok(read_wrong(FRONT_BYTES + 20, 0, 0) == HVD_ERR_MISMATCH,
           "an error of the handler ends the reading");
}

/* --- forged fragments --- */

/* Reads a stream to its end or to the first error, which is stored in *status. Returns
 * how many fragments were accepted. */
static int read_stream(char *stream, size_t bytes, int protection, int *status)
{
    struct hvd_net_buffers buffers = {0};
    struct hvd_net_inlet inlet = {0};
    int fds[2];

    seen.arrived = 0;
    seen.are_right = true;
    make_pair(fds);
    inlet.fd = fds[1];
    protect_inlet(&inlet, protection);
    if (write(fds[0], stream, bytes) != (ssize_t)bytes) {
        exit(98);
    }
    shutdown(fds[0], SHUT_WR);
    do {
        *status = hvd_net_inlet_read(&inlet, &buffers, on_arrival, NULL);
    } while (*status >= 0);
    hvd_net_inlet_finish(&inlet, &buffers);
    hvd_net_buffers_finish(&buffers);
    close_pair(fds);
    return seen.arrived;
}

static void forgeries_are_told(unsigned seed, int protection)
{
    enum {
        BYTES = 100,
        COVERED = 60,
        EACH = FRONT_BYTES + BYTES
    };
    const size_t covered =
        FRONT_BYTES + (protection == HVD_NET_PROTECT_OBJECTS ? COVERED : BYTES);
    /* has room for the longest fragment behind the last one, because put() asks to read
     * that much */
    static char stream[3 * EACH + FRONT_BYTES + HVD_NET_FRAGMENT_BYTES];
    char forged[3 * EACH];
    int believed = 0;
    int status;

    begin(seed);
    for (int i = 0; i < 3; i++) {
        fragments[i].bytes = BYTES;
        fragments[i].covered = COVERED;
        put(stream + i * EACH, &fragments[i], (uint64_t)i, protection);
    }
    tap_ok(read_stream(stream, sizeof(forged), protection, &status) == 3 &&
               status == HVD_ERR_PEER && seen.are_right,
           "%s: fragments that were sent are accepted", protection_names[protection]);
    for (size_t bit = 0; bit < covered * 8; bit++) {
        memcpy(forged, stream, sizeof(forged));
        forged[EACH + bit / 8] ^= (char)(1 << (bit % 8));
        believed += read_stream(forged, sizeof(forged), protection, &status) != 1 ? 1 : 0;
    }
    tap_ok(believed == 0,
           "if any of %zu bits is changed, nothing from there on is accepted",
           covered * 8);
    memcpy(forged, stream, sizeof(forged));
    memcpy(forged + EACH, stream, EACH);
    tap_ok(read_stream(forged, sizeof(forged), protection, &status) == 1 &&
               status == HVD_ERR_NET,
           "a repeated fragment is not accepted");
    tap_ok(read_stream(stream + EACH, 2 * EACH, protection, &status) == 0 &&
               status == HVD_ERR_NET,
           "a fragment after a missing one is not accepted");
    tap_ok((memmem(stream, sizeof(forged), fragments[1].data, BYTES) == NULL) ==
               (protection >= HVD_NET_ENCRYPT_AES),
           "the bytes can%s be read in transit",
           protection >= HVD_NET_ENCRYPT_AES ? "not" : "");
}

/* --- a reader that has gone --- */

static void broken_connections_are_told(unsigned seed)
{
    struct hvd_net_outlet outlet = {0};
    int fds[2];

    begin(seed);
    make_pair(fds);
    outlet.fd = fds[0];
    for (int i = 0; i < FRAGMENTS; i++) {
        hvd_net_outlet_send(&outlet, &fragments[i]);
    }
    close(fds[1]);
    errno = 0;
    tap_ok(hvd_net_outlet_flush(&outlet, on_sent, NULL) == HVD_ERR_PEER && errno == EPIPE,
           "a broken connection is an error, and no signal is raised");
    hvd_net_outlet_drop(&outlet, HVD_ERR_SHUTDOWN, on_sent, NULL);
    tap_ok(seen.failed > 0 && outlet.first == NULL,
           "fragments that were not sent have failed: %d", seen.failed);
    tap_ok(hvd_net_outlet_send(&outlet, &fragments[0]) == HVD_ERR_PEER,
           "nothing can be sent after that");
    close(fds[0]);
}

int main(void)
{
    unsigned seed = tap_seed((unsigned)hvd_clock_ms());

    for (int i = HVD_NET_PROTECT_OBJECTS; i <= HVD_NET_ENCRYPT_CHACHA; i++) {
        if (is_possible(i)) {
            fragments_arrive(seed, false, i);
            fragments_arrive(seed + 1, true, i);
            forgeries_are_told(seed + 5, i);
        }
    }
    pieces_arrive(seed + 2);
    wrong_streams_are_told(seed + 3);
    broken_connections_are_told(seed + 4);
    return tap_done();
}
