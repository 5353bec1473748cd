#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_direct_test.sh HVDRUN PROGRAM: HVD_GPU_DIRECT=on with a UCX without CUDA is an error that says so.
here=$(dirname "$0")
text=$(FAKE_UCX_CUDA=0 HVD_GPU_DIRECT=on "$here/../job.sh" "$1" 2,2 "$2" 2>&1)
code=$?
case $text in
*"1..0 # SKIP"*)
    echo "$text"
    exit 0
    ;;
esac
wanted='HVD_GPU_DIRECT=on on rank 0, but GPU memory cannot go between nodes: UCX 1.* of rank 0 on .* is without CUDA'
if [ "$code" -ne 0 ] && echo "$text" | grep -q "$wanted"; then
    echo "ok 1 - the job ends and says why"
else
    echo "not ok 1 - the job ends and says why"
    echo "$text" | sed 's/^/# /'
    code=99
fi
echo "1..1"
[ "$code" -ne 99 ]
