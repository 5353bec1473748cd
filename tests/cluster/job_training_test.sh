#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example contrib/examples/digits trains on two nodes.
. "$(dirname "$0")/harness.sh"

same_parameters()
{
    # shellcheck disable=SC2016 # expands inside
    as_user python3 -c '
import torch
a, *others = [torch.load(f"dump/rank{r}.pt") for r in range(4)]
assert all(torch.equal(a[k], o[k]) for o in others for k in a)'
}

best_accuracy()
{
    awk '/^epoch/ { if ($6 > best) best = $6 } END { exit !(best >= 0.95) }' "$work/said"
}

/usr/bin/python3 -c 'import torch' 2>/dev/null || tap_skip_all 'needs python3-torch'
install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
cp "$tests_dir/../../contrib/examples/digits/train.py" "$home/"
mkdir -m 777 "$home/dump"
prints 'four ranks on two nodes train' '4 ranks on 2 nodes' \
    as_user srun --hvd -N 2 --ntasks-per-node=2 python3 train.py --dump-params dump
cp "$work/output" "$work/said"
succeeds 'the ranks recognise 95 % of the held-out digits' best_accuracy
succeeds 'all ranks end with bitwise equal parameters' same_parameters
tap_done
