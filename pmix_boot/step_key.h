/* SPDX-License-Identifier: Apache-2.0 */
/* What makes the secret of a job a secret. Under Slurm rank 0 publishes it through PMIx, where whoever
 * passes for a rank may read it: libpmix believes the user id that a client claims, and the name of a
 * step can be guessed. srun's side of the plugin gives the ranks of a step a key in their environment,
 * which only their user can read. Without PMIx the key of the rendezvous service is that key. Of a job that no
 * launcher of hvd starts, such as one of torchrun, the user may give the key. */
#ifndef HVD_STEP_KEY_H
#define HVD_STEP_KEY_H

#include "gpu_binding/base/error.h"
#include "pmix_boot/wire/handshake.h"

/* Replaces what was published by what also depends on the key in `environment`. Without a key, or with
 * another server than Slurm's, whose ranks may come from several steps, nothing changes. Ranks that do
 * not have the same key do not let each other in. */
void hvd_step_key_mix(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                      const char *const *environment);

/* The same with HVD_SECRET, which is of the user. HVD_ERR_ARG if it is too short to be a secret. */
int hvd_step_key_mix_users(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                           const char *const *environment, struct hvd_error *err);

/* The same with the key of the rendezvous service in `environment`. */
void hvd_step_key_mix_service(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                              const char *const *environment);

#endif
