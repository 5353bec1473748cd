#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of README and observe.md anew: trains on a throw-away Slurm cluster of this machine, and draws
# what srun printed and recorded. Needs root, what contrib/demo.sh needs, Debian's chromium, and a Python with rich,
# viztracer, playwright and pillow.
#
# usage: pictures.sh PREFIX PYTHON
#   PREFIX  where hvd is installed
#   PYTHON  the Python with these packages
set -euo pipefail

if [ $# -ne 2 ]; then
    sed -n '3,9s/^# \?//p' "$0" >&2
    exit 2
fi
prefix=$1 python=$2
docs=$(readlink -f "$(dirname "$0")")
cluster=$docs/../cluster/cluster
place=$(mktemp -d /var/tmp/hvd-pictures.XXXXXX)
chmod 755 "$place"

clean_up()
{
    "$cluster" down --dir "$place/cluster" >/dev/null || :
    rm -rf "$place"
}
trap clean_up EXIT

# run COMMAND: runs it as the job user. The output goes to the file "output".
run()
{
    if ! "$cluster" run --dir "$place/cluster" bash -c "$1" >"$place/output" 2>&1; then
        cat "$place/output" >&2
        exit 1
    fi
}

# draw PICTURE COLUMNS COMMAND: draws the command and its output as a terminal.
draw()
{
    run "$3"
    "$python" "$docs/terminal_svg.py" "$3" "$2" <"$place/output" >"$docs/$1"
}

# Writes train.py again, as slow_disk.py: rank 3 waits 30 ms for each batch of images. Reading the batches is a section.
write_slow_disk()
{
    cat >"$1" <<'EOF'
import os, runpy, time
import horovod.torch as hvd
from torch.utils.data import DataLoader

load = DataLoader.__iter__

def load_slowly(loader):
    batches = load(loader)
    while True:
        with hvd.section('data'):
            batch = next(batches, None)
            if os.environ['HOROVOD_RANK'] == '3':
                time.sleep(0.03)
        if batch is None:
            return
        yield batch

DataLoader.__iter__ = load_slowly
runpy.run_path('train.py', run_name='__main__')
EOF
}

"$cluster" up 2 --dir "$place/cluster" --sockets 2 --cores 1 --gpus 0 --prefix "$prefix"
home=$place/cluster/home
cp "$docs/../examples/digits/train.py" "$home"
write_slow_disk "$home/slow_disk.py"
draw train.svg 90 'srun --hvd -N2 -n4 python3 train.py'
draw report.svg 100 'srun --hvd=report -N2 -n4 python3 slow_disk.py'
run 'srun --hvd=report=report.html -N2 -n4 python3 slow_disk.py'
"$python" "$docs/page_png.py" "$home/report.html" "$docs/page.png"
run 'srun --hvd=timeline=trace.json -N2 -n2 python3 train.py --epochs 2 --batch-size 64'
"$python" "$docs/timeline_png.py" "$home/trace.json" "$docs/timeline.png"
