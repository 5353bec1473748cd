#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How hvd-info answers bad arguments, and where it takes its answers from in a job.
# usage: info.sh HVD_INFO SOURCE_ROOT
set -u
info=$1
node=$2/tests/gpu_binding/topologies/built-c4140-4xv100.xml
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
out=$work/out
for name in $(env | sed -n 's/^\(SLURM_[A-Z_]*\|SLURMD_[A-Z_]*\|CUDA_VISIBLE_DEVICES\)=.*/\1/p'); do
    unset "$name"
done

# refuses PROMISE SENTENCE ARGUMENT...: that sentence alone, and exit 2.
refuses() {
    promise=$1
    sentence=$2
    shift 2
    "$info" "$@" >"$out" 2>&1
    [ $? -eq 2 ] && [ "$(cat "$out")" = "hvd-info: $sentence" ]
    report $? "$promise"
}

# says PROMISE LINE [VARIABLE=VALUE...] -- ARGUMENT...: LINE is in the output.
says() {
    promise=$1
    line=$2
    shift 2
    env "$@" >"$out" 2>&1 && grep -qxF -e "$line" "$out"
    report $? "$promise"
}

refuses ranks_must_be_a_number "--ranks: expected a number from 1 to 4096, found 'four'" --ranks four
refuses ranks_must_be_positive "--ranks: expected a number from 1 to 4096, found '0'" --ranks 0
refuses ranks_has_a_most "--ranks: expected a number from 1 to 4096, found '5000'" --ranks 5000
refuses bind_words "--bind: expected auto, none, socket or core, found 'numa'" --bind numa
refuses nic_words "--nic: expected auto or off, found 'on'" --nic on
refuses smt_number "--smt: expected a number from 1 to 8192, found '-1'" --smt -1
refuses limit_number "--cpus-per-rank: expected a number from 1 to 8192, found ''" --cpus-per-rank ''
refuses limit_needs_core "--cpus-per-rank goes with --bind core, found --bind socket" \
    --cpus-per-rank 2 --bind socket
refuses unknown_option "unknown option '--rank-count'; see hvd-info --help" --rank-count 4
refuses unknown_letter "unknown option '-n'; see hvd-info --help" -n 4
refuses missing_value "--ranks needs a value; see hvd-info --help" --ranks
refuses stray_word "unexpected 'node.xml'; see hvd-info --help" node.xml
refuses allowed_garbage \
    "--allowed: '0-x' is no list of numbers from 0 to 8191 such as 0-3,8 or 0-18:2" \
    --allowed 0-x
refuses gpu_garbage "--gpus: 'v100' is no gpu: expected numbers such as 0-1,3 or UUIDs such as GPU-8932f937-..." \
    --topology "$node" --gpus v100
refuses gpu_elsewhere "--gpus: no gpu 4, expected 0 to 3" --topology "$node" --gpus 0-4
refuses too_many_gpus "--gpus: more than 64 gpus on one node: not supported" --gpus 0-70
refuses no_file "--topology: expected a file, found ''; see hvd-info --help" --topology ''
refuses unknown_letters "unknown option '-x'; see hvd-info --help" -xyz
refuses flag_with_value "--check takes no value, found '--check=1'" --check=1
refuses check_of_a_file "--check looks at this node as it is: expected no other option" \
    --check --topology "$node"
refuses cpus_elsewhere "none of the cpus 200-203 may be used; this node allows 0-79" \
    --topology "$node" --allowed 200-203
refuses missing_file "cannot read the topology file /nonexistent.xml: No such file or directory; expected XML as written by lstopo of hwloc 2" \
    --topology /nonexistent.xml

says help_goes_to_standard_output "usage: hvd-info [options]" "$info" --help
says version_is_told "$("$info" --version)" "$info" --version
"$info" --topology "$node" >/dev/full 2>"$out"
[ $? -eq 1 ]
report $? output_that_cannot_be_written_is_a_failure

says live_node_has_a_table "local rank gpu pci          node socket cores cpus             mem  nic" \
    "$info" --ranks 2
env SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_LOCALID=1 "$info" --ranks 2 >"$out" 2>&1 && [ ! -s "$out" ]
report $? one_task_of_a_step_shows_the_table_of_its_node
says ranks_of_a_job "ranks: 2 (SLURM_NTASKS_PER_NODE)" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 "$info"
says gpus_that_only_slurm_counts "gpus: 0,1,2,3 (SLURM_JOB_GPUS)" \
    SLURM_JOB_ID=1 SLURM_JOB_GPUS=0,1,2,3 "$info" --ranks 2
says ranks_follow_the_gpus "ranks: 3 (one per gpu)" SLURM_JOB_ID=1 SLURM_JOB_GPUS=0-2 "$info"
says options_win_over_the_job "ranks: 1 (--ranks)" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 "$info" --ranks 1
says limit_of_a_job "cores per rank: at most 1 (SLURM_CPUS_PER_TASK)" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 SLURM_CPUS_PER_TASK=1 "$info"
says shell_elsewhere_is_told_where_to_ask \
    "node: this one, which is not of the job; for one of the job: srun -N1 -n1 hvd-info --ranks 2" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 "$info"
says job_is_no_matter_for_a_file "ranks: 4 (one per gpu)" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 CUDA_VISIBLE_DEVICES=0 "$info" --topology "$node"
tap_done
