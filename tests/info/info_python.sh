#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hvd-info --python lists every package horovod that Python finds; --into-venv makes virtual environments find hvd's
# even if Python ignores PYTHONPATH, and --out-of-venv undoes it.
# usage: info_python.sh HVD_INFO SOURCE_ROOT PYTHON LIBHVD
# Without LIBHVD, the promise that needs torch is skipped.
set -u
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
work=$(realpath "$work")
out=$work/out
unset PYTHONPATH VIRTUAL_ENV PYTHONHOME
python=$3
program=$(realpath "$1")
library=${4:+$(realpath "$4")}
export PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1 HVD_LIBRARY="$library"
cd "$work" || exit 1

# Makes an installation. hvd-info finds the package horovod by the folder of its own program.
mkdir -p prefix/bin prefix/lib/hvd
cp "$program" prefix/bin/hvd-info
cp -r "$2/contrib/python" prefix/lib/hvd/python
info=$work/prefix/bin/hvd-info
own=$work/prefix/lib/hvd/python
venv=$work/venv
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' || tap_skip_all "$python is older than Python 3.8"
"$python" -m venv --without-pip "$venv" >"$out" 2>&1 ||
    tap_skip_all "$python -m venv fails: apt-get install python3-venv: $(tail -n 1 "$out")"
site=$(echo "$venv"/lib/python3*/site-packages)
if PATH=$venv/bin python -I -c 'import horovod' 2>/dev/null; then
    tap_skip_all 'this Python has a package horovod already'
fi

# says PROMISE STATUS LINE COMMAND...: COMMAND exits with STATUS and prints LINE.
says()
{
    promise=$1 status=$2 line=$3
    shift 3
    "$@" >"$out" 2>&1
    [ $? -eq "$status" ] && grep -qxF -e "$line" "$out"
    report $? "$promise"
}

# in_venv COMMAND...: runs COMMAND with the Python of the virtual environment in PATH.
in_venv()
{
    env PATH="$venv/bin:$PATH" "$@"
}

# install NAME VERSION PACKAGE: acts as pip, installs a distribution that has an empty package.
install()
{
    metadata=$site/$1-$2.dist-info
    mkdir -p "$site/$3" "$metadata"
    touch "$site/$3/__init__.py"
    printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$1" "$2" >"$metadata/METADATA"
    printf '%s/__init__.py,,\n%s-%s.dist-info/METADATA,,\n' "$3" "$1" "$2" >"$metadata/RECORD"
}

says 'without any horovod, it says how to get one' 1 \
    'hvd-info: Python finds no package horovod: start it with srun --hvd, or type "module load hvd" first; in a virtual environment: hvd-info --into-venv DIR' \
    in_venv "$info" --python
says 'a Python is chosen by --python=' 1 "python: $venv/bin/python3, $("$venv/bin/python" -c 'import platform; print(platform.python_version())')" \
    "$info" "--python=$venv/bin/python3"
says 'a Python that is not there is an error' 1 'hvd-info: cannot run /nonexistent: No such file or directory' \
    "$info" --python=/nonexistent
says 'a PATH without Python is an error' 1 \
    'hvd-info: there is neither python nor python3 in PATH: name one with --python=PYTHON' \
    env PATH=/nonexistent "$info" --python
says "on PYTHONPATH, hvd's package is imported" 0 "horovod: $own/horovod, hvd's: imported" \
    in_venv PYTHONPATH="$own" "$info" --python
says "so is its second name" 0 "hvd: $own/hvd, hvd's: imported" \
    in_venv PYTHONPATH="$own" "$info" --python
says "it also tells what python -I finds" 0 "without PYTHONPATH, as python -I: no horovod" \
    in_venv PYTHONPATH="$own" "$info" --python

says '--into-venv writes hvd.pth' 0 "$site/hvd.pth: leads to $own" "$info" --into-venv venv
says 'a second time changes nothing' 0 "$site/hvd.pth: already leads to $own" "$info" --into-venv "$venv"
for option in -I -E -s; do
    says "python $option then finds hvd's horovod" 0 "$own/horovod/__init__.py" \
        venv/bin/python "$option" -c 'import horovod; print(horovod.__file__)'
done
says "and hvd, its second name" 0 "0.28.1" venv/bin/python -I -c 'import hvd; print(hvd.__version__)'
says '--python lists it' 0 "without PYTHONPATH, as python -I: $own/horovod" in_venv "$info" --python
echo /nonexistent/old >"$site/hvd.pth"
says 'a file that leads to another hvd is replaced' 0 "$site/hvd.pth: leads to $own" "$info" --into-venv venv
says '--out-of-venv removes it' 0 "$site/hvd.pth: removed" "$info" --out-of-venv venv
says 'python -I then finds no horovod' 1 "ModuleNotFoundError: No module named 'horovod'" \
    venv/bin/python -I -c 'import horovod'
says 'a second removal is an error' 1 "hvd-info: there is no $site/hvd.pth: nothing to remove" \
    "$info" --out-of-venv venv
echo 'import something' >"$site/hvd.pth"
for option in --into-venv --out-of-venv; do
    says "$option leaves a file of somebody else alone" 1 \
        "hvd-info: $site/hvd.pth was not written by hvd-info: remove it or rename it" "$info" "$option" venv
