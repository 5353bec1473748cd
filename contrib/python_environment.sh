# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Python environments that are made once and reused; sourced by the scripts that make them. Such a script
# sets
#
#   what         its name in the error "no $what: REASON", which comes with status 3
#   environment  the directory, in a cache
#   contents     optional: an environment that was made with another text here is made again
#   venv_option  optional: an option of python3 -m venv
#
# defines a function fill_environment, which fills an empty environment, and ends with use_environment.

python=/usr/bin/python3
# shellcheck disable=SC2034 # read by the scripts that source this
cache=${XDG_CACHE_HOME:-$HOME/.cache}
what='' environment='' contents='' venv_option=''

python_version()
{
    "$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

impossible()
{
    echo "no $what: $*" >&2
    exit 3
}

empty_environment()
{
    rm -rf "$environment"
    : >"$environment.log"
    "$python" -m venv ${venv_option:+"$venv_option"} "$environment" >>"$environment.log" 2>&1 ||
        impossible "python3 -m venv failed; on Debian: apt-get install python3-venv"
}

pip_install()
{
    "$environment/bin/python" -m pip install --quiet --no-cache-dir --retries 2 \
        --disable-pip-version-check "$@" >>"$environment.log" 2>&1 ||
        impossible "pip: $(grep -iE '^error|hash' "$environment.log" | tail -n 1)"
}

# pip_install_pinned FILE [OPTION of pip install]...: installs the versions in the file, which has the hashes of their
# wheels; a wheel with another hash is rejected.
pip_install_pinned()
{
    local file=$1
    shift
    pip_install --require-hashes --only-binary :all: "$@" --requirement "$file"
}

# must_run WHAT CODE: fails if the Python code fails, that is, if the environment does not work.
must_run()
{
    "$environment/bin/python" -c "$2" >>"$environment.log" 2>&1 ||
        impossible "$1: $(tail -n 1 "$environment.log")"
}

is_complete()
{
    [ -e "$environment/complete" ] && [ "$(cat "$environment/complete")" = "$contents" ]
}

# Makes the environment if necessary, one process at a time, and prints the path of its python.
use_environment()
{
    mkdir -p "$(dirname "$environment")"
    exec 9>"$environment.lock"
    flock 9
    if ! is_complete; then
        fill_environment
        echo "$contents" >"$environment/complete"
    fi
    echo "$environment/bin/python"
}
