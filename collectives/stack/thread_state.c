/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/stack/thread_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    COPY_BYTES = 128 * 1024,
    LIMIT_MS = 300,
};

/* --- threads that sleep --- */

void hvd_stack_look_at(pid_t thread, struct hvd_stack_look *look)
{
    char path[64];
    ssize_t got = -1;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, look->text, sizeof(look->text) - 1);
        close(fd);
    }
    look->text[got > 0 ? got : 0] = '\0';
    look->state = got <= 0 ? HVD_STACK_UNKNOWN
                  : strncmp(look->text, "running", strlen("running")) == 0
                      ? HVD_STACK_RUNS
                      : HVD_STACK_SLEEPS;
}

#if defined(__x86_64__)

/* The last two numbers of the line are the stack pointer and the program counter. */
bool hvd_stack_look_registers(const struct hvd_stack_look *look,
                              struct hvd_stack_registers *registers)
{
    uint64_t rsp, pc;

    *registers = (struct hvd_stack_registers){0};
    if (look->state != HVD_STACK_SLEEPS ||
        (sscanf(look->text, "%*d %*x %*x %*x %*x %*x %*x %" SCNx64 " %" SCNx64, &rsp,
                &pc) != 2 &&
         sscanf(look->text, "-1 %" SCNx64 " %" SCNx64, &rsp, &pc) != 2)) {
        return false;
    }
    hvd_stack_registers_set(registers, HVD_STACK_RSP, rsp);
    hvd_stack_registers_set(registers, HVD_STACK_PC, pc);
    return true;
}

/* --- threads that run --- */

enum sample_state {
    SAMPLE_NONE, /* the handler does nothing */
    SAMPLE_WANTED,
    SAMPLE_TAKING, /* the handler writes the sample */
    SAMPLE_TAKEN,
};

/* The sample that the handler writes. Global, because a handler has no argument. */
static struct {
    _Atomic int state;
    int memory_fd; /* /proc/self/mem */
    struct hvd_stack_registers registers;
    uint64_t address;
    size_t bytes;
    uint8_t copy[COPY_BYTES];
} sample;

static const int indices[HVD_STACK_REGISTERS] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

/* Runs in the interrupted thread, so it calls only what is safe in a signal handler.
 * Copies the stack by the kernel, which stops at its end. */
static void take_sample(int number, siginfo_t *info, void *context)
{
    const ucontext_t *interrupted = context;
    const int error = errno;
    int wanted = SAMPLE_WANTED;
    ssize_t got;

    (void)number;
    (void)info;
    if (!atomic_compare_exchange_strong(&sample.state, &wanted, SAMPLE_TAKING)) {
        return;
    }
    sample.registers.known = 0;
    for (unsigned i = 0; i < HVD_STACK_REGISTERS; i++) {
        hvd_stack_registers_set(&sample.registers, i,
                                (uint64_t)interrupted->uc_mcontext.gregs[indices[i]]);
    }
    sample.registers.is_after_call = false;
    sample.address = sample.registers.value[HVD_STACK_RSP];
    got =
        pread(sample.memory_fd, sample.copy, sizeof(sample.copy), (off_t)sample.address);
    sample.bytes = got > 0 ? (size_t)got : 0;
    atomic_store(&sample.state, SAMPLE_TAKEN);
    errno = error;
}

/* Installs the handler, unless the program has one or ignores the signal. */
static bool install_handler(int number, bool *is_installed)
{
    struct sigaction action = {.sa_sigaction = take_sample,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    struct sigaction before;

    *is_installed = false;
    if (sigaction(number, NULL, &before) != 0) {
        return false;
    }
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == take_sample) {
        return true; /* left over: the thread has not taken an earlier signal */
    }
    if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) {
        return false;
    }
    sigfillset(&action.sa_mask);
    *is_installed = sigaction(number, &action, NULL) == 0;
    return *is_installed;
}

/* Waits for the sample. Returns false at the time limit, from when on the handler does
 * nothing. */
static bool await_sample(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int wanted = SAMPLE_WANTED;

    for (int i = 0; i < LIMIT_MS && atomic_load(&sample.state) != SAMPLE_TAKEN; i++) {
        nanosleep(&pause, NULL);
    }
    if (atomic_compare_exchange_strong(&sample.state, &wanted, SAMPLE_NONE)) {
        return false;
    }
    while (atomic_load(&sample.state) != SAMPLE_TAKEN) {
        nanosleep(&pause, NULL);
    }
    return true;
}

bool hvd_stack_interrupt(pid_t thread, struct hvd_stack_memory *memory,
                         struct hvd_stack_registers *registers)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    const int number = SIGRTMAX - 4;
    bool is_installed, is_sent;

    sample.memory_fd = memory->fd;
    if (!install_handler(number, &is_installed)) {
        return false;
    }
    atomic_store(&sample.state, SAMPLE_WANTED);
    is_sent = syscall(SYS_tgkill, getpid(), thread, number) == 0;
    if (is_sent && !await_sample()) {
        return false; /* the handler stays: the signal may come later, and would kill */
    }
    if (is_installed) {
        sigaction(number, &none, NULL);
    }
    atomic_store(&sample.state, SAMPLE_NONE);
    if (!is_sent) {
        return false;
    }
    memory->copy_address = sample.address;
    memory->copy_bytes = sample.bytes;
    memory->copy = sample.copy;
    *registers = sample.registers;
    return true;
}

#else

bool hvd_stack_look_registers(const struct hvd_stack_look *look,
                              struct hvd_stack_registers *registers)
{
    (void)look;
    (void)registers;
    return false;
}

bool hvd_stack_interrupt(pid_t thread, struct hvd_stack_memory *memory,
                         struct hvd_stack_registers *registers)
{
    (void)thread;
    (void)memory;
    (void)registers;
    return false;
}

#endif
