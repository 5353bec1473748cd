#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Errors of hvd-info for bad arguments, and the variables that it reads in a job.
# usage: info.sh HVD_INFO SOURCE_ROOT
set -u
program=$(realpath "$1")
node=$2/tests/gpu_binding/topologies/built-c4140-4xv100.xml
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
out=$work/out
# Makes an installation. hvd-info finds the package horovod and pages by the folder of its own program.
mkdir -p "$work/prefix/bin" "$work/prefix/lib/hvd" "$work/prefix/share"
cp "$program" "$work/prefix/bin/hvd-info"
cp -r "$2/contrib/python" "$work/prefix/lib/hvd/python"
ln -s "$(dirname "$program")/../page" "$work/prefix/share/hvd"
info=$work/prefix/bin/hvd-info
for name in $(env | sed -n 's/^\(SLURM_[A-Z_]*\|SLURMD_[A-Z_]*\|CUDA_VISIBLE_DEVICES\)=.*/\1/p'); do
    unset "$name"
done

# refuses PROMISE SENTENCE ARGUMENT...: hvd-info prints only SENTENCE, and exits with 2.
refuses() {
    promise=$1
    sentence=$2
    shift 2
    "$info" "$@" >"$out" 2>&1
    [ $? -eq 2 ] && [ "$(cat "$out")" = "hvd-info: $sentence" ]
    report $? "$promise"
}

# says PROMISE LINE [VARIABLE=VALUE...] COMMAND...: LINE is in the output of COMMAND.
says() {
    promise=$1
    line=$2
    shift 2
    env "$@" >"$out" 2>&1 && grep -qxF -e "$line" "$out"
    report $? "$promise"
}

refuses ranks_must_be_a_number "--ranks: expected a number from 1 to 4096, found 'four'" --ranks four
refuses ranks_must_be_positive "--ranks: expected a number from 1 to 4096, found '0'" --ranks 0
refuses ranks_must_not_be_too_many "--ranks: expected a number from 1 to 4096, found '5000'" --ranks 5000
refuses bind_must_be_a_mode "--bind: expected auto, none, socket or cores, found 'numa'" --bind numa
refuses nic_must_be_auto_or_off "--nic: expected auto or off, found 'on'" --nic on
refuses smt_must_be_a_number "--smt: expected a number from 1 to 8192, found '-1'" --smt -1
refuses cpus_per_rank_must_be_a_number "--cpus-per-rank: expected a number from 1 to 8192, found ''" --cpus-per-rank ''
refuses cpus_per_rank_needs_mode_cores "--cpus-per-rank needs --bind cores, found --bind socket" \
    --cpus-per-rank 2 --bind socket
refuses unknown_option_is_named "unknown option '--rank-count'; see hvd-info --help" --rank-count 4
refuses unknown_letter_is_named "unknown option '-n'; see hvd-info --help" -n 4
refuses missing_value_is_an_error "--ranks needs a value; see hvd-info --help" --ranks
refuses stray_word_is_an_error "unexpected 'node.xml'; see hvd-info --help" node.xml
refuses allowed_must_be_a_list_of_cpus \
    "--allowed: '0-x' is not a list of numbers from 0 to 8191, such as 0-3,8 or 0-18:2" \
    --allowed 0-x
refuses gpus_must_be_numbers_or_uuids "--gpus: 'v100' is not a gpu: expected numbers such as 0-1,3 or UUIDs such as GPU-8932f937-..." \
    --topology "$node" --gpus v100
refuses gpu_that_the_node_lacks_is_an_error "--gpus: no gpu 4, expected 0 to 3" --topology "$node" --gpus 0-4
refuses too_many_gpus_are_an_error "--gpus: more than 64 gpus on one node are not supported" --gpus 0-70
refuses empty_file_name_is_an_error "--topology: expected a file, found ''; see hvd-info --help" --topology ''
refuses first_unknown_letter_is_named "unknown option '-x'; see hvd-info --help" -xyz
refuses flag_with_a_value_is_an_error "--check takes no value, found '--check=1'" --check=1
refuses check_takes_no_other_option "--check looks at nodes as they are: expected no other option" \
    --check --topology "$node"
refuses python_takes_no_other_option "--python: expected no other option" --ranks 2 --python
refuses python_must_not_be_empty "--python: expected a program, found ''; see hvd-info --help" --python=
refuses python_is_given_after_an_equals_sign "unexpected 'python3'; see hvd-info --help" --python python3
refuses actions_exclude_each_other "expected one of --check and --python, found both" --check --python
refuses timeline_needs_a_file "--timeline: expected a file, found ''; see hvd-info --help" --timeline ''
refuses venv_needs_a_folder "--into-venv needs a value; see hvd-info --help" --into-venv
refuses cpus_that_the_node_lacks_are_an_error "none of the cpus 200-203 may be used; this node allows 0-79" \
    --topology "$node" --allowed 200-203
