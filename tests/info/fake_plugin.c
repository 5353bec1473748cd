/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of Slurm as far as hvd-info --slurm reads one: FAKE_VERSION is the number of
 * the Slurm for which it was built. */
extern const char plugin_name[], plugin_type[];
extern const unsigned int plugin_version;

const char plugin_name[] = "fake";
const char plugin_type[] = "spank";
const unsigned int plugin_version = FAKE_VERSION;
