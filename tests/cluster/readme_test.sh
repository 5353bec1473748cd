#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of README and of the pages below, unchanged and in their order, as a user in a virtual
# environment would type them: every indented line, and the first column of the table "you type". A command is
# either run, or listed in why_not_run with the reason; otherwise the test fails. Commands that measure for a while
# are run by readme_bench_test.sh, which reads this file.
# shellcheck disable=SC2016 # the lines expand inside
. "$(dirname "$0")/harness.sh"

readme=$tests_dir/../../README.md
docs=$tests_dir/../../contrib/docs
pages=("$readme" "$docs/commands.md" "$docs/lab.md" "$docs/bench.md" "$docs/scale.md" "$docs/CONTRIBUTING.md")
measures=${measures-no}
modules=/usr/share/modules/init/bash # Debian's environment-modules

# Prints whether a line measures, which takes a while.
measuring()
{
    case $1 in
    *hvd-bench*' --explain '* | *hvd-bench*' --simulate '*) echo no ;;
    *hvd-bench*) echo yes ;;
    *) echo no ;;
    esac
}

# Prints the reason why a line is not run here; fails for a line that has to be run.
why_not_run()
{
    if [ "$(measuring "$1")" != "$measures" ] && [[ $1 != '. '* ]]; then
        echo "run by readme_$([ "$measures" = yes ] || echo bench_)test.sh"
        return
    fi
    case $1 in
    'apt-get install '*) echo 'installs packages; contrib/packages.sh has the list' ;;
    'pip install '*) echo 'installs packages, from a network that the cluster does not have' ;;
    'python3 -m venv '*) echo 'this test has made it' ;;
    'python /opt/hvd/share/hvd/examples/digits/'* | 'hvdrun '*' /opt/hvd/share/hvd/examples/digits/'*)
        echo 'tests/python/training_check.py runs the script with one rank and with several' ;;
    'meson setup build --prefix='* | 'meson install -C build') echo 'tests/run.sh builds and installs' ;;
    'meson setup build -Dtests=true && ninja '*) echo 'tests/run.sh builds and tests' ;;
    tests/run.sh*) echo 'this test runs inside of it, or takes as long' ;;
    contrib/bench/large.sh\ * | contrib/bench/soak.sh\ *) echo 'needs gigabytes of memory or hours, and a checkout' ;;
    'module load '*) [ ! -e "$modules" ] && echo 'no Environment Modules here' ;;
    include\ *) echo 'a line of plugstack.conf; this cluster has it' ;;
    'hvd-info --job JOB'*) echo 'asks a job that runs; job_test.sh does' ;;
    'hvd-info --nccl DIR') echo 'needs files of NCCL; tests/info has some' ;;
    'hvd-info --timeline FILE') echo 'needs a timeline of all ranks; tests/collectives/trace makes one' ;;
    'hvdrun python train.py') echo 'takes its ranks from a batch job of LSF, PBS or Grid Engine; tests/pmix_boot plays one' ;;
    'hvd-info --into-venv DIR') echo 'changes an environment of yours; tests/info has one for it' ;;
    *' --plot '*) ! /usr/bin/python3 -c 'import matplotlib' 2>/dev/null && echo 'no matplotlib here' ;;
    *' --lab '* | *' --tune '*) echo 'takes minutes on two cores; tests/bench has shorter ones' ;;
    *)
        [[ $1 =~ ^[A-Z_]+=[^\ ]+$ ]] && echo 'a variable, not a command'
        ;;
    esac
}

# --- the pages as a list ---

# Splits the pages into blocks of indented lines, one block a file. Each command in the table's first column is a
# block, too.
split_pages()
{
    mkdir "$work/blocks"
    awk -v dir="$work/blocks" '
        function open_block() { if (file == "") { count++; file = sprintf("%s/%03d", dir, count) } }
        function put(text) { open_block(); print text > file }
        function end_block() { if (file != "") close(file); file = "" }
        FNR == 1 { end_block(); in_table = 0 }
        /^    / { put(substr($0, 5)); next }
        file != "" && /^$/ { end_block(); next }
        { end_block() }
        /^\| you type/ { in_table = 1; next }
        !/^\|/ { in_table = 0; next }
        in_table && !/^\|-/ {
            split($0, columns, " \\| ")
            n = split(columns[1], parts, "`")
            for (i = 2; i <= n; i += 2) { put(parts[i]); end_block() }
        }' "${pages[@]}"
}

# --- the user's environment ---

# Mounts a copy of the installation at /opt/hvd, as the pages call it, on every node.
bring_hvd()
{
    local node
    cp -a "$prefix" "$work/hvd"
    for node in '' n1 n2; do
        # shellcheck disable=SC2086
        as_root ${node:+--node "$node"} sh -c \
            "mount -t tmpfs none /opt && mkdir /opt/hvd && mount --bind '$work/hvd' /opt/hvd" || return
    done
    grep -h '^    include ' "$readme" | sed 's/^ *//' >"$work/cluster/etc/plugstack.conf.d/readme.conf"
}

