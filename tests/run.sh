#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs packages, builds and tests everything from a fresh checkout. See `tests/run.sh --help`.
set -uo pipefail

usage()
{
    cat <<TEXT
usage: tests/run.sh [all | SUITE ... | distros [SUITE ...]]

Installs what is missing (Debian, root), builds and tests. The last line is
"N passed, N failed, N skipped"; the exit status is 0 if nothing failed.

Without arguments: every layer, real jobs, a cluster of two nodes, and the front end of Debian's
PyTorch, in at most 15 minutes on two idle cores, 10 minutes when run again.
\`all\` takes about an hour there. It adds: the same promises with other numbers of ranks and layouts, under
sanitizers, and with TensorFlow, Keras, MXNet, JAX, Ray, Spark and the current PyTorch of PyPI.

  format      layout of the sources (clang-format), scripts (shellcheck)
  clang       compiles with clang; warnings are errors there and in the plain build with gcc
  analysis    cppcheck, gcc -fanalyzer and clang-tidy find nothing in all sources but those of tests
  sanitized   unit and processes again, under AddressSanitizer and UndefinedBehaviorSanitizer, without
              long tests whose code other tests cover
  threads     tests with several threads, under ThreadSanitizer
  fuzz        all parsers of hvd, fuzzed for five seconds each, under both sanitizers
              (for longer: tests/fuzz/run.sh SECONDS)
  python      the front ends: with Debian's PyTorch and the current one of PyPI; with the newest
              TensorFlow of PyPI (Keras 3) and with 2.15 (Keras 2); with MXNet; with JAX. Each on up to four
              ranks, and on a cluster of two nodes; the table of their counts comes at the end
  engines     horovod.ray and horovod.spark with the real Ray and Spark of PyPI
  soak        random operations of a job for half an hour, in four layouts; only when named
  distros     on newer releases of Debian, trixie and sid, each in a root directory made by debootstrap
              (needs root, about 5 GB each, kept): unit, processes and cluster, or the given SUITEs,
              and contrib/demo.sh; only when named
  packages    debs and rpms: built twice with the same bits, installed, used and removed in roots of this
              release of Debian (needs root, 3 GB, kept; about 15 minutes); only when named
  rdma        jobs over UCX's rc_verbs and Linux's soft-RoCE, in machines that qemu emulates without KVM
              (Debian on x86-64, downloads a kernel, 3 to 10 minutes); only when named
  unit, processes, cluster, cuda, gpu, hw, ...    all tests of these suites of \`meson test\`

HVD_TEST_JOBS=N    how many tests run at the same time, default two per core
HVD_TEST_TIMES=N   multiplies the time limits of tests and builds, default 4
HVD_TEST_SEED=N    the seed of randomised tests
HVD_TEST_PYTHON=P  for gpu: a Python whose torch supports CUDA; default: python3 if its torch does, else
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
# The plain build is installed outside the checkout, so that the job user of the cluster can read it.
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

# step PROMISE COMMAND...: prints a line of TAP; a failure shows the output.
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

# sources SUFFIX: prints the files of the checkout; for an unpacked archive, the files outside builds.
sources()
{
    git ls-files -- "*$1" 2>/dev/null || find . -path './build*' -prune -o -name "*$1" -print
}

# Each release of clang-format formats slightly differently, so the sources fit only one release.
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
        : # already reported
    elif is_known_formatter; then
        step "$promise" well_formatted
    else
        report ok "$promise # SKIP the layout is that of clang-format $formatter, which is not installed"
    fi
    promise='shellcheck finds nothing in the scripts'
    ! skip_without shellcheck "$promise" || step "$promise" clean_scripts
}

# --- builds ---

# Configures a build with the current options: again if an earlier run left one, or from scratch if there is none or
# that fails, for example because a program is in the way of a new directory.
configure()
{
    local dir=$builds/$1 words
    local -x CC=${compilers[$1]}
    read -ra words <<<"${options[$1]}"
    [ -e "$dir/build.ninja" ] && meson setup --reconfigure "$dir" "${words[@]}" && return
    rm -rf "$dir" && meson setup "$dir" "${words[@]}"
}

# Compiles a build. A failure shows the errors first, because the whole log is long.
compile()
{
    timeout $((300 * times)) ninja -C "$builds/$1" ${targets[$1]:+"${targets[$1]}"} >"$results/$1.build.log" 2>&1 && return
    grep -E '(error|warning|undefined reference)' "$results/$1.build.log" | sort -u | head -n 20
    tail -n 20 "$results/$1.build.log"
    return 1
}

# Warnings are errors only without sanitizers: with them gcc warns of impossible cases.
declare -A compilers=([plain]=gcc [clang]=clang [sanitized]=gcc [threads]=gcc [fuzz]=clang)
declare -A options=(
    [plain]="-Dwerror=true -Dtests=true -Dbench=true --prefix $prefix"
    [clang]='-Dwerror=true -Dtests=true -Dbench=true -Doptimization=0'
    [sanitized]='-Dwerror=false -Dtests=true -Dbench=true -Doptimization=1 -Db_sanitize=address,undefined'
    [threads]='-Dwerror=false -Dtests=true -Doptimization=1 -Db_sanitize=thread'
    [fuzz]='-Dwerror=true -Dfuzz=true -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false'
)
for name in "${!options[@]}"; do
    options[$name]+=" ${HVD_TEST_OPTIONS-}"
done
declare -A targets=([fuzz]=fuzz_targets)

# build NAME: builds at most once in a run; fails again if it failed before.
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

# Makes an empty directory of this user; mkdir fails if another user put a file in its place.
make_prefix()
{
    rm -rf "$prefix"
    mkdir -m 755 "$prefix"
}

# Installs the plain build as an admin would, once in a run.
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

# run_tests BUILD LABEL ARGUMENTS of `meson test`...: LABEL, which is unique in a run, names the results.
run_tests()
{
    local name=$1 label=$2
    shift 2
    ${launcher-} meson test -C "$builds/$name" --no-rebuild --logbase "$label" -t "$times" \
        --num-processes "$jobs" "$@"
    mv "$builds/$name/meson-logs/$label.json" "$results/" 2>/dev/null ||
        report 'not ok' "there are tests for '$*'"
}

# plain_suites LABEL ARGUMENTS of `meson test`...: runs tests of the plain build with hvd installed.
plain_suites()
{
    install_plain || return
    HVD_TEST_PREFIX=$prefix run_tests plain "$@"
}

# Suites that need packages from PyPI.
pypi_suites='--no-suite tensorflow --no-suite keras-on-torch --no-suite mxnet --no-suite jax --no-suite engines'

# Runs the suites of each framework from PyPI. Tests in the suite `once` are not repeated with a second version of a
# framework.
python_suites()
{
    install_plain || return
    environment_tests torch-of-pypi tests/torch_env.sh --suite python --no-suite once --no-suite mxnet --no-suite jax
    environment_tests keras-on-torch tests/torch_env.sh --suite keras-on-torch
    environment_tests tensorflow-newest 'tests/tensorflow_env.sh newest' --suite tensorflow
    environment_tests tensorflow-2.15 'tests/tensorflow_env.sh 2.15' --suite tensorflow --no-suite once
    environment_tests mxnet-of-pypi tests/mxnet_env.sh --suite mxnet
    environment_tests jax-of-pypi tests/jax_env.sh --suite jax
}

# Java, which Spark needs, is installed for these tests alone.
engines_suite()
{
    [ "${HVD_TEST_INSTALL-1}" = 0 ] || command -v java >/dev/null ||
        contrib/packages.sh install engines >"$results/engines-packages.log" 2>&1
    environment_tests engines tests/engines_env.sh --suite engines
}

# Makes the Python environments in the background; environment_tests waits for each.
make_environments()
{
    local command
    for command in tests/torch_env.sh 'tests/tensorflow_env.sh newest' 'tests/tensorflow_env.sh 2.15' \
        tests/mxnet_env.sh tests/jax_env.sh tests/engines_env.sh; do
        $command
    done >/dev/null 2>&1
}

# environment_tests LABEL COMMAND ARGUMENT...: runs `meson test` with the Python whose path COMMAND prints.
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

# Runs tests under AddressSanitizer and UBSan, except the suite `once`: it takes minutes there, and other tests cover
# the same code.
sanitized_suites()
{
    build sanitized || return
    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 \
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        times=$((times * 3)) run_tests sanitized sanitized --suite unit --suite processes --no-suite once
}

# ThreadSanitizer needs the default layout of the address space, without randomisation, and crashes when UCX's memory
# hooks run at the end of a thread.
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

# Runs one fuzz target per core, because they use the CPU all the time.
fuzz_suite()
{
    local jobs
    jobs=$(nproc)
    has_fuzzer || { report ok 'fuzzing finds no fault # SKIP no clang with libFuzzer' && return; }
    build fuzz || return
    run_tests fuzz fuzz --suite fuzz
}

# analyse TOOL COMMAND BUILD VERSION: runs only that version of a tool, because others may report more.
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

# distros SUITE...: runs tests/distros.sh.
distros()
{
    tests/distros.sh "$results" "$@" | tee "$results/distros.tap"
}

packages_suite()
{
    tests/packaging/packages.sh "$results" | tee "$results/packages.tap"
}

rdma_suite()
{
    install_plain || return
    tests/rdma/rdma.sh "$results" "$builds/plain" "$prefix" | tee "$results/rdma.tap"
}

# --- ahead of time ---

# Starts the builds of later phases in the background: tests often wait, and leave a third of the CPU time unused. The
# builds get a session of their own, because the kernel shares the CPU among sessions first.
ahead=
begin_builds()
{
    setsid tests/run.sh builds-ahead >"$results/ahead.log" 2>&1 9>&- &
    ahead=$!
}

# Errors are ignored here: the build fails again in its phase, which reports it.
make_builds()
{
    local name
    echo 19 >/proc/self/autogroup
    chrt --idle --pid 0 $$
    for name in sanitized threads fuzz; do
        (configure "$name" && compile "$name")
    done
}

# Waits for the remaining builds.
await_builds()
{
    [ -z "$ahead" ] || wait "$ahead"
}

end_builds()
{
    [ -z "$ahead" ] || kill -- "-$ahead"
} 2>/dev/null

# --- all of it ---

# The phases that follow, if they are known.
left=

# phase NAME COMMAND...: runs COMMAND, and records its time for the table at the end.
phase()
{
    local name=$1 TIMEFORMAT="$1 %R %U %S"
    shift
    left=${left#"$name"} left=${left# }
    echo "== $name, $((SECONDS / 60)) min since the start${left:+; left: $left}"
    { time "$@" 2>&3; } 3>&2 2>>"$results/phases"
}

python_for_gpus()
{
    local python=${HVD_TEST_PYTHON-}
    [ -n "$python" ] || ! python3 -c 'import sys, torch; sys.exit(not torch.version.cuda)' 2>/dev/null ||
        python=$(command -v python3)
    echo "${python:-/usr/bin/python3}"
}

# Programs in C do not find the NCCL in torch's packages by themselves.
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
        HVD_TEST_PYTHON=/usr/bin/python3 plain_suites torch-of-debian --suite python --no-suite mxnet --no-suite jax
        python_suites
        ;;
    engines) engines_suite ;;
    gpu) gpu_suite ;;
    packages) packages_suite ;;
    rdma) rdma_suite ;;
    *) plain_suites "$1" --suite "$1" ;;
    esac
}

# Runs all tests outside the suite `more` together: tests that wait leave the CPU to tests that compute.
run_short()
{
    left='format clang gcc tests'
    phase format check_format
    phase clang build_clang
    phase gcc install_plain
    # shellcheck disable=SC2086 # several options
    HVD_TEST_PYTHON=/usr/bin/python3 phase tests plain_suites plain --no-suite more $pypi_suites
}

run_all()
{
    left='format clang gcc tests frameworks engines builds sanitized threads fuzz analysis'
    make_environments &
    phase format check_format
    phase clang build_clang
    phase gcc install_plain
    begin_builds
    # shellcheck disable=SC2086 # several options
    HVD_TEST_PYTHON=/usr/bin/python3 phase tests plain_suites plain $pypi_suites
    phase frameworks python_suites
    phase engines engines_suite
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
        { tail -n 20 "$results/packages.log" >&2 && echo 'continuing with the installed packages' >&2; }
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

# Prints the time of each phase. CPU seconds do not include daemons of clusters, which no process waits for.
print_phases()
{
    printf '\n%-12s %10s %10s\n' phase 'wall, s' 'CPU, s'
    awk '{ wall += $2; cpu += $3 + $4; printf "%-12s %10.0f %10.0f\n", $1, $2, $3 + $4 }
        END { printf "%-12s %10.0f %10.0f\n", "all", wall, cpu }' "$results/phases"
}

# Prints the results of the steps and of each `meson test`, and a table for the front ends.
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
        left=$*
        for suite in "$@"; do
            phase "$suite" run_suite "$suite"
        done
        ;;
    esac
    count
}

main "$@" </dev/null
