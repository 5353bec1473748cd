#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# on_device.sh HVD_INFO LIBHVD JOB HVDRUN LAYOUT PROGRAM [ARG...]: runs a test on this machine's own GPU and
# NCCL, which all ranks share. Skips where there is none, with the reason.
info=$1 job=$3
export HVD_LIBRARY="$2"
shift 3
found=$("$info" --check 2>&1)
status=$?
# Of no matter: UCX and others that hvd does without.
unusable=$(echo "$found" | grep '^\(GPU module\|CUDA driver\|GPUs\|NCCL\): unusable')
if [ $status -ne 0 ] || [ -n "$unusable" ]; then
    echo "1..0 # SKIP no usable GPU: $(echo "$unusable" | head -n 1)"
    exit 0
fi
echo "$found" | sed 's/^/# /'
hvdrun=$1 layout=$2
shift 2
# NCCL takes several ranks on one GPU only where each says that it is on a host of its own.
# shellcheck disable=SC2016
exec "$job" "$hvdrun" "$layout" sh -c 'NCCL_HOSTID="test.$HOROVOD_RANK" exec "$@"' rank "$@"
