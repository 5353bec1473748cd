/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the bracket that closes a JSON file in one step. */
#include "collectives/trace/trace_bracket.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "gpu_binding/base/hvd_status.h"

/* A byte of the file, mapped into memory. */
struct spot {
    void *page; /* MAP_FAILED: it could not be mapped */
    size_t page_bytes;
    char *byte;
};

static void map_spot(int fd, int64_t offset, struct spot *spot)
{
    int64_t page_bytes = sysconf(_SC_PAGESIZE);
    int64_t begin = offset / page_bytes * page_bytes;

    spot->page_bytes = (size_t)page_bytes;
    spot->page =
        mmap(NULL, spot->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin);
    if (spot->page != MAP_FAILED) {
        spot->byte = (char *)spot->page + (offset - begin);
    }
}

static void unmap_spot(struct spot *spot)
{
    if (spot->page != MAP_FAILED) {
        munmap(spot->page, spot->page_bytes);
    }
}

/* Moves the bracket by reading two bytes into the mapped file. Reads twice: the first
 * read changes nothing but takes the page faults, because a signal could interrupt those.
 */
static int swap_mapped(const struct spot *from, const struct spot *to)
{
    static const char before_and_after[] = "] "
                                           " ]";
    const struct iovec parts[] = {{from->byte, 1}, {to->byte, 1}};
    int source = memfd_create("hvd bracket", MFD_CLOEXEC);
    int status = HVD_ERR_SYS;

    if (source < 0) {
        return HVD_ERR_SYS;
    }
    if (write(source, before_and_after, 4) == 4 && preadv(source, parts, 2, 0) == 2 &&
        preadv(source, parts, 2, 2) == 2) {
        status = 0;
    }
    close(source);
    return status;
}

int hvd_trace_move_bracket(int fd, int64_t from, int64_t to)
{
    struct spot old, new;
    int status = HVD_ERR_SYS;

    map_spot(fd, from, &old);
    map_spot(fd, to, &new);
    if (old.page != MAP_FAILED && new.page != MAP_FAILED) {
        status = swap_mapped(&old, &new);
    }
    unmap_spot(&old);
    unmap_spot(&new);
    if (status != 0 && pwrite(fd, "]", 1, to) == 1 && pwrite(fd, " ", 1, from) == 1) {
        status = 0;
    }
    return status;
}
