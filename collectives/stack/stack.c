/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/stack.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/stack/mappings.h"
#include "collectives/stack/python_stack.h"
#include "collectives/stack/symbols.h"
#include "collectives/stack/thread_state.h"
#include "collectives/stack/unwind.h"

enum {
    MOST_CALLS = 128,
    MOST_TRIES = 5, /* while the thread goes on during the walk */
    NAME_BYTES = 160,
};

struct call {
    struct hvd_stack_module module;
    uint64_t address; /* of an instruction of the call */
};

struct calls {
    struct call all[MOST_CALLS];
    int count;
};

/* --- the walk --- */

static void walk_calls(const struct hvd_stack_mappings *mappings,
                       const struct hvd_stack_memory *memory,
                       struct hvd_stack_registers registers, struct calls *calls)
{
    enum hvd_stack_step step = HVD_STACK_STEPPED;
    uint64_t last_rsp = 0;

    calls->count = 0;
    while (step == HVD_STACK_STEPPED && calls->count < MOST_CALLS &&
           registers.value[HVD_STACK_RSP] != last_rsp) {
        struct call *call = &calls->all[calls->count];

        call->address = hvd_stack_registers_instruction(&registers);
        if (!hvd_stack_mappings_find_module(mappings, memory, call->address,
                                            &call->module)) {
            return;
        }
        calls->count++;
        last_rsp = registers.value[HVD_STACK_RSP];
        step = hvd_stack_unwind(memory, call->module.index, &registers);
    }
}

/* Walks the stack of a thread. Tries again if the thread has gone on meanwhile. */
static void walk_thread(const struct hvd_stack_mappings *mappings, int memory_fd,
                        pid_t thread, struct calls *calls)
{
    for (int i = 0; i < MOST_TRIES; i++) {
        struct hvd_stack_memory memory = {.fd = memory_fd};
        struct hvd_stack_registers registers;
        struct hvd_stack_look before, after;

        hvd_stack_look_at(thread, &before);
        if (before.state == HVD_STACK_RUNS) {
            if (hvd_stack_interrupt(thread, &memory, &registers)) {
                walk_calls(mappings, &memory, registers, calls);
            }
            return;
        }
        if (!hvd_stack_look_registers(&before, &registers)) {
            return;
        }
        walk_calls(mappings, &memory, registers, calls);
        hvd_stack_look_at(thread, &after);
        if (strcmp(before.text, after.text) == 0) {
            return;
        }
        calls->count = 0;
    }
}

/* --- names --- */

/* Opens the file of a module. Returns -1 if the path leads to another file now. */
static int open_module(const struct hvd_stack_mapping *mapping)
{
    const int fd =
        mapping->inode != 0 ? open(mapping->path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    struct stat facts;

    if (fd >= 0 && (fstat(fd, &facts) != 0 || facts.st_ino != mapping->inode)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool find_name(const struct call *call, char *name, size_t bytes)
{
    const struct hvd_stack_memory file = {.fd = open_module(call->module.mapping)};
    const bool is_found =
        file.fd >= 0 &&
        hvd_stack_symbols_find(&file, call->address - call->module.bias, name, bytes);

    if (file.fd >= 0) {
        close(file.fd);
    }
    return is_found;
}

/* Writes "clock_nanosleep in libc.so.6", or "libc.so.6+0x1234" if the function has no
 * name. */
static void describe_call(const struct call *call, char *line, size_t bytes)
{
    const char *path = call->module.mapping->path;
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    char name[NAME_BYTES];

    if (find_name(call, name, sizeof(name))) {
        snprintf(line, bytes, "%s in %s\n", name, file);
    } else {
        snprintf(line, bytes, "%s+0x%" PRIx64 "\n", file,
                 call->address - call->module.bias);
    }
}

/* Whether the function runs Python code: the calls that follow are lines of Python. */
static bool is_interpreter(const char *line)
{
    static const char start[] = "_PyEval_EvalFrameDefault ";

    return strncmp(line, start, strlen(start)) == 0;
}

static void write_calls(const struct calls *calls, bool has_python, char *text,
                        size_t bytes)
{
    size_t used = 0;

    for (int i = 0; i < calls->count; i++) {
        char line[2 * NAME_BYTES];
        size_t length;

        describe_call(&calls->all[i], line, sizeof(line));
        length = strlen(line);
        if (used + length >= bytes) {
            return;
        }
        memcpy(text + used, line, length + 1);
        used += length;
        if (has_python && is_interpreter(line)) {
            return;
        }
    }
}

void hvd_stack_read(char *text, size_t bytes)
{
    const pid_t thread = getpid();
    const int memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    struct hvd_stack_mappings mappings = {0};
    struct calls calls = {.count = 0};
    size_t used;

    if (memory_fd >= 0 && hvd_stack_mappings_read(&mappings)) {
        walk_thread(&mappings, memory_fd, thread, &calls);
    }
    hvd_stack_python_read(text, bytes);
    used = strlen(text);
    write_calls(&calls, used > 0, text + used, bytes - used);
    hvd_stack_mappings_finish(&mappings);
    if (memory_fd >= 0) {
        close(memory_fd);
    }
}
