/* SPDX-License-Identifier: Apache-2.0 */
/* Finds names of functions in the symbol table of an ELF file of 64 bits. */
#ifndef HVD_STACK_SYMBOLS_H
#define HVD_STACK_SYMBOLS_H

#include "collectives/stack/memory.h"

/* file: its offsets are the addresses that `file` reads. address: as the file counts it.
 * Writes the name of the function that the address lies in. Returns false if there is
 * none. The file may be malformed: reads are checked and work is bounded by its size. */
bool hvd_stack_symbols_find(const struct hvd_stack_memory *file, uint64_t address,
                            char *name, size_t bytes);

#endif