# Writes a script for one process, with README's lines for hvd added.
write_script()
{
    {
        echo 'import torch'
        echo 'model = torch.nn.Linear(4, 1)'
        echo 'optimizer = torch.optim.SGD(model.parameters(), lr=0.01)'
        cat "$work"/blocks/* | awk '/^import horovod/ { found = 1 } found { print } /broadcast_parameters/ { exit }'
        echo 'for step in range(3):'
        echo '    optimizer.zero_grad()'
        echo '    model(torch.ones(2, 4)).sum().backward()'
        echo '    optimizer.step()'
        echo 'print("trained", hvd.rank(), "of", hvd.size())'
    } >"$home/train.py"
}

# Writes a script with the same output but without PyTorch, which takes seconds to import. When srun and the batch
# script have run the script above once, this one replaces it.
write_plain_script()
{
    printf '%s\n' 'from horovod.common.basics import HorovodBasics' 'hvd = HorovodBasics()' \
        'hvd.init()' 'print("trained", hvd.rank(), "of", hvd.size())' >"$home/plain.py"
    chmod a+r "$home/plain.py"
}

bring_user()
{
    write_script
    write_plain_script
    echo '# hvd tune table' >"$home/tune.table"
    chmod -R a+rX "$home"
    as_user python3 -m venv --system-site-packages --without-pip venv
}

# Lines that the user types once in a shell, before other lines.
prelude=''

# typed LINE...: runs a line after the prelude. Test machines have fewer cores than mpirun has ranks: Open MPI has
# one variable to allow that up to version 4, and another from 5 on.
typed()
{
    as_user PATH="$home/venv/bin:/usr/local/bin:/usr/bin:/bin" VIRTUAL_ENV="$home/venv" \
        MODULEPATH=/opt/hvd/share/modulefiles OMPI_MCA_rmaps_base_oversubscribe=1 \
        PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe bash -c "$prelude$*"
}

# --- running ---

# filled_in LINE: prints the line with the placeholders of the pages filled in.
filled_in()
{
    local line=${1//…/python train.py}
    line=${line//FILE --ranks N/node.xml --ranks 2}
    echo "${line//=FILE/=\$HOME\/file}"
}

# Tells whether Slurm gives all nodes of a step the same number of ranks.
is_even()
{
    typed "${1%% hvd-bench *} hostname" >"$work/hosts" || return
    sort "$work/hosts" | uniq -c
    [ "$(sort "$work/hosts" | uniq -c | awk '{ print $1 }' | sort -u | wc -l)" = 1 ]
}

run_line()
{
    local line reason
    line=$(filled_in "$1")
    case $line in
    'srun --hvd -N'*' hvd-bench '*) succeeds "as many ranks on each node: $1" is_even "$line" ;;
    esac
    if reason=$(why_not_run "$1"); then
        tap_note "not run: $1 ($reason)"
        return
    fi
    case $line in
    'module '*)
        succeeds "$1" typed ". $modules; $line" '
            hvd-info --version && python -c "import horovod" && pkg-config --exists hvd' ;;
    '. '*)
        succeeds "$1" typed "$line"
        prelude+=$line$'\n'
        ;;
    'install -D '*) succeeds "$1" as_root bash -c "cd '$home' && $line" ;;
    horovod.run*)
        succeeds "$1" typed "python -c 'import horovod; train = lambda: 1; assert $line == [1] * 4'" ;;
    *) succeeds "$1" typed "$line" ;;
    esac
}

# Runs the batch script and prints its output. A pipe tells its end: sbatch --wait would poll every few seconds.
run_batch()
{
    awk '!/^#/ && !done++ { print "trap \"echo \\$? >status\" EXIT" } { print }' "$1" >"$home/job.sbatch"
    chmod a+r "$home/job.sbatch"
    prints 'the batch script' 'trained 7 of 8' typed 'mkfifo status && sbatch --quiet -o job.out job.sbatch ||
        exit; read -r status <status && cat job.out && exit "$status"'
    cp "$home/plain.py" "$home/train.py"
}

run_block()
{
    local line first
    ! grep -q '──>' "$1" || return 0 # a drawing
    read -r first <"$1"
    case $first in
    '#!'*) [ "$measures" = yes ] || run_batch "$1" ;;
    import*) tap_note 'not run by itself: these Python lines are part of train.py, which the other commands run' ;;
    *)
        while read -r line; do
            [ -z "$line" ] || run_line "$line"
        done <"$1"
        ;;
    esac
}

[ -n "${HVD_TEST_PREFIX-}" ] || tap_skip_all 'needs an installation: HVD_TEST_PREFIX, as tests/run.sh sets'
/usr/bin/python3 -c 'import torch, venv' 2>/dev/null || tap_skip_all 'needs python3-torch, python3-venv'
install_hvd
start_cluster 2 --sockets 2 --cores 8 --gpus 4
split_pages
bring_hvd || tap_skip_all 'cannot mount /opt/hvd inside the cluster'
bring_user
for block in "$work"/blocks/*; do
    run_block "$block"
done
tap_done
