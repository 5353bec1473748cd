/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/live/stack.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectives/trace/live_page.h"

enum {
    PAUSE_MS = 2,
    LIMIT_MS = 1500, /* the rank waits 300 ms for Python, and as long for its thread */
};

/* Whether the file is a memory file. A user could offer root another file under the name
 * of a page. All memory files are on one device, and no file with a path is on it. */
static bool is_memory_file(int fd)
{
    const int own = memfd_create("hvd-info", MFD_CLOEXEC);
    struct stat facts, of_own;
    const bool is_same = own >= 0 && fstat(own, &of_own) == 0 && fstat(fd, &facts) == 0 &&
                         facts.st_dev == of_own.st_dev;

    if (own >= 0) {
        close(own);
    }
    return is_same;
}

static bool read_word(int fd, size_t offset, uint32_t *word)
{
    return pread(fd, word, sizeof(*word), (off_t)offset) == (ssize_t)sizeof(*word);
}

/* Wakes the thread of the rank. Only the kernel uses the mapping: a user who shortens the
 * file cannot make this program fail. */
static void wake_rank(int fd)
{
    const size_t bytes = sizeof(struct hvd_live_page);
    char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (page != MAP_FAILED) {
        syscall(SYS_futex, page + offsetof(struct hvd_live_page, stack_asked), FUTEX_WAKE,
                INT_MAX, NULL, NULL, 0);
        munmap(page, bytes);
    }
}

/* Asks, and returns the number of the question; 0: the rank cannot be asked. */
static uint32_t ask_rank(int fd)
{
    const size_t offset = offsetof(struct hvd_live_page, stack_asked);
    uint32_t asked;

    if (!is_memory_file(fd) || !read_word(fd, offset, &asked)) {
        return 0;
    }
    asked = asked == UINT32_MAX ? 1 : asked + 1;
    if (pwrite(fd, &asked, sizeof(asked), (off_t)offset) != (ssize_t)sizeof(asked)) {
        return 0;
    }
    wake_rank(fd);
    return asked;
}

/* Copies the answer. Returns false if it is not there, or is being written. */
static bool take_answer(int fd, uint32_t asked, char stack[HVD_LIVE_STACK])
{
    const size_t offset = offsetof(struct hvd_live_page, stack_told);
    uint32_t before, after;

    /* a later number answers a question of somebody else, and this one, too */
    return read_word(fd, offset, &before) && before != 0 &&
           (int32_t)(before - asked) >= 0 &&
           pread(fd, stack, HVD_LIVE_STACK, offsetof(struct hvd_live_page, stack)) ==
               HVD_LIVE_STACK &&
           read_word(fd, offset, &after) && after == before;
}

/* Copies the lines that fit. */
static void copy_lines(const char *from, char *text, size_t bytes)
{
    size_t used = 0;

    for (size_t length; *from != '\0'; from += length) {
        length = strcspn(from, "\n") + 1;
        if (from[length - 1] == '\0' || used + length >= bytes) {
            break;
        }
        memcpy(text + used, from, length);
        used += length;
    }
    text[used] = '\0';
}

void hvd_info_stack_read(int page, char *text, size_t bytes)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    const uint32_t asked = ask_rank(page);
    char stack[HVD_LIVE_STACK + 1] = "";
    bool is_told = false;

    for (int waited_ms = 0; asked != 0 && !is_told && waited_ms < LIMIT_MS;
         waited_ms += PAUSE_MS) {
        is_told = take_answer(page, asked, stack);
        if (!is_told) {
            nanosleep(&pause, NULL);
        }
    }
    stack[HVD_LIVE_STACK] = '\0';
    copy_lines(is_told ? stack : "", text, bytes);
}
