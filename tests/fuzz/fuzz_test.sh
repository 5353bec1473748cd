#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a target for some seconds. An input that causes a fault is printed in base64 and kept in the folder
# findings beside the program: put it into corpus/TARGET under a name that says what it found.
# usage: fuzz_test.sh PROGRAM CORPUS SECONDS
program=$1
corpus=$2
seconds=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
target=$(basename "$corpus")
findings=$(dirname "$program")/findings
seed=${HVD_TEST_SEED:-$(($(od -An -N4 -tu4 /dev/urandom) % 1000000000 + 1))}
export TMPDIR=$work ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# An input that takes a minute counts as a hang, because even a busy machine needs less.
fuzz()
{
    "$program" -seed="$seed" -max_total_time="$seconds" -entropic=0 -timeout=60 -rss_limit_mb=2048 -max_len=4096 \
        -artifact_prefix="$findings/$target-" -print_final_stats=1 "$work/corpus" >"$work/out" 2>&1
}

executions()
{
    sed -n 's/^stat::number_of_executed_units: *//p' "$work/out"
}

mkdir -p "$findings"
rm -f "$findings/$target-"*
python3 "$(dirname "$0")/corpus.py" unpack "$corpus" "$work/corpus"
echo "# seed $seed"
if [ "$target" = planted ]; then
    ! fuzz && grep -q 'AddressSanitizer: heap-buffer-overflow' "$work/out"
    report $? 'the planted fault is found'
else
    fuzz
    status=$?
    [ $status = 0 ] || base64 "$findings/$target-"* >>"$work/out"
    report $status "$target: $(executions) inputs, no fault"
fi
tap_done
