#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Man pages have no fault that mandoc finds, and say what their sources say.
# usage: man_test.sh SOURCE_ROOT PAGE...
root=$1
shift
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
[ $# -gt 0 ] || tap_skip_all 'the build found no scdoc'
command -v mandoc >/dev/null || tap_skip_all 'no mandoc: apt-get install mandoc'
tap_begin

for page in "$@"; do
    mandoc -Tlint -W warning "$page" >"$work/out" 2>&1
    report $? "mandoc finds nothing in $(basename "$page")"
done

# says PAGE TEXT PROMISE
says()
{
    for page in $pages; do
        [ "$(basename "$page")" != "$1" ] || mandoc -Tascii "$page" | col -bx | tr -s ' \n' ' ' >"$work/out"
    done
    grep -qF -- "$2" "$work/out"
    report $? "$3"
}

pages=$*
says hvdrun.1 '-np N, --num-proc N start N ranks' 'hvdrun(1) has the options of hvdrun --help'
says hvd-bench.1 'gloo[=PYTHON] Gloo through torch.distributed' 'hvd-bench(1) has words below an option'
says hvd.h.3 'int hvd_init(struct hvd_error *err); Joins the job of all ranks' 'hvd.h(3) has functions with their comments'
says hvd.7 'HVD_PORT_RANGE The TCP ports that hvd may listen on' 'hvd(7) has the variables of env.h'
case $pages in
*spank_hvd.8*)
    says spank_hvd.8 'spares=N elastic: N tasks wait' "spank_hvd(8) has the words of srun's help"
    says spank_hvd.8 'timeout=SECONDS how long PMIx waits' 'spank_hvd(8) has the words in plugstack.conf'
    ;;
esac
tap_done
