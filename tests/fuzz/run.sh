#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes all targets or the given ones for a time, as many at once as there are cores, and prints a table.
# usage: run.sh SECONDS [TARGET...]         run each; build-tests/fuzz-corpus keeps what they learn
#        run.sh --fast SECONDS [TARGET...]  run without sanitizers, which tries about four times as many inputs;
#                                           those that reach new code then run again with sanitizers
#        run.sh --keep [TARGET...]          add to corpus/ the fewest inputs that reach all code reached so far
set -euo pipefail
cd "$(dirname "$0")/../.."
build="build-tests/fuzz"
fast="build-tests/fuzz-fast"
learnt="build-tests/fuzz-corpus"
findings="build-tests/fuzz-findings"
corpora=$PWD/tests/fuzz/corpus
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# build_targets FOLDER OPTION...
build_targets()
{
    local folder=$1
    shift
    [ -e "$folder/build.ninja" ] || CC=clang meson setup "$folder" -Dwerror=true -Dfuzz=true -Db_lundef=false "$@" \
        >/dev/null
    ninja -C "$folder" fuzz_targets >/dev/null
}

# fuzz FOLDER TARGET OPTION...: runs a target of the build in FOLDER.
fuzz()
{
    local folder=$1 target=$2
    shift 2
    "$folder/tests/fuzz/${target}_fuzz" -entropic=0 -timeout=60 -rss_limit_mb=2048 -max_len=4096 \
        -artifact_prefix="$findings/$target-" "$@" "$learnt/$target" || true
}

# run_target SECONDS TARGET: runs a target and prints its row of the table.
run_target()
{
    local seconds=$1 target=$2 log=$findings/$2.log found
    mkdir -p "$learnt/$target"
    python3 tests/fuzz/corpus.py unpack "$corpora/$target" "$learnt/$target"
    fuzz "$searches" "$target" -max_total_time="$seconds" -print_final_stats=1 >"$log" 2>&1
    [ "$searches" = "$build" ] || fuzz "$build" "$target" -runs=0 >"$findings/$target.sanitized.log" 2>&1
    found=$(find $findings -name "$target-*" | wc -l)
    printf '%-12s %14s %10s %8s %9s\n' "$target" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(grep -o ' cov: [0-9]*' "$log" | tail -n 1 | tr -dc 0-9)" "$(find "$learnt/$target" -type f | wc -l)" "$found"
}

keep_target()
{
    local target=$1 least
    least=$(mktemp -d)
    "$build/tests/fuzz/${target}_fuzz" -merge=1 "$least" "$learnt/$target" >/dev/null 2>&1
    python3 tests/fuzz/corpus.py pack "$corpora/$target" "$least"
    rm -rf "$least"
}

searches=$build
[ "${1:-}" != --fast ] || { searches=$fast && shift; }
first=${1:?usage: run.sh [--fast] SECONDS [TARGET...] or run.sh --keep [TARGET...]}
shift
[ $# -gt 0 ] || mapfile -t targets < <(find tests/fuzz -name '*_fuzz.c' ! -name 'planted*' -printf '%f\n' | sed 's/_fuzz.c//' | sort)
[ $# = 0 ] || targets=("$@")
build_targets $build -Doptimization=1 -Db_sanitize=address,undefined
[ "$searches" = $build ] || build_targets "$searches" -Doptimization=2
mkdir -p $findings
if [ "$first" = --keep ]; then
    for target in "${targets[@]}"; do
        keep_target "$target"
    done
    exit
fi
rm -rf "${findings:?}"/*
printf '%-12s %14s %10s %8s %9s\n' target executions coverage inputs findings
export build searches learnt findings corpora
export -f run_target fuzz
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c "run_target $first {}"
[ -z "$(find $findings -type f ! -name '*.log')" ] || { echo "inputs of faults are in $findings" && exit 1; }
