/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a record: header, node with its final NUL, payload. */
#include "pmix_boot/rank_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* The same in all versions of hvd; a wrong byte order makes it differ. */
#define RECORD_MAGIC 0x68766402u

#define MAX_HOST 256
#define VERSION_BYTES 32
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_LENGTH 36

struct record_header {
    /* These members stay as they are in all versions, and the node follows the header, so
     * that each version can name the rank, the host and the version of another. */
    uint32_t magic;
    uint32_t header_bytes;
    char version[VERSION_BYTES]; /* ends with a NUL */
    /* These may change. */
    uint64_t node_bytes; /* includes the final NUL */
    uint64_t payload_bytes;
    unsigned char secret[HVD_SECRET_BYTES];
};

/* Reads the boot id; "" if the kernel does not tell. */
static void read_boot_id(char *id)
{
    int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, id, BOOT_ID_LENGTH) : 0;

    id[length > 0 ? length : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

/* Names the node by host name and boot id. The host name alone could be the same on two
 * nodes ("localhost"); the boot id alone is the same for two containers or network
 * namespaces that share only a kernel. */
static int name_node(char *node, size_t bytes, struct hvd_error *err)
{
    char host[MAX_HOST];
    char boot_id[BOOT_ID_LENGTH + 1];

    if (gethostname(host, sizeof(host)) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot read this machine's host name: %m");
    }
    host[sizeof(host) - 1] = '\0';
    read_boot_id(boot_id);
    snprintf(node, bytes, "%s %s", host[0] != '\0' ? host : "localhost", boot_id);
    return 0;
}

static int draw_secret(unsigned char *secret, struct hvd_error *err)
{
    ssize_t drawn;

    /* getrandom fills up to 256 bytes as a whole. A signal interrupts it only while the
     * kernel gathers its first randomness. */
    do {
        drawn = getrandom(secret, HVD_SECRET_BYTES, 0);
    } while (drawn < 0 && errno == EINTR);
    return drawn == HVD_SECRET_BYTES
               ? 0
               : hvd_fail(err, HVD_ERR_SYS, "cannot draw a random job secret: %m");
}

int hvd_rank_record_pack(const void *payload, size_t bytes, struct hvd_blob *out,
                         struct hvd_error *err)
{
    char node[MAX_HOST + BOOT_ID_LENGTH + 2];
    struct record_header header = {.magic = RECORD_MAGIC,
                                   .header_bytes = sizeof(header),
                                   .version = HVD_VERSION,
                                   .payload_bytes = bytes};
    int status = name_node(node, sizeof(node), err);
    size_t total;
    char *data;

    if (status < 0 || (status = draw_secret(header.secret, err)) < 0) {
        return status;
    }
    header.node_bytes = strlen(node) + 1;
    total = sizeof(header) + header.node_bytes + bytes;
    data = malloc(total);
    if (data == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a record of %zu bytes", total);
    }
    memcpy(data, &header, sizeof(header));
    memcpy(data + sizeof(header), node, header.node_bytes);
    if (bytes > 0) {
        memcpy(data + sizeof(header) + header.node_bytes, payload, bytes);
    }
    *out = (struct hvd_blob){data, total};
    return 0;
}

static bool is_record(const struct hvd_blob *blob, const struct record_header *header)
{
    size_t rest = blob->bytes - sizeof(*header);
    const char *node = (const char *)blob->data + sizeof(*header);

    return header->magic == RECORD_MAGIC && header->header_bytes == sizeof(*header) &&
           header->node_bytes > 0 && header->node_bytes <= rest &&
           node[header->node_bytes - 1] == '\0' &&
           header->payload_bytes == rest - header->node_bytes;
}

/* Finds the version and the host in a record of any version of hvd. Both point into the
 * blob. */
static bool find_version(const struct hvd_blob *blob, const char **version,
                         const char **node, size_t *host_length)
{
    const size_t fixed = offsetof(struct record_header, node_bytes);
    const char *data = blob->data;
    struct record_header header = {0};

    if (blob->bytes < fixed) {
        return false;
    }
    memcpy(&header, data, fixed);
    if (header.magic != RECORD_MAGIC || header.header_bytes < fixed ||
        header.header_bytes >= blob->bytes || header.version[VERSION_BYTES - 1] != '\0' ||
        memchr(data + header.header_bytes, '\0', blob->bytes - header.header_bytes) ==
            NULL) {
        return false;
    }
    *version = data + offsetof(struct record_header, version);
    *node = data + header.header_bytes;
    *host_length = strcspn(*node, " ");
    return true;
}

int hvd_rank_record_compare(const struct hvd_blob *blobs, int size, int own,
                            struct hvd_error *err)
{
    const char *version, *node, *own_version, *own_node;
    size_t length, own_length;

    if (!find_version(&blobs[own], &own_version, &own_node, &own_length)) {
        return 0; /* hvd_rank_record_read reports it */
    }
    for (int rank = 0; rank < size; rank++) {
        if (find_version(&blobs[rank], &version, &node, &length) &&
            strcmp(version, own_version) != 0) {
            return hvd_fail(err, HVD_ERR_MISMATCH,
                            "rank %d on %.*s has hvd %s, but this rank, %d on %.*s, has "
                            "hvd %s: install the same version on both hosts",
                            rank, (int)length, node, version, own, (int)own_length,
                            own_node, own_version);
        }
    }
    return 0;
}

int hvd_rank_record_read(const struct hvd_blob *blob, int rank,
                         struct hvd_rank_record *out, struct hvd_error *err)
{
    const char *data = blob->data;
    struct record_header header = {0};

    if (blob->bytes >= sizeof(header)) {
        memcpy(&header, data, sizeof(header));
    }
    if (blob->bytes < sizeof(header) || !is_record(blob, &header)) {
        return hvd_fail(
            err, HVD_ERR_MISMATCH,
            "rank %d published %zu bytes that this version of hvd cannot read: "
            "install the same hvd on all nodes",
            rank, blob->bytes);
    }
    out->node = data + sizeof(header);
    out->host_length = strcspn(out->node, " ");
    out->secret = (const unsigned char *)data + offsetof(struct record_header, secret);
    out->payload = out->node + header.node_bytes;
    out->payload_bytes = header.payload_bytes;
    return 0;
}
