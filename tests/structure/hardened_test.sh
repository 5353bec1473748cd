#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The installed programs and libraries are hardened, which the built files show.
# usage: hardened_test.sh COMPILER_ID FORTIFIED FILE...
#   COMPILER_ID  meson's name of the compiler; gcc writes its flags into the debug information
#   FORTIFIED    true if _FORTIFY_SOURCE is on
compiler=$1
is_fortified=$2
shift 2
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin

if ! command -v readelf >/dev/null; then
    tap_skip_all 'no readelf here: apt-get install binutils'
fi

# every PROMISE CHECK FILE...: reports the promise, and prints the files for which CHECK fails.
every()
{
    promise=$1
    check=$2
    shift 2
    : >"$work/out"
    for file in "$@"; do
        $check "$file" || echo "$file" >>"$work/out"
    done
    [ ! -s "$work/out" ]
    report $? "$promise"
}

is_bound_at_once()
{
    readelf -dW "$1" | grep -Eq '\((FLAGS|FLAGS_1)\).*NOW'
}

has_relro()
{
    readelf -lW "$1" | grep -q GNU_RELRO
}

# No memory is writable and executable, not even the stack.
has_no_writable_code()
{
    readelf -lW "$1" | grep -q 'GNU_STACK .* RW ' && ! readelf -lW "$1" | grep -Eq '^ +[A-Z_]+ .* RWE '
}

is_position_independent()
{
    readelf -hW "$1" | grep -Eq 'Type: +DYN'
}

# imports FILE PATTERN: the file imports a symbol whose name matches the pattern.
imports()
{
    readelf --dyn-syms -W "$1" | awk '$7 == "UND" { print $8 }' | grep -Eq "$2"
}

protects_the_stack()
{
    imports "$1" '^__stack_chk_fail'
}

# The file calls a fortified function of the C library.
is_checked()
{
    imports "$1" '^__(f|v|s|p|m|r|w|o|g|e|l|u)[a-z0-9]*_chk(@|$)'
}

# lists_flag FILE FLAG: gcc compiled every C source that has debug information with the flag.
lists_flag()
{
    ! readelf --debug-dump=info --dwarf-depth=1 "$1" 2>/dev/null |
        grep 'DW_AT_producer.*GNU C[0-9]' | grep -Fvq -- "$2"
}

probes_the_stack()
{
    lists_flag "$1" -fstack-clash-protection
}

protects_every_source()
{
    lists_flag "$1" -fstack-protector-strong
}

every 'symbols are bound at the start' is_bound_at_once "$@"
every 'bound symbols are read-only (RELRO)' has_relro "$@"
every 'no memory can be both written and run' has_no_writable_code "$@"
every 'code is position-independent' is_position_independent "$@"
every 'the stack is protected' protects_the_stack "$@"
if [ "$is_fortified" = true ]; then
    every 'calls of the C library check sizes' is_checked "$@"
fi
if [ "$compiler" = gcc ]; then
    every 'every source has the stack protector' protects_every_source "$@"
    every 'every source probes large stacks' probes_the_stack "$@"
fi
tap_done
