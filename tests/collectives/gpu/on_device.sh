#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# on_device.sh HVD_INFO LIBHVD JOB HVDRUN LAYOUT PROGRAM [ARG...]: runs a test on this
# machine's own GPU and NCCL, which all ranks share. If there is none, skips the test and
# prints the reason.
info=$1 job=$3
export HVD_LIBRARY="$2"
shift 3
found=$("$info" --check 2>&1)
status=$?
# Other unusable libraries, such as UCX, do not matter.
unusable=$(echo "$found" | grep '^\(GPU module\|CUDA driver\|GPUs\|NCCL\): unusable')
if [ $status -ne 0 ] || [ -n "$unusable" ]; then
    echo "1..0 # SKIP no usable GPU: $(echo "$unusable" | head -n 1)"
    exit 0
fi
echo "$found" | sed 's/^/# /'
hvdrun=$1 layout=$2
shift 2
# NCCL accepts several ranks on one GPU only if each claims to be on another host.
# shellcheck disable=SC2016
exec "$job" "$hvdrun" "$layout" sh -c 'NCCL_HOSTID="test.$HOROVOD_RANK" exec "$@"' rank "$@"