done
rm "$site/hvd.pth"
mkdir plain
says 'a folder that is no virtual environment is an error' 2 \
    'hvd-info: --into-venv: plain is no virtual environment, it has no pyvenv.cfg: expected a folder that python -m venv made' \
    "$info" --into-venv plain
mkdir -p linked/bin
touch plain/pyvenv.cfg linked/pyvenv.cfg
printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >linked/bin/python
chmod +x linked/bin/python
"$info" --into-venv linked >"$out" 2>&1
[ $? -eq 1 ] && grep -q "^hvd-info: $work/linked has no packages of its own: its Python has them in /" "$out"
report $? "so is one whose Python is not its own"
says 'so is one without a Python' 1 "hvd-info: cannot run $work/plain/bin/python: No such file or directory" \
    "$info" --into-venv plain
if [ "$(id -u)" -ne 0 ]; then
    chmod a-w "$site"
    "$info" --into-venv venv >"$out" 2>&1
    status=$?
    chmod u+w "$site"
elif command -v setpriv >"$out" && chmod a+rx "$work" &&
    setpriv --reuid 65534 --clear-groups venv/bin/python -c '' 2>>"$out"; then
    setpriv --reuid 65534 --clear-groups "$info" --into-venv venv >"$out" 2>&1
    status=$?
else
    status=skip
fi
if [ $status = skip ]; then
    tap_skip 'an environment that is not writable is an error' 'no setpriv of util-linux, or no Python for others'
else
    [ $status -eq 1 ] && grep -q "^hvd-info: cannot write $site/hvd.pth.*: Permission denied$" "$out"
    report $? 'an environment that is not writable is an error'
fi

install horovod 0.28.1 horovod
says "the horovod of PyPI is listed with its distribution" 1 \
    "horovod: $site/horovod, not hvd's, installed by horovod 0.28.1: imported" in_venv "$info" --python
says 'it says how to import hvd instead' 1 \
    "hvd-info: Python imports $site/horovod, which is not hvd's: start it with srun --hvd, or type \"module load hvd\" first; or uninstall it: $venv/bin/python -m pip uninstall horovod" \
    in_venv "$info" --python
says "hvd's on PYTHONPATH hides it" 0 \
    "horovod: $site/horovod, not hvd's, installed by horovod 0.28.1: hidden" \
    in_venv PYTHONPATH="$own" "$info" --python
says '--into-venv refuses it, because site-packages comes before a .pth file' 1 \
    "hvd-info: $venv has $site/horovod, not hvd's, installed by horovod 0.28.1, which Python imports before any folder of a .pth file: first $venv/bin/python -m pip uninstall horovod" \
    "$info" --into-venv venv
[ ! -e "$site/hvd.pth" ]
report $? 'then it leaves no file behind'
install habana-horovod 1.0 horovod
says 'two distributions in one folder are an error' 1 \
    "hvd-info: habana-horovod 1.0 and horovod 0.28.1 have written the same files in $site/horovod: uninstall all of them, then install the one that you want: $venv/bin/python -m pip uninstall habana-horovod horovod" \
    in_venv "$info" --python
rm -r "$site/horovod" "$site"/*horovod-*.dist-info
mkdir -p mine/horovod
touch mine/horovod/__init__.py
says "a horovod before hvd's on PYTHONPATH is an error" 1 \
    "hvd-info: Python imports $work/mine/horovod, which is not hvd's: remove $work/mine from PYTHONPATH" \
    in_venv PYTHONPATH="$work/mine:$own" "$info" --python
cd mine || exit 1
says 'so is one in the current directory' 1 \
    "hvd-info: Python imports $work/mine/horovod, which is not hvd's: start Python in another folder" \
    in_venv PYTHONPATH="$own" "$info" --python
cd "$work" || exit 1
mkdir -p other/hvd
touch other/hvd/__init__.py
says 'another package hvd is only noted' 0 \
    "note: only \"import horovod\" imports hvd here. Python imports $work/other/hvd, which is not hvd's: remove $work/other from PYTHONPATH" \
    in_venv PYTHONPATH="$work/other:$own" "$info" --python
mkdir -p empty/horovod
says 'a folder without __init__.py is no package' 0 "horovod: $own/horovod, hvd's: imported" \
    in_venv PYTHONPATH="$work/empty:$own" "$info" --python

if [ -n "$library" ] && "$python" -c 'import torch' 2>"$out"; then
    "$python" -m venv --without-pip --system-site-packages with_torch && "$info" --into-venv with_torch >"$out" 2>&1
    says 'python -I trains with the torch of the system and the front end of hvd' 0 '1 horovod.torch' \
        with_torch/bin/python -I -c 'import hvd.torch as hvd; hvd.init(); print(hvd.size(), hvd.__name__)'
else
    tap_skip 'python -I trains with the torch of the system and the front end of hvd' "no LIBHVD, or $python has no torch"
fi
mkdir "$own/horovod/_hvd"
says "hvd's wheel does not lead other environments into its own" 1 \
    "hvd-info: this hvd was installed by pip into $own, a folder of other packages: install hvd into $venv by pip, too" \
    "$info" --into-venv venv
rmdir "$own/horovod/_hvd"
rm "$own/horovod/runner/neighbours.py"
says 'without the package, it says what is missing' 1 \
    "hvd-info: cannot find hvd's Python package at $work/prefix/bin/../lib/hvd/python/horovod/runner/neighbours.py: install all of hvd" \
    "$info" --python
tap_done
