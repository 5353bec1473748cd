/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that each rank finds, in the order in which rank 0 receives them. NAN: not
 * found. */
#ifndef HVD_INFO_VALUES_H
#define HVD_INFO_VALUES_H

enum {
    HVD_INFO_ROUNDS = 3, /* of pairs of nodes; see pairs.h */
};

enum hvd_info_value {
    HVD_INFO_CORES, /* cpus of the node */
    HVD_INFO_MEMORY_GIB,
    HVD_INFO_SHM_MIB, /* free in /dev/shm */
    HVD_INFO_MEMLOCK_MIB, /* only on nodes with an RDMA card */
    HVD_INFO_ETHERNET_MBITS, /* of the fastest interface */
    HVD_INFO_RDMA_GBITS, /* of the fastest card */
    HVD_INFO_CPUS_LOST, /* cpus that the plugin has planned and the rank lacks */
    HVD_INFO_INIT_S, /* how long hvd_init took */
    HVD_INFO_CLOCK_PERCENT, /* of the highest frequency, under load */
    HVD_INFO_GFLOPS, /* of one core */
    HVD_INFO_COPY_GBS, /* of one core */
    HVD_INFO_LOCAL_GBS, /* to another rank of the node */
    HVD_INFO_ALLREDUCE_MS, /* of 4 MiB, among all ranks */
    HVD_INFO_GPU_USED_MIB, /* memory of the rank's GPU that is in use */
    HVD_INFO_GPU_COPY_GBS, /* from pinned memory of the host to the GPU */
    HVD_INFO_GPU_PAIR_GBS, /* to the GPU of another rank of the node */
    HVD_INFO_GPU_ALLREDUCE_GBS, /* bus bandwidth of an allreduce among all GPUs */
    HVD_INFO_LINK_GBS, /* to the other node of each round */
    HVD_INFO_LINK_US = HVD_INFO_LINK_GBS + HVD_INFO_ROUNDS, /* a message there */
    HVD_INFO_VALUES = HVD_INFO_LINK_US + HVD_INFO_ROUNDS,
};

#endif
