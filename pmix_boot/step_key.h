/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the secret of a job from other users. Under Slurm, rank 0 publishes it through
 * PMIx, and any process that passes for a rank can read it: libpmix trusts the user id
 * that a client claims, and the name of a step can be guessed. The plugin in srun
 * therefore gives the ranks of a step a key in their environment, which only their user
 * can read. Without PMIx, the key of the rendezvous service has this role. For a job that
 * no launcher of hvd starts, such as one of torchrun, the user can give the key. */
#ifndef HVD_STEP_KEY_H
#define HVD_STEP_KEY_H

#include <stdint.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/sock/handshake.h"

/* Replaces the published secret by one that also depends on the key in `environment`.
 * Changes nothing without a key, or if the PMIx server is not Slurm's: such a server may
 * connect ranks of several steps, whose keys differ. Ranks with different keys reject
 * each other. */
void hvd_step_key_mix(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                      const char *const *environment);

/* Mixes in HVD_SECRET, which the user sets, in the same way. HVD_ERR_ARG if it is too
 * short. */
int hvd_step_key_mix_users(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                           const char *const *environment, struct hvd_error *err);

/* Mixes in the key of the rendezvous service in `environment` in the same way. */
void hvd_step_key_mix_service(unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES],
                              const char *const *environment);

/* Makes a number that tells the jobs of different secrets apart, and nothing about the
 * secret. */
uint64_t hvd_step_key_number(const unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES]);

#endif
