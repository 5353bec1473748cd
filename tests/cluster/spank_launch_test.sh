#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All ways to give --hvd, on the installed Slurm: with and without words, to srun, in #SBATCH, and to salloc. Each
# passes all of the plugin's callbacks, in srun and on the nodes.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

install_hvd
# The script that admin.md has for accounting.
sed -n '/^## Accounting/,/^## Versions/p' "$tests_dir/../../contrib/docs/admin.md" |
    sed '/^```sh$/,/^```$/!d; /^```/d' >"$work/task_prolog"
chmod 755 "$work/task_prolog"
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --conf "TaskProlog=$work/task_prolog"
enable_plugin
# HVD_LAUNCH is the last variable that the plugin exports in a task.
rank='echo $(hostname):$HOROVOD_RANK/$HOROVOD_SIZE:$HVD_LAUNCH'
one='^n1:0/1:1$' two='^n1:0/2:1 n2:1/2:1$'
many=--hvd=on # with a word, because some releases of Slurm reject --hvd without one, see bare

# bare PROMISE...: runs a promise about --hvd without words, for which Slurm passes on the text "(null)". Slurm
# 25.11.0 to 25.11.4 may reject it.
bare()
{
    case $(as_user srun --version) in
    *' 25.11.'[0-4]*) tap_skip "$2" 'Slurm 25.11 before 25.11.5 may reject --hvd without words; use --hvd=on' ;;
    *) "$@" ;;
    esac
}

bare prints 'srun --hvd' "$one" as_user srun --hvd -n1 sh -c "$rank"
prints 'srun --hvd=on' "$one" as_user srun --hvd=on -n1 sh -c "$rank"
prints 'srun --hvd=WORD on two nodes' "$two" in_line as_user srun "$many" -N2 -n2 sh -c "$rank"
prints 'elastic ranks with --mpi=none' "$two" \
    in_line as_user srun --hvd=elastic --mpi=none -N2 -n2 sh -c "$rank"
bare prints '#SBATCH --hvd' "$one" batch '--hvd -N1' "srun -n1 sh -c '$rank'"
prints '#SBATCH --hvd=on' "$one" batch '--hvd=on -N1' "srun -n1 sh -c '$rank'"
prints '#SBATCH --hvd=WORD on two nodes' "$two" \
    in_line batch "$many -N2 -n2" "srun sh -c '$rank'"
bare prints 'salloc --hvd' "$one" as_user salloc --quiet --hvd -N1 srun -n1 sh -c "$rank"
prints 'salloc --hvd=on' "$one" as_user salloc --quiet --hvd=on -N1 srun -n1 sh -c "$rank"
prints 'salloc --hvd=WORD on two nodes' "$two" \
    in_line as_user salloc --quiet "$many" -N2 -n2 srun sh -c "$rank"
bare prints 'srun --hvd in a job without' "$one" batch -N1 "srun --hvd -n1 sh -c '$rank'"
prints 'srun --hvd=off in a job with it' '^n1:/:$' batch "$many -N1" "srun --hvd=off -n1 sh -c '$rank'"

comment='scontrol show job $SLURM_JOB_ID | sed -n "s/^ *Comment=//p"'
prints 'the TaskProlog of admin.md marks a job whose srun has --hvd, once, beside the comment of its user' \
    '^mine, hvd ?$' batch '-N1 --comment=mine' "srun $many -n1 true; srun $many -n1 true; $comment"
prints 'and a job that has --hvd itself' '^hvd ?$' batch "$many -N1" "srun -n1 true; $comment"
prints 'but not a job without' '^mine ?$' batch '-N1 --comment=mine' "srun -n1 true; $comment"

# Rank 1 fails while the script runs for rank 0. Slurm then ends the step, and the script with it.
ends_quietly()
{
    as_user srun "$many" -N2 -n2 sh -c 'exit $((3 * SLURM_PROCID))' 2>"$work/ended"
    [ $? -eq 3 ] && ! grep -i prolog "$work/ended"
}
succeeds 'it is not a failure if the step ends while it runs' ends_quietly

bare prints 'srun --hvd of two ranks' "$two" in_line as_user srun --hvd -N2 -n2 sh -c "$rank"
tap_done
