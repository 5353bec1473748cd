#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_word_test.sh HVDRUN PROGRAM: a word that HVD_GPU_ALLREDUCE does not have ends a job as it begins.
text=$(HVD_GPU_ALLREDUCE=ring "$1" -np 2 "$2" 2>&1)
code=$?
if [ "$code" -ne 0 ] && [ "$code" -ne 124 ] &&
    echo "$text" | grep -q 'HVD_GPU_ALLREDUCE=ring is none of auto, hierarchical, flat'; then
    echo "ok - the error names the variable, what it may be and what was found"
else
    echo "not ok - the error names the variable, what it may be and what was found"
    echo "$text" | sed 's/^/# /'
fi
echo 1..1
