/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP ports that the cluster's firewall leaves open on the machine of srun. */
#ifndef HVD_SPANK_SRUN_PORTS_H
#define HVD_SPANK_SRUN_PORTS_H

#define HVD_SPANK_SRUN_PORTS_BYTES 64

/* "FIRST-LAST", as in HVD_PORT_RANGE, which has precedence, or SrunPortRange of slurm.conf; empty: any. */
void hvd_spank_srun_ports(char text[HVD_SPANK_SRUN_PORTS_BYTES]);

#endif
