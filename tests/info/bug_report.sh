#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hvd-info --bug-report writes one text that has what a reader needs, and no secret, whatever hangs or fails.
# usage: bug_report.sh HVD_INFO LIBHVD SOURCE_ROOT
set -u
program=$(realpath "$1")
export HVD_LIBRARY
HVD_LIBRARY=$(realpath "$2")
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
cd "$work" || exit 1
out=$work/out
# Makes an installation. hvd-info finds the package horovod by the folder of its own program.
mkdir -p prefix/bin prefix/lib/hvd
cp "$program" prefix/bin/hvd-info
cp -r "$3/contrib/python" prefix/lib/hvd/python
info=$work/prefix/bin/hvd-info
for name in $(env | sed -n 's/^\(SLURM_[A-Za-z_]*\|SLURMD_[A-Z_]*\|PMIX_[A-Z_]*\|HOROVOD_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done

# make NAME: makes a program of the text on standard input
make()
{
    mkdir -p bin
    { echo '#!/bin/sh' && cat; } >"bin/$1"
    chmod +x "bin/$1"
}

# says PROMISE PATTERN: the report has a line like PATTERN
says()
{
    grep -q -e "$2" hvd-bug-report.txt
    report $? "$1"
}

# Every secret begins with this text, and every program prints its variables.
secret=5ecre7-0123456789
make srun <<X
[ "\$1" != --version ] || echo slurm 22.05.8
env
X
make scontrol <<X
env
[ "\$1 \$2" != 'show config' ] || printf 'SLURM_VERSION           = 22.05.8\nAuthInfo                = $secret\n'
[ "\$1 \$2" != 'show job' ] || echo 'JobId=7 JobName=$secret NumNodes=2 Comment=$secret Command=/bin/$secret'
X
make nvidia-smi <<X
env
echo 'index, name'
X
python=$(command -v python3)
make python <<X
env >&2
exec $python "\$@"
X
PATH=$work/bin:$PATH
# The value of HVD_RENDEZVOUS is malformed, so that libhvd complains about it.
HOME=$work/home USER=ann LOGNAME=ann HVD_SECRET=$secret-a HVD_RENDEZVOUS=127.0.0.1:$secret-b SLURM_HVD_KEY=$secret-c \
    HVD_RUN_KEY=$secret-d HVD_NEW=$secret-e HOROVOD_SECRET=$secret-f HOROVOD_RANK=0 HOROVOD_SIZE=2 HOROVOD_CYCLE_TIME=2 NCCL_TOKEN=$secret-g \
    NCCL_DEBUG=WARN UCX_TLS=tcp UCX_PASSWORD=$secret-h SLURM_JOB_ID=7 SLURM_JWT=$secret-i AWS_SECRET_ACCESS_KEY=$secret-j \
    GITHUB_TOKEN=$secret-k PYTHONPATH=$work/home/lib:/home/ann/lib "$info" --bug-report >"$out" 2>&1
report $? 'a report is written although the check fails'
[ "$(cat "$out")" = 'hvd-info: wrote hvd-bug-report.txt: read it, and attach it to your report' ]
report $? 'it says which file it has written'
cp hvd-bug-report.txt "$out"
[ "$(stat -c %a hvd-bug-report.txt)" = 600 ]
report $? 'nobody else can read the file'
! grep -q 5ecre7 hvd-bug-report.txt
report $? 'no secret of the environment is in it'
for name in HVD_SECRET HVD_RENDEZVOUS SLURM_HVD_KEY HVD_RUN_KEY HVD_NEW HOROVOD_SECRET NCCL_TOKEN UCX_PASSWORD SLURM_JWT; do
    says "$name is named without its value" "^$name: set, value left out\$"
done
! grep -q 'AWS\|GITHUB' hvd-bug-report.txt
report $? 'variables of others are not even named'
says 'settings of hvd have their value' '^HOROVOD_CYCLE_TIME=2$'
says 'settings of NCCL have their value' '^NCCL_DEBUG=WARN$'
says 'settings of UCX have their value' '^UCX_TLS=tcp$'
says 'home directory and user have other names' '^PYTHONPATH=~/lib:/home/USER/lib$'
says 'it names the version of hvd' "^hvd: $("$info" --version | cut -d ' ' -f 2)\$"
says 'it names the compiler and the libraries' '^built with: .*hwloc [0-9]'
says 'it names the kernel' "^kernel: Linux $(uname -r)"
says 'it shows limits' '^memlock, bytes: [0-9u]'
says 'it shows the room for shared memory' '^/dev/shm: [0-9]* bytes'
says 'it shows the check' '^start: impossible\|: start: '
says 'it shows the binding' '^local rank gpu pci'
says 'it shows the version of srun' '^srun: 22.05.8$'
says 'it shows the configuration of Slurm' '^SLURM_VERSION  *= 22.05.8$'
says 'it shows the job' '^NumNodes=2$'
says 'it shows Python' '^python: /'

# Parts that hang, crash or are missing.
make scontrol <<X
echo begins; sleep 300 & sleep 300
X
make nvidia-smi <<X
kill -SEGV \$\$
X
rm bin/srun
PATH=$work/bin:/usr/bin:/bin
# hides an srun of this machine
! command -v srun >/dev/null || make srun <<X
exit 127
X
start=$(date +%s)
"$info" --bug-report=other.txt >"$out" 2>&1
report $? 'parts that hang or crash do not fail the report'
[ $(($(date +%s) - start)) -lt 60 ]
report $? 'a part that hangs is ended'
grep -qx 'hvd-info: wrote other.txt, without GPUs: nvidia-smi, plugin: hvd-info --slurm, Slurm: scontrol show config: read it, and attach it to your report' "$out"
report $? 'it says which parts are left out'
mv other.txt hvd-bug-report.txt
says 'the report names the part that hung' '^(left out: it took longer than 5 s)$'
says 'the report names the part that crashed' '^(left out: it crashed)$'
says 'the report names a missing program' '^(left out: there is no srun in PATH)$'

make scontrol <<X
[ "\$1 \$2" != 'show config' ] || printf 'SLURM_VERSION           = 22.05.8\nAuthInfo                = $secret\n'
[ "\$1 \$2" != 'show job' ] || printf 'slurm_load_jobs error: it failed\nJobId=7 Comment=$secret\n'
exit 1
X
cp hvd-bug-report.txt first
SLURM_JOB_ID=7 "$info" --bug-report >"$out" 2>&1
cmp -s first hvd-bug-report.txt
report $? 'a second report leaves the first as it is'
grep -q '^hvd-info: wrote hvd-bug-report-2.txt' "$out"
report $? 'it says that it has another name'
mv hvd-bug-report-2.txt hvd-bug-report.txt
! grep -q 5ecre7 hvd-bug-report.txt
report $? 'no secret of the configuration or the job is in it when scontrol fails'
says 'the error of scontrol is in it' '^slurm_load_jobs error: it failed$'
SLURM_JOB_NAME=hvd-info "$info" --bug-report=- >"$out" 2>&1
! grep -q 'value of SLURM_JOB_NAME' "$out" && grep -q 'hvd-info --bug-report' "$out"
report $? 'the name of hvd-info stays in the report of a job that has this name'
echo precious >file
ln -s file hvd-bug-report.new
"$info" --bug-report=hvd-bug-report.new >"$out" 2>&1 && [ "$(cat file)" = precious ] && [ ! -L hvd-bug-report.new ]
report $? 'a link in the way is not followed'
"$info" --bug-report=- >"$out" 2>&1 && head -n 1 "$out" | grep -qx 'hvd bug report, made by hvd-info --bug-report'
report $? 'a dash means standard output'
"$info" --bug-report=/nonexistent/file >"$out" 2>&1
[ $? -eq 1 ] && grep -q '^hvd-info: cannot write /nonexistent/file: No such file or directory; choose another' "$out"
report $? 'a file that cannot be written is an error'
SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 "$info" --bug-report=of-rank-1 >"$out" 2>&1 && [ ! -e of-rank-1 ] && [ ! -s "$out" ]
report $? 'in a task of a job, rank 0 alone writes the report'
tap_done
