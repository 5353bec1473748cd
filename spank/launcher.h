/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes programs that start the ranks of a node themselves, such as torchrun, by
 * their command line. Pure. */
#ifndef HVD_SPANK_LAUNCHER_H
#define HVD_SPANK_LAUNCHER_H

#include <stdbool.h>

/* Returns the program's name for messages if it starts ranks itself: "torchrun",
 * "accelerate launch", "deepspeed", "ft_launcher" or "ray"; otherwise NULL. arguments[0]
 * is the program, with or without its directory. `python -m` with a module of torchrun or
 * accelerate counts as well. */
const char *hvd_spank_launcher_of(int count, char *const *arguments);

/* True if the command line has torchrun's --standalone: each node then runs a job of its
 * own. */
bool hvd_spank_launcher_is_alone(int count, char *const *arguments);

/* Returns the number of ranks per node that torchrun's --nproc-per-node asks for; 0 if
 * the option is absent; -1 if its value is a word, such as gpu. */
int hvd_spank_launcher_ranks(int count, char *const *arguments);

#endif
