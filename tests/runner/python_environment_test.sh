#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# python_environment_test.sh: Python environments are made by one caller, for whom the others wait, and
# of wheels whose hashes are known.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/tap.sh
. "$here/../tap.sh"
tap_begin

check()
{
    "${@:2}"
    report $? "$1"
}

# make NAME: an environment of that name, of which it writes down that it was made. The first maker
# says so, and goes on when it is told to.
make()
(
    # shellcheck source=contrib/python_environment.sh
    . "$here/../../contrib/python_environment.sh"
    environment=$work/$1
    fill_environment()
    {
        mkdir -p "$environment"
        echo made >>"$work/made"
        echo begun >"$work/begun"
        read -r _ <"$work/go"
    }
    use_environment
)

mkfifo "$work/begun" "$work/go"
make one >"$work/first" &
first=$!
read -r _ <"$work/begun"
make one >"$work/second" &
second=$!
check 'another environment is free meanwhile' flock --nonblock "$work/two.lock" true
check 'that of the first caller is locked' test ! "$(flock --nonblock "$work/one.lock" echo free)"
echo >"$work/go"
wait "$first" "$second"
check 'both callers get it' cmp "$work/first" "$work/second"
check 'it is the python of the environment' grep -qx "$work/one/bin/python" "$work/second"
check 'it was made once' test "$(wc -l <"$work/made")" = 1

# wheel TEXT: a package of its own in $work/wheels, which contains the text.
wheel()
{
    mkdir -p "$work/wheels"
    python3 - "$work/wheels/hvd_probe-1-py3-none-any.whl" "$1" <<'PYTHON'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('hvd_probe.py', f'print({sys.argv[2]!r})\n')
    wheel.writestr('hvd_probe-1.dist-info/METADATA', 'Metadata-Version: 2.1\nName: hvd-probe\nVersion: 1\n')
    wheel.writestr('hvd_probe-1.dist-info/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr('hvd_probe-1.dist-info/RECORD', 'hvd_probe.py,,\n')
PYTHON
}

# pinned NAME: an environment with the package whose hash stands in $work/requirements.
pinned()
(
    # shellcheck source=contrib/python_environment.sh
    . "$here/../../contrib/python_environment.sh"
    # shellcheck disable=SC2034
    what=probe environment=$work/$1
    fill_environment()
    {
        empty_environment
        pip_install_pinned "$work/requirements" --no-index --find-links "$work/wheels"
    }
    use_environment
)

refuses_another_wheel()
{
    wheel forged
    ! pinned forged >"$work/forged.out" 2>&1 && grep -q 'no probe: pip: .*hash' "$work/forged.out" &&
        [ ! -e "$work/forged/complete" ]
}

if python3 -c 'import ensurepip' 2>"$work/no_venv"; then
    wheel genuine
    echo "hvd-probe==1 --hash=sha256:$(sha256sum "$work/wheels/"* | cut -d ' ' -f 1)" >"$work/requirements"
    check 'a wheel with the known hash is installed' \
        test "$(pinned genuine >"$work/genuine.out" && "$(cat "$work/genuine.out")" -m hvd_probe)" = genuine
    check 'one with another hash is refused' refuses_another_wheel
else
    tap_skip 'a wheel with the known hash is installed' 'no ensurepip'
    tap_skip 'one with another hash is refused' 'no ensurepip'
fi
check 'only the newest versions are installed without hashes' test "$(cd "$here/../.." &&
    grep -l 'pip_install ' tests/*_env.sh contrib/bench/*_env.sh | tr '\n' ' ')" = \
    'tests/tensorflow_env.sh tests/torch_env.sh '
tap_done
