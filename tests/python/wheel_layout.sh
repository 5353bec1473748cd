#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wheel, packed from what meson installs of this build: its files and metadata, what pip does with it, and the
# warning about another horovod in the same environment. The wheel that meson builds for the purpose is tested by
# wheel_check.py.
# usage: wheel_layout.sh BUILD SOURCE_ROOT PYTHON
set -u
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
work=$(realpath "$work")
out=$work/out
backend=$(realpath "$2/contrib/python/wheel_backend.py")
python=$3
unset DESTDIR PYTHONPATH VIRTUAL_ENV HVD_LIBRARY
export PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 \
    SOURCE_DATE_EPOCH=1700000000
"$python" -c 'import wheel.wheelfile' 2>"$out" || tap_skip_all "$python has no wheel: apt-get install python3-wheel"
"$python" -m venv "$work/venv" >"$out" 2>&1 || tap_skip_all "$python -m venv fails: apt-get install python3-venv"
bin=$work/venv/bin
site=$(echo "$work"/venv/lib/python3*/site-packages)
meson install -C "$1" --no-rebuild --destdir "$work/root" >"$out" 2>&1 || { report 1 'meson installs'; tap_done; }

# pack FOLDER: packs the wheel.
pack()
{
    mkdir "$work/$1" && "$python" "$backend" "$work/root" "$work/$1" >"$out" 2>&1
}

# says STATUS TEXT COMMAND...: COMMAND exits with STATUS and prints TEXT.
says()
{
    status=$1 text=$2
    shift 2
    "$@" >"$out" 2>&1
    [ $? -eq "$status" ] && grep -qF -e "$text" "$out"
}

cd "$work" || exit 1
pack first && (umask 077 && pack second) && cmp first/*.whl second/*.whl >"$out" 2>&1
report $? 'two builds give the same bits'
"$bin/pip" install --quiet --no-deps first/*.whl >"$out" 2>&1
report $? 'pip installs the wheel'
"$bin/python" - "$site" >"$out" 2>&1 <<'PYTHON'
import base64, hashlib, importlib.metadata, os, sys
hvd = importlib.metadata.distribution('hvd')
for file in hvd.files:
    path = hvd.locate_file(file)
    assert os.path.exists(path), file
    if file.hash and 'bin' not in file.parts[:-1]:
        digest = hashlib.new(file.hash.mode, open(path, 'rb').read()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b'=').decode() == file.hash.value, file
horovod = importlib.metadata.distribution('horovod')
assert horovod.version == f'0.28.1+hvd.{hvd.version}', horovod.version
entries = importlib.metadata.entry_points()
groups = [entries[name] if isinstance(entries, dict) else entries.select(group=name)
          for name in ('torch.backends', 'torch.distributed.backends')]
assert [[entry.value for entry in group] for group in groups] == [['horovod.backend:register']] * 2, groups
PYTHON
report $? 'its list of files and its metadata are right'
"$bin/hvdrun" --version >"$out" 2>&1 && "$bin/horovodrun" --version >>"$out" 2>&1 &&
    "$bin/hvd-bench" --help >>"$out" 2>&1 && "$bin/hvd-info" --help >>"$out" 2>&1
report $? 'its commands are in bin'
# This build may be for another libdir.
HVD_LIBRARY=$site/horovod/_hvd/lib/libhvd.so "$bin/hvd-info" --check --node --seconds 1 >"$out" 2>&1
grep -q '^verdict: ' "$out" && ! grep thresholds "$out"
report $? 'hvd-info --check has its limits'
says 0 "horovod: $site/horovod, hvd's, installed by hvd 0.1.0: imported" "$bin/hvd-info" "--python=$bin/python"
report $? 'hvd-info --python names the distribution'
says 0 'already satisfied' "$bin/pip" install horovod==0.28.1
report $? 'it satisfies horovod==0.28.1'
says 1 'installed by hvd (pip uninstall hvd)' "$bin/pip" uninstall --yes horovod
report $? 'pip refuses to uninstall horovod alone, and says what to uninstall'
says 0 "True horovod.torch $site/horovod/__init__.py" "$bin/python" -c "import horovod, hvd, importlib.util as util
print(hvd is horovod, util.find_spec('hvd.torch').origin.split('/')[-3] + '.torch', horovod.__file__)"
report $? 'it has both names, horovod and hvd'

"$bin/python" -c 'import horovod' >"$out" 2>&1 && [ ! -s "$out" ]
report $? 'alone in its environment it imports without a word'
mkdir "$site/horovod_latin-1.0.dist-info"
printf 'r\351sum\351.py,,\n' >"$site/horovod_latin-1.0.dist-info/RECORD"
"$bin/python" -c 'import horovod' >"$out" 2>&1 && [ ! -s "$out" ]
report $? 'a list of files in another encoding does not make the import fail'
rm -r "$site/horovod_latin-1.0.dist-info"
# Another distribution, installed before hvd, so that hvd's files have overwritten its own.
mkdir "$site/horovod-0.28.1.dist-info" "$site/horovod_extras-1.0.dist-info"
printf 'Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n' >"$site/horovod-0.28.1.dist-info/METADATA"
printf 'horovod/__init__.py,,\nhorovod-0.28.1.dist-info/METADATA,,\nhorovod-0.28.1.dist-info/RECORD,,\n' \
    >"$site/horovod-0.28.1.dist-info/RECORD"
printf 'horovod_extras/__init__.py,,\n' >"$site/horovod_extras-1.0.dist-info/RECORD"
advice="$site/horovod: uninstall all, then install hvd again: $bin/python -m pip uninstall hvd horovod &&"
says 0 "hvd: horovod and hvd have installed their files into the same folder $advice" \
    "$bin/python" -c 'import horovod, hvd' && [ "$(wc -l <"$out")" -eq 1 ]
report $? 'with another horovod in the same folder, the import says once what to type'
HOROVOD_RANK=1 HOROVOD_SIZE=2 "$bin/python" -c 'import horovod' >"$out" 2>&1 && [ ! -s "$out" ]
report $? 'other ranks than 0 do not repeat it'
says 1 "pip uninstall hvd horovod" "$bin/hvd-info" "--python=$bin/python"
report $? 'hvd-info --python says the same'
# Another distribution, installed over hvd.
echo >"$site/horovod/__init__.py"
says 1 "ImportError: horovod and hvd have installed their files into the same folder $advice" \
    "$bin/python" -c 'import hvd'
report $? 'a horovod that has overwritten hvd makes the import of hvd fail with the same words'
"$bin/pip" uninstall --yes hvd horovod >"$out" 2>&1 && [ ! -e "$site/horovod" ] && [ ! -e "$site/hvd" ] &&
    ! ls -d "$site"/hvd-* "$site"/horovod-* "$bin"/h* >>"$out" 2>&1
report $? 'the command uninstalls both, and leaves nothing'
tap_done
