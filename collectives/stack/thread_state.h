/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the registers of a thread of this process.
 *
 * If the thread sleeps in the kernel, /proc/self/task/TID/syscall shows its stack pointer
 * and program counter. A process may always read that of its own threads, so
 * neither ptrace nor a signal is needed, and no system call of the thread returns early.
 * A thread that runs gets a signal, whose handler copies registers and stack. The handler
 * exists for that instant only. If the program uses the signal itself, such a thread has
 * no registers to show.
 *
 * On other CPUs than x86-64, no thread has registers to show. */
#ifndef HVD_STACK_THREAD_STATE_H
#define HVD_STACK_THREAD_STATE_H

#include <sys/types.h>

#include "collectives/stack/memory.h"
#include "collectives/stack/registers.h"

enum hvd_stack_state {
    HVD_STACK_SLEEPS, /* its stack does not change before it goes on */
    HVD_STACK_RUNS,
    HVD_STACK_UNKNOWN, /* /proc does not tell */
};

/* A line about a thread. If the lines before and after a walk are equal, the thread has
 * slept all the time, and its stack did not change. */
struct hvd_stack_look {
    enum hvd_stack_state state;
    char text[256];
};

void hvd_stack_look_at(pid_t thread, struct hvd_stack_look *look);

/* Takes the registers from a look at a thread that sleeps. */
bool hvd_stack_look_registers(const struct hvd_stack_look *look,
                              struct hvd_stack_registers *registers);

/* Interrupts a thread that runs, and copies its registers and the newest part of its
 * stack, which it adds to `memory`. The copy is valid until the next call. Returns false
 * if the program uses the signal, or the thread does not take it in time.
 * Threads: one at a time. */
bool hvd_stack_interrupt(pid_t thread, struct hvd_stack_memory *memory,
                         struct hvd_stack_registers *registers);

#endif
