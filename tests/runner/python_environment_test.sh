#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# python_environment_test.sh: one caller makes a Python environment while the others wait for it; only wheels with
# known hashes are installed.
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

# make NAME: makes an environment and records that in a file. The first caller reports that it has begun, and waits
# until it may go on.
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
check 'another environment is not locked meanwhile' flock --nonblock "$work/two.lock" true
check 'the environment of the first caller is locked' test ! "$(flock --nonblock "$work/one.lock" echo free)"
echo >"$work/go"
wait "$first" "$second"
check 'both callers get the environment' cmp "$work/first" "$work/second"
check 'they get the path of its python' grep -qx "$work/one/bin/python" "$work/second"
check 'the environment was made once' test "$(wc -l <"$work/made")" = 1

# wheel TEXT: makes a wheel in $work/wheels whose module prints TEXT.
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

# pinned NAME: makes an environment with the package whose hash is in $work/requirements.
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
    check 'a wheel with another hash is rejected' refuses_another_wheel
else
    tap_skip 'a wheel with the known hash is installed' 'no ensurepip'
    tap_skip 'a wheel with another hash is rejected' 'no ensurepip'
fi
check 'only the newest versions are installed without hashes' test "$(cd "$here/../.." &&
    grep -l 'pip_install ' tests/*_env.sh contrib/bench/*_env.sh | tr '\n' ' ')" = \
    'tests/engines_env.sh tests/tensorflow_env.sh tests/torch_env.sh '
tap_done