refuses missing_file_is_an_error "cannot read the topology file /nonexistent.xml: No such file or directory; expected XML as written by lstopo of hwloc 2" \
    --topology /nonexistent.xml

# complains PROMISE SENTENCE: hvd-info --timeline of the file "timeline" prints only SENTENCE, and exits with 1.
complains() {
    "$info" --timeline "$work/timeline" >"$out" 2>&1
    [ $? -eq 1 ] && [ "$(cat "$out")" = "hvd-info: --timeline: $2" ]
    report $? "$1"
}

complains a_missing_timeline_is_named "cannot read $work/timeline: No such file or directory"
printf 'hello\n' >"$work/timeline"
complains a_text_is_no_timeline "$work/timeline is no timeline: expected JSON, found Expecting value in line 1"
printf '{"a": 1}\n' >"$work/timeline"
complains other_json_is_no_timeline "$work/timeline is JSON, but no timeline: expected a list of events"
printf '[\n' >"$work/timeline"
complains an_empty_timeline_has_nothing_to_show \
    "$work/timeline has no collective that ranks have negotiated: expected a timeline of hvd or Horovod"
cat >"$work/timeline" <<'END'
[
{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "gradient"}},
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 100, "pid": 1},
{"ph": "X", "name": "0", "ts": 100, "pid": 1, "dur": 0},
{"ph": "E", "ts": 110, "pid": 1},
{"ph": "B", "name": "ALLREDUCE", "ts": 110, "pid": 1},
{"ph": "E", "ts": 200, "pid": 1, "args": {"dtype": "float32", "shape": "[4]"}},
END
complains a_timeline_of_rank_0_alone_is_refused \
    "$work/timeline does not tell when the ranks other than 0 came: record it with HVD_TIMELINE_RANKS=all"
sed -i 's/^{"ph": "X".*/&\n{"ph": "X", "name": "1", "ts": 150, "pid": 1, "dur": 0},/' "$work/timeline"
says a_timeline_without_its_end_is_read \
    "$work/timeline.html: Rank 1 on a node was the last in 1 of 1 tensors, by 50 us; the job lost 50 % of its time waiting for it." \
    "$info" --timeline "$work/timeline"
printf '{"ph": "X", "name": "1", "ts' >>"$work/timeline"
says a_timeline_that_ends_within_an_event_is_read \
    "$work/timeline.html: Rank 1 on a node was the last in 1 of 1 tensors, by 50 us; the job lost 50 % of its time waiting for it." \
    "$info" --timeline "$work/timeline"

says help_goes_to_standard_output "usage: hvd-info [options]" "$info" --help
says version_is_printed "$("$info" --version)" "$info" --version
"$info" --topology "$node" >/dev/full 2>"$out"
[ $? -eq 1 ]
report $? output_that_cannot_be_written_is_a_failure

says live_node_has_a_table "local rank gpu pci          node socket cores cpus             mem  nic" \
    "$info" --ranks 2
env SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_LOCALID=1 "$info" --ranks 2 >"$out" 2>&1 && [ ! -s "$out" ]
report $? only_the_first_task_of_a_node_prints_its_table
says ranks_come_from_the_job "ranks: 2 (SLURM_NTASKS_PER_NODE)" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 "$info"
says gpus_that_only_slurm_counts_are_listed "gpus: 0,1,2,3 (SLURM_JOB_GPUS)" \
    SLURM_JOB_ID=1 SLURM_JOB_GPUS=0,1,2,3 "$info" --ranks 2
says one_rank_per_gpu_without_a_number_of_tasks "ranks: 3 (one per gpu)" SLURM_JOB_ID=1 SLURM_JOB_GPUS=0-2 "$info"
says options_have_precedence_over_the_job "ranks: 1 (--ranks)" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 "$info" --ranks 1
says limit_of_cores_comes_from_the_job "cores per rank: at most 1 (SLURM_CPUS_PER_TASK)" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 SLURM_CPUS_PER_TASK=1 "$info"
says shell_outside_the_job_is_told_the_command \
    "node: this one, which is not part of the job; to see one of the job: srun -N1 -n1 hvd-info --ranks 2" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 "$info"
says job_is_ignored_with_a_topology_file "ranks: 4 (one per gpu)" \
    SLURM_JOB_ID=1 SLURM_NTASKS_PER_NODE=2 CUDA_VISIBLE_DEVICES=0 "$info" --topology "$node"
tap_done
