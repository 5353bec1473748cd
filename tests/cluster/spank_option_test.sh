#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# srun --hvd as users type it: texts, abbreviation, off, from sbatch and salloc, PMIx.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

install_hvd
start_cluster 2 --sockets 2 --cores 8 --gpus 4 \
    --conf 'LaunchParameters=use_interactive_step' \
    --conf 'InteractiveStepOptions="--interactive --preserve-env /bin/sh"'
enable_plugin
rank='echo $HOROVOD_RANK/$HOROVOD_SIZE/$PMIX_RANK'
two_ranks='0/2/ 1/2/' # the third field is empty without Slurm's PMIx
! has_pmix || two_ranks='0/2/0 1/2/1'

prints 'srun --help names --hvd' '--hvd' as_user srun --help
help()
{
    as_user srun --help | grep -A 30 -e --hvd | tr -s ' \n' ' '
}
prints 'srun --help explains the words of --hvd' \
    ' on, off \(.* verbose \(.* elastic \(.* min=N, max=N \(.* meet=FILE \(' help
prints 'a file name with spaces needs only quotes' '^a b$' \
    as_user srun --hvd='timeline=a b' printenv HOROVOD_TIMELINE
prints '--hvd starts ranks' "^$two_ranks\$" in_line as_user srun --hvd -n2 sh -c "$rank"
prints '--hv is enough' "^$two_ranks\$" in_line as_user srun --hv -n2 sh -c "$rank"
prints '--hvd=off is the same as no option' '^//$' as_user srun --hvd=off sh -c "$rank"
prints 'a --hvd after the program is passed to the program' '^--hvd //$' \
    as_user srun sh -c 'echo $0 $HOROVOD_RANK/$HOROVOD_SIZE/$PMIX_RANK' --hvd
complains 'a word after a space is taken for the program' 'execve\(\): verbose: No such file or directory' \
    as_user srun --hvd verbose true
complains 'a wrong word is rejected; the error lists the valid ones' 'unknown word "bad"; valid words: on, off' \
    as_user srun --hvd=bad true
prints '--mpi=none of the user after --hvd stays' '^0/2/ 1/2/$' in_line as_user srun --hvd -n2 --mpi=none sh -c "$rank"
prints '--mpi=none of the user before --hvd stays, too' '^0/2/ 1/2/$' \
    in_line as_user srun --mpi=none --hvd -n2 sh -c "$rank"
prints 'SLURM_MPI_TYPE of the user stays' '^0/2:2 1/2:2$' \
    in_line as_user SLURM_MPI_TYPE=pmi2 srun --hvd -n2 sh -c 'echo $HOROVOD_RANK/$HOROVOD_SIZE:$PMI_SIZE'
needs_pmix prints '--mpi=pmix of the user works' '^0/2/0 1/2/1$' \
    in_line as_user srun --mpi=pmix --hvd -n2 sh -c "$rank"

complains 'sbatch rejects a wrong word' 'unknown word' as_user sbatch --hvd=bind=no --wrap true
complains 'salloc rejects a wrong word' 'unknown word' as_user salloc --hvd=bind=no true
prints '#SBATCH --hvd reaches srun' "^$two_ranks\$" \
    in_line batch '--hvd -n2' "srun sh -c '$rank'"
prints '#SBATCH --hvd reaches srun with --export=NONE' "^$two_ranks\$" \
    in_line batch '--hvd -n2' "srun --export=NONE /bin/sh -c '$rank'"
prints 'the batch script itself is not a rank' '^//$' batch '--hvd -n2' "$rank"
prints 'srun --hvd=off wins over #SBATCH --hvd' '^//$' \
    batch '--hvd --gres=gpu:4' "srun --hvd=off sh -c '$rank'"
prints 'srun --hvd=off starts the tasks of a plain srun' '^1$' \
    batch '--hvd --gres=gpu:4 -c4' "srun --hvd=off printenv SLURM_NTASKS"
prints 'srun --hvd=KEY replaces that of #SBATCH' "^$two_ranks\$" \
    in_line batch '--hvd=tasks=keep -n2' "srun --hvd=bind=none sh -c '$rank'"
prints 'salloc --hvd reaches srun' "^$two_ranks\$" \
    in_line as_user salloc --quiet --hvd -n2 srun sh -c "$rank"

interactive()
{
    as_user sh -c 'echo "echo shell $HOROVOD_RANK; srun sh -c \"echo rank \\\$HOROVOD_RANK\"" |
        salloc --quiet --hvd -N2 --gres=gpu:2 --ntasks-per-node=2'
}
prints 'the shell of salloc is not a rank' '^shell$' interactive
prints 'an srun in that shell starts ranks' '^rank 3$' interactive

prints 'the time limit of PMIx is that of the admin' '^60 ring$' \
    as_user srun --hvd sh -c 'echo $SLURM_PMIX_TIMEOUT $SLURM_PMIX_FENCE'
prints 'a time limit of the user takes precedence' '^5$' \
    as_user SLURM_PMIX_TIMEOUT=5 srun --hvd printenv SLURM_PMIX_TIMEOUT
enable_plugin timeout=7 default=on
prints 'plugstack.conf sets the time limit, and --hvd for all' "^$two_ranks 7 7\$" \
    in_line as_user srun -n2 sh -c "$rank; echo \$SLURM_PMIX_TIMEOUT"
prints '--hvd=off wins over default=on' '^//$' as_user srun --hvd=off sh -c "$rank"
enable_plugin mpi=keep
prints 'mpi=keep leaves the choice of PMIx to the admin' '^0/2/ 1/2/$' \
    in_line as_user srun --hvd -n2 sh -c "$rank"
enable_plugin forbid=elastic,report fix=bind=none
complains 'srun rejects a word that plugstack.conf forbids' \
    'this site does not allow report \(forbid= in its plugstack.conf\): leave it out' as_user srun --hvd=report=f true
complains 'sbatch does, too' 'does not allow elastic' as_user sbatch --hvd=elastic --wrap true
complains 'srun rejects another value of a word that plugstack.conf fixes' \
    'has set bind=none for all users \(fix= in its plugstack.conf\): leave out bind' as_user srun --hvd=bind=cores true
prints 'a fixed word holds without being typed' 'bind=none' as_user srun --hvd=verbose -n1 true
complains 'a node rejects a forbidden word that its user has hidden from srun' 'does not allow elastic' \
    as_user _SLURM_SPANK_OPTION_hvd_hvd=elastic srun -n1 true
enable_plugin nonsense
prints 'a wrong word in plugstack.conf does not stop a step' "^$two_ranks\$" \
    in_line as_user srun --hvd -n2 sh -c "$rank"

enable_plugin
killed()
{
    as_user srun --hvd -n2 sh -c 'test $HOROVOD_RANK = 0 || exit 3; sleep infinity'
}
complains 'a rank that fails ends the others' 'task 1: Exited with exit code 3' killed
tap_done
