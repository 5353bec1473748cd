#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Completions work in bash and in zsh.
# usage: completion_test.sh SOURCE_ROOT FILE...     FILE: NAME for bash, _NAME for zsh
root=$1
shift
mapfile -t files < <(realpath -- "$@")
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
tap_begin
touch "$work/job.hosts"

# file_of NAME: prints the path of a completion
file_of()
{
    printf '%s\n' "${files[@]}" | grep "/$1\$"
}

# in_bash PROGRAM WORD...: prints what bash offers for the last word
in_bash()
{
    (
        cd "$work" || exit
        # shellcheck disable=SC1091 # of the package bash-completion
        . /usr/share/bash-completion/bash_completion
        # shellcheck disable=SC1090 # the file that is tested
        . "$(file_of "$1")"
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        COMP_LINE="$*"
        COMP_POINT=${#COMP_LINE}
        COMPREPLY=()
        "_${1//-/_}" "$1" "${!#}" "${*: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}"
    )
}

# offers PROMISE EXPECTED PROGRAM WORD...
offers()
{
    local promise=$1 expected=$2
    shift 2
    in_bash "$@" >"$work/out" 2>&1
    [ "$(sort -u "$work/out" | tr '\n' ' ')" = "$expected " ]
    report $? "$promise"
}

check_bash()
{
    [ -e /usr/share/bash-completion/bash_completion ] ||
        { tap_skip 'completions work in bash' 'no bash-completion: apt-get install bash-completion' && return; }
    offers 'bash completes options of hvdrun' '--spares' hvdrun --spa
    offers 'bash completes a file for an option that takes one' 'job.hosts' hvdrun --hostfile job
    offers 'bash completes the words that an option takes' 'auto' hvd-info --nic a
    offers 'bash completes a program after the options of hvdrun' 'python3-config' hvdrun -np 2 python3-conf
    offers 'bash completes options of hvd-bench' '--sizes' hvd-bench --siz
}

check_zsh()
{
    local file
    command -v zsh >/dev/null || { tap_skip 'completions work in zsh' 'no zsh: apt-get install zsh' && return; }
    for file in "${files[@]}"; do
        case $(basename "$file") in
        _*) cp "$file" "$work/" ;;
        esac
    done
    # A terminal in zsh in which the keys are typed: tab completes, and each read waits for what the terminal shows.
    timeout 100 zsh -f -c "zmodload zsh/zpty; zpty shell zsh -f -i
        zpty -w shell 'PS1=; fpath=($work \$fpath); autoload -U compinit; compinit -u -d $work/dump; cd $work; print READY'
        zpty -r shell output '*READY*READY*'
        zpty -n -w shell \$'hvdrun --spa\t'; zpty -r shell output '*--spares*' && print -r -- \$output
        zpty -n -w shell \$'\C-uhvd-info --nic o\t'; zpty -r shell output '*nic off*' && print -r -- \$output" >"$work/out" 2>&1
    grep -q -- '--spares' "$work/out"
    report $? 'zsh completes options of hvdrun'
    grep -q -- '--nic off' "$work/out"
    report $? 'zsh completes the words that an option takes'
}

check_bash
check_zsh
tap_done
