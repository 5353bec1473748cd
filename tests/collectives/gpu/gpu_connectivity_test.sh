#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_connectivity_test.sh HVDRUN PROGRAM: what ranks log about the connections of their GPUs, each on its own.
hvdrun=$1 program=$2
here=$(dirname "$0")
export FAKE_GPU_SHARED=1 FAKE_GPU_COUNT=4 HOROVOD_LOG_LEVEL=info
# shellcheck source=tests/report.sh
. "$here/../../report.sh"
out=$work/out

# run LAYOUT [VARIABLE=VALUE...]: the job; what it says is in $out.
run()
{
    layout=$1
    shift
    # shellcheck disable=SC2016
    env "$@" "$here/../job.sh" "$hvdrun" "$layout" sh -c \
        'HVD_TEST_GPU=$(($HOROVOD_RANK % 4)) exec "$@"' rank "$program" steps >"$out" 2>&1
}

says()
{
    grep -q -- "$1" "$out"
    report $? "$2"
}

silent()
{
    ! grep -q -- "$1" "$out"
    report $? "$2"
}

run 4 FAKE_GPU_P2P=0-1:nvlink,0-2:pcie,1-3:nvlink
says 'I .*rank 0\] GPUs of ranks 0 and 1 on .*: NVLink$' 'NVLink is told'
says 'I .*rank 0\] GPUs of ranks 0 and 2 on .*: P2P over PCIe$' 'so is PCIe'
says 'I .*rank 0\] GPUs of ranks 0 and 3 on .*: shared memory$' 'and where there is neither'
silent 'GPUs of ranks 1 and' 'by the first rank of the node only'
silent ' W ' 'nothing could be faster'
run 4 FAKE_GPU_P2P=0-1:nvlink,1-3:nvlink NCCL_P2P_DISABLE=1
says 'GPUs of ranks 0 and 1 on .*: shared memory$' 'NCCL_P2P_DISABLE=1 is minded'
says ' W .*2 pairs of GPUs on .* could reach each other by P2P, but NCCL_P2P_DISABLE=1' 'and warned of'
run 4 FAKE_GPU_P2P=0-1:nvlink NCCL_P2P_DISABLE=1 HOROVOD_LOG_LEVEL=warning
says '1 pair of GPUs on .* could reach' 'also where nobody wants to know more'
silent 'GPUs of ranks' 'which then is all'
run 2 FAKE_GPU_SHARED=1 NCCL_HOSTID=x
says 'GPUs of ranks 0 and 1 on .*: the network, unless both have one NCCL_HOSTID' 'NCCL_HOSTID is minded'
run 2 FAKE_GPU_MIG=1
says ' W .*through host memory, .*: ranks 0 and 1 on .* share a GPU, or its MIG slices' 'slices of a GPU go through host memory'
run 2,1 FAKE_GPU_P2P=0-1:pcie
if grep -q '^1\.\.0 # SKIP' "$out"; then
    report 0 "between nodes$(sed -n 's/^1\.\.0\( # SKIP.*\)/\1/p' "$out")"
else
    says 'rank 0\] GPUs of ranks 0 and 1 on .*: P2P over PCIe$' 'within a node'
    says 'rank 0\] GPUs of this node and rank 2 on .*: \(TCP\|InfiniBand\)' 'and to another'
    run 2,2 FAKE_GPU_P2P=0-1:pcie,2-3:pcie NCCL_P2P_DISABLE=1
    says ' W .*rank 0\] 1 pair of GPUs' 'where all nodes could be faster'
    silent ' W .*rank 2\]' 'the first one says it'
    run 2,1 FAKE_GPU_P2P=0-1:pcie
    silent HVD_NET_SECURITY 'protection is no subject where nobody asks for it'
    says 'rank 2\] GPUs of this node and ranks 0-1 on .*: \(TCP\|InfiniBand\)' 'which says so, too'
    run 2,1 FAKE_GPU_P2P=0-1:pcie HVD_NET_SECURITY=encrypt
    says ' W .*rank 0\] HVD_NET_SECURITY=encrypt does not protect tensors on GPUs' 'who asks for encryption hears that NCCL has none'
fi
echo "1..$count"
exit $failed
