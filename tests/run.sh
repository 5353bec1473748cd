#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything installed, built and tested from nothing. `tests/run.sh --help` tells how.
set -uo pipefail

usage()
{
    cat <<TEXT
usage: tests/run.sh [all | SUITE ... | distros [SUITE ...]]

Installs what is missing (Debian, root), builds and tests. The last line is
"N passed, N failed, N skipped"; the exit status is 0 if nothing failed.

Without arguments: every layer, real jobs, a cluster of two nodes, and the front end of the
framework that Debian has, in at most 15 minutes on two idle cores, 10 when run again.
\`all\` adds, in at most 40 minutes: the same promises at other ranks and in other layouts, under
sanitizers, and with TensorFlow, Keras, MXNet and the current PyTorch of PyPI.

  format      layout of the sources (clang-format), scripts (shellcheck)
  clang       compiles with clang; warnings are errors there and in the plain build with gcc
  analysis    cppcheck, gcc -fanalyzer and clang-tidy find nothing in what is installed for jobs
  sanitized   unit and processes again, under AddressSanitizer and UndefinedBehaviorSanitizer, but for
              those that show at length what others show
  threads     the tests in which threads meet, under ThreadSanitizer
  fuzz        what hvd reads, fuzzed for ten seconds each, under both sanitizers
              (tests/fuzz/run.sh SECONDS: for as long as you want)
  python      the front ends: with Debian's PyTorch and the current one of PyPI; with the newest
              TensorFlow of PyPI (Keras 3) and with 2.15 (Keras 2); with MXNet. Each on up to four
              ranks, and on a cluster of two nodes; the table of their counts comes at the end
  soak        half an hour of random life of a job, in four layouts; only when named
  distros     on newer releases of Debian, trixie and sid, each in a root made by debootstrap (root,
              about 5 GB each, kept): unit, processes and cluster, or the SUITEs that follow, and
              contrib/demo.sh; only when named
  unit, processes, cluster, cuda, gpu, hw, ...    suites of \`meson test\`, all of their tests

HVD_TEST_JOBS=N    how many tests run at once, default two for each core
HVD_TEST_TIMES=N   multiplies the time limits of tests and builds, default 4
HVD_TEST_SEED=N    the seed of randomised tests
HVD_TEST_PYTHON=P  for gpu: an interpreter whose torch is for CUDA, default python3 where it has one, else
                   /usr/bin/python3
HVD_TEST_OPTIONS=O options of \`meson setup\` for all builds, such as '-Dpmix=disabled -Dwerror=false'
HVD_TEST_INSTALL=0 installs nothing

Builds are kept in build-tests/, so a second run is fast; logs are in build-tests/results/.
TEXT
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source_dir=$PWD
builds=$source_dir/build-tests
results=$builds/results
times=${HVD_TEST_TIMES:-4}
jobs=${HVD_TEST_JOBS:-$((2 * $(nproc)))}
# Where the plain build is installed: outside the checkout, for the job user of the cluster to read.
prefix=/var/tmp/hvd-installed-$(printf %s "$source_dir" | cksum | cut -d ' ' -f 1)

python=/usr/bin/python3
[ -x $python ] || python=python3

# --- steps of this script that are promises themselves ---

step_count=0

report()
{
    step_count=$((step_count + 1))
    echo "$1 $step_count - $2" | tee -a "$results/steps.tap"
}

# step PROMISE COMMAND...: one line of TAP; a failure shows the output.
step()
{
    local promise=$1
    shift
    if "$@" >"$results/step.log" 2>&1; then
        report ok "$promise"
    else
        report 'not ok' "$promise"
        sed 's/^/# /' "$results/step.log" | tail -n 100 | tee -a "$results/steps.tap"
        return 1
    fi
}

# skip_without TOOL PROMISE: fails, and reports the promise as skipped, when there is no such tool.
skip_without()
{
    command -v "$1" >/dev/null || { report ok "$2 # SKIP no $1 here" && return 1; }
}

# --- sources ---

# The files of the checkout; of an unpacked archive, those outside of builds.
sources()
{
    git ls-files -- "*$1" 2>/dev/null || find . -path './build*' -prune -o -name "*$1" -print
}

# Each release of clang-format lays out a little otherwise: only one can have nothing to change.
formatter=14 # of Debian 12

is_known_formatter()
{
    [ "$(clang-format --version | grep -o 'version [0-9]*')" = "version $formatter" ]
}

well_formatted()
{
    { sources .c && sources .h; } | xargs -r clang-format --dry-run -Werror
}

clean_scripts()
{
    { sources .sh && echo contrib/cluster/cluster; } | xargs -r shellcheck --severity=warning
}

check_format()
{
    local promise='clang-format has nothing to change'
    if ! skip_without clang-format "$promise"; then
        : # it has said so
    elif is_known_formatter; then
        step "$promise" well_formatted
    else
        report ok "$promise # SKIP the layout is that of clang-format $formatter, which is not here"
    fi
    promise='shellcheck finds nothing in the scripts'
    ! skip_without shellcheck "$promise" || step "$promise" clean_scripts
}

# --- builds ---

# With the options of now where a build was left by an earlier run; fresh where there is none, or one
# that a program is in the way of, since a directory has its name now.
configure()
{
    local dir=$builds/$1 words
    local -x CC=${compilers[$1]}
    read -ra words <<<"${options[$1]}"
    [ -e "$dir/build.ninja" ] && meson setup --reconfigure "$dir" "${words[@]}" && return
    rm -rf "$dir" && meson setup "$dir" "${words[@]}"
}

# Says first what is wrong: the rest of a failed build fills many screens.
compile()
{
    timeout $((300 * times)) ninja -C "$builds/$1" ${targets[$1]:+"${targets[$1]}"} >"$results/$1.build.log" 2>&1 && return
    grep -E '(error|warning|undefined reference)' "$results/$1.build.log" | sort -u | head -n 20
    tail -n 20 "$results/$1.build.log"
    return 1
}

# Warnings count in the builds without sanitizers; with them gcc warns of what cannot be.
declare -A compilers=([plain]=gcc [clang]=clang [sanitized]=gcc [threads]=gcc [fuzz]=clang)
declare -A options=(
    [plain]="-Dwerror=true -Dbench=true --prefix $prefix"
    [clang]='-Dwerror=true -Dbench=true -Doptimization=0'
    [sanitized]='-Dwerror=false -Dbench=true -Doptimization=1 -Db_sanitize=address,undefined'
    [threads]='-Dwerror=false -Doptimization=1 -Db_sanitize=thread'
    [fuzz]='-Dwerror=true -Dfuzz=true -Dtests=false -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false'
)
for name in "${!options[@]}"; do
    options[$name]+=" ${HVD_TEST_OPTIONS-}"
done
declare -A targets=([fuzz]=fuzz_targets)

# build NAME: at most once a run; fails again where it failed before.
build()
{
    local name=$1
    if [ ! -e "$results/$name.state" ]; then
        echo broken >"$results/$name.state"
        step "build '$name' is configured" configure "$name" &&
            step "build '$name' compiles" compile "$name" && echo good >"$results/$name.state"
    fi
    grep -q good "$results/$name.state"
}

# An empty directory of this user's: mkdir fails where somebody has put something in its place.
make_prefix()
{
    rm -rf "$prefix"
    mkdir -m 755 "$prefix"
}

# What an admin installs, once a run.
install_plain()
{
    build plain || return
    [ ! -e "$results/installed" ] || return 0
    step "$prefix is made" make_prefix || return
    step 'meson install' meson install -C "$builds/plain" --no-rebuild && touch "$results/installed"
}

build_clang()
{
    ! skip_without clang 'compiles with clang' || build clang
}

# --- tests ---

# run_tests BUILD LABEL ARGUMENTS of `meson test`...: the label names the results, once a run.
run_tests()
{
    local name=$1 label=$2
    shift 2
    ${launcher-} meson test -C "$builds/$name" --no-rebuild --logbase "$label" -t "$times" \
        --num-processes "$jobs" "$@"
    mv "$builds/$name/meson-logs/$label.json" "$results/" 2>/dev/null ||
        report 'not ok' "there are tests for '$*'"
}

# plain_suites LABEL ARGUMENTS of `meson test`...
plain_suites()
{
    install_plain || return
    HVD_TEST_PREFIX=$prefix run_tests plain "$@"
}

# Suites that need what only an environment from PyPI has.
pypi_suites='--no-suite tensorflow --no-suite keras-on-torch --no-suite mxnet'

# The frameworks of PyPI, each with the suites that are for it. What is in the suite `once` is not
# repeated with another version of a framework.
python_suites()
{
    install_plain || return
    environment_tests torch-of-pypi tests/torch_env.sh --suite python --no-suite once --no-suite mxnet
    environment_tests keras-on-torch tests/torch_env.sh --suite keras-on-torch
    environment_tests tensorflow-newest 'tests/tensorflow_env.sh newest' --suite tensorflow
    environment_tests tensorflow-2.15 'tests/tensorflow_env.sh 2.15' --suite tensorflow --no-suite once
    environment_tests mxnet-of-pypi tests/mxnet_env.sh --suite mxnet
}

# Made while processors are needed for something else; environment_tests waits for each.
make_environments()
{
    local command
    for command in tests/torch_env.sh 'tests/tensorflow_env.sh newest' 'tests/tensorflow_env.sh 2.15' \
        tests/mxnet_env.sh; do
        $command
    done >/dev/null 2>&1
}

# environment_tests LABEL COMMAND ARGUMENT...: `meson test` with the Python that the command prints.
environment_tests()
{
    local label=$1 command=$2 python log=$results/$1-environment.log
    shift 2
    # shellcheck disable=SC2086 # the command's arguments
    if python=$($command 2>"$log"); then
        HVD_TEST_PYTHON=$python plain_suites "$label" "$@"
    else
        report ok "$label, $* # SKIP $(tail -n 1 "$log")"
    fi
}

# What is in the suite `once` shows at length what other tests show, and takes minutes here.
sanitized_suites()
{
    build sanitized || return
    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 \
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        times=$((times * 3)) run_tests sanitized sanitized --suite unit --suite processes --no-suite once
}

# ThreadSanitizer wants the usual layout of the address space, which randomisation may move, and
# crashes when UCX's memory hooks run at the end of a thread.
threads_suite()
{
    local launcher='setarch --addr-no-randomize'
    build threads || return
    $launcher true 2>/dev/null || launcher='' # some containers forbid it
    TSAN_OPTIONS=halt_on_error=1 UCX_MEM_EVENTS=no times=$((times * 3)) \
        run_tests threads threads --suite threads
}

has_fuzzer()
{
    echo 'int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return !data * !size; }' |
        clang -x c -fsanitize=fuzzer,address,undefined - -o /dev/null 2>/dev/null
}

# One after the other on each core: they compute all the time.
fuzz_suite()
{
    local jobs
    jobs=$(nproc)
    has_fuzzer || { report ok 'fuzzing finds no fault # SKIP no clang with libFuzzer here' && return; }
    build fuzz || return
    run_tests fuzz fuzz --suite fuzz
}

# analyse TOOL COMMAND BUILD VERSION: what is clean for one release of a tool need not be for the next.
analyse()
{
    local promise="$1 finds nothing" version
    skip_without "$2" "$promise" || return 0
    version=$("$2" --version | grep -o '[0-9][0-9.]*' | head -n 1)
    case $version in
    "$4"*) step "$promise" /usr/bin/python3 tests/analysis.py "$2" "$builds/$3" ;;
    *) report ok "$promise # SKIP $2 is $version, the sources are kept clean for $4" ;;
    esac
}

analysis_suite()
{
    build plain || return
    analyse cppcheck cppcheck plain 2.10
    analyse 'gcc -fanalyzer' gcc plain 12
    analyse clang-tidy clang-tidy plain 14
}

# distros SUITE...
distros()
{
    tests/distros.sh "$results" "$@" | tee "$results/distros.tap"
}

# --- ahead of time ---

# Tests wait for much, and leave a third of the processors' time to the builds of the phases after them.
# In a session of its own: the kernel divides the processors among sessions first.
ahead=
begin_builds()
{
    setsid tests/run.sh builds-ahead >"$results/ahead.log" 2>&1 9>&- &
    ahead=$!
}

# What fails here fails again, and says so, when its phase comes.
make_builds()
{
    local name
    echo 19 >/proc/self/autogroup
    chrt --idle --pid 0 $$
    for name in sanitized threads fuzz; do
        (configure "$name" && compile "$name")
    done
}

# At full speed, if some are left.
await_builds()
{
    [ -z "$ahead" ] || wait "$ahead"
}

end_builds()
{
    [ -z "$ahead" ] || kill -- "-$ahead"
} 2>/dev/null

# --- all of it ---

# phase NAME COMMAND...: the command, and how long it took, for the table at the end.
phase()
{
    local name=$1 TIMEFORMAT="$1 %R %U %S"
    shift
    { time "$@" 2>&3; } 3>&2 2>>"$results/phases"
}

python_for_gpus()
{
    local python=${HVD_TEST_PYTHON-}
    [ -n "$python" ] || ! python3 -c 'import sys, torch; sys.exit(not torch.version.cuda)' 2>/dev/null ||
        python=$(command -v python3)
    echo "${python:-/usr/bin/python3}"
}

# Programs in C do not find an NCCL that lies in torch's packages.
gpu_suite()
{
    local -x HVD_TEST_PYTHON
    HVD_TEST_PYTHON=$(python_for_gpus)
    if [ -z "${HVD_NCCL_LIBRARY-}" ] && ! ldconfig -p | grep -q 'libnccl\.so\.2'; then
        HVD_NCCL_LIBRARY=$("$HVD_TEST_PYTHON" -c 'import glob, nvidia
print(*[found for place in nvidia.__path__ for found in glob.glob(place + "/*/lib/libnccl.so.2")][:1])' 2>/dev/null)
        export HVD_NCCL_LIBRARY
        [ -n "$HVD_NCCL_LIBRARY" ] || unset HVD_NCCL_LIBRARY
    fi
    plain_suites gpu --suite gpu
}

run_suite()
{
    case $1 in
    format) check_format ;;
    clang) build_clang ;;
    sanitized) sanitized_suites ;;
    threads) threads_suite ;;
    fuzz) fuzz_suite ;;
    analysis) analysis_suite ;;
    python)
        HVD_TEST_PYTHON=/usr/bin/python3 plain_suites torch-of-debian --suite python --no-suite mxnet
        python_suites
        ;;
    gpu) gpu_suite ;;
    *) plain_suites "$1" --suite "$1" ;;
    esac
}

# What is not in the suite `more`, all in one go: what waits leaves the processors to what computes.
run_short()
{
    phase format check_format
    phase clang build_clang
    phase gcc install_plain
    # shellcheck disable=SC2086 # several options
    HVD_TEST_PYTHON=/usr/bin/python3 phase tests plain_suites plain --no-suite more $pypi_suites
}

run_all()
{
    make_environments &
    phase format check_format
    phase clang build_clang
    phase gcc install_plain
    begin_builds
    # shellcheck disable=SC2086 # several options
    HVD_TEST_PYTHON=/usr/bin/python3 phase tests plain_suites plain $pypi_suites
    phase frameworks python_suites
    phase builds await_builds
    phase sanitized sanitized_suites
    phase threads threads_suite
    phase fuzz fuzz_suite
    phase analysis analysis_suite
}

install_packages()
{
    [ "${HVD_TEST_INSTALL-1}" != 0 ] || return 0
    contrib/packages.sh install build cluster torch test >"$results/packages.log" 2>&1 ||
        { tail -n 20 "$results/packages.log" >&2 && echo 'going on with what is here' >&2; }
}

prepare()
{
    mkdir -p "$builds"
    exec 9>"$builds/lock"
    flock --nonblock 9 || { echo "another tests/run.sh works in $builds" >&2 && exit 1; }
    rm -rf "$results"
    mkdir "$results"
    trap 'end_builds; rm -rf "$prefix"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    phase packages install_packages
}

# In CPU seconds what daemons of clusters use is missing: nobody waits for them.
print_phases()
{
    printf '\n%-12s %10s %10s\n' phase 'wall, s' 'CPU, s'
    awk '{ wall += $2; cpu += $3 + $4; printf "%-12s %10.0f %10.0f\n", $1, $2, $3 + $4 }
        END { printf "%-12s %10.0f %10.0f\n", "all", wall, cpu }' "$results/phases"
}

# The results of the steps and of each `meson test`, those of the front ends in a table, too.
count()
{
    [ ! -e "$results/steps.tap" ] || echo "1..$step_count" >>"$results/steps.tap"
    print_phases
    find "$results" -name '*.json' | sort | xargs -r "$python" tests/runner/front_ends.py
    find "$results" -name '*.tap' -o -name '*.json' | sort |
        xargs -r "$python" tests/runner/count.py
}

main()
{
    local suite
    case ${1-} in
    --help | -h) usage && exit ;;
    builds-ahead) make_builds && exit ;; # begin_builds calls this
    esac
    prepare
    case $* in
    '') run_short ;;
    all) run_all ;;
    distros*) phase distros distros "${@:2}" ;;
    *)
        for suite in "$@"; do
            phase "$suite" run_suite "$suite"
        done
        ;;
    esac
    count
}

main "$@" </dev/null
