#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hvd-info --slurm says what is wrong after an upgrade of Slurm, with programs that act as srun and scontrol.
# usage: slurm.sh HVD_INFO PLUGIN_FOR_22.05 PLUGIN_FOR_23.11
set -u
info=$(realpath "$1") plugin=$(realpath "$2") newer=$(realpath "$3")
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
cd "$work" || exit 1
work=$PWD
out=$work/out
mkdir bin etc etc/conf.d lib
PATH=$work/bin:$PATH
unset SLURM_CONF

# A fake reads its output from a file, and fails if there is none.
for name in srun scontrol; do
    cat >"bin/$name" <<X
#!/bin/sh
case "$name \$*" in
'srun --version') file=srun ;;
'scontrol --version') file=version ;;
'scontrol show config') file=config ;;
'scontrol --oneliner show nodes') file=nodes ;;
esac
cat "$work/answers/\$file" 2>/dev/null && exit
cat "$work/answers/error" >&2
exit 1
X
    chmod +x "bin/$name"
done

# begin: a cluster in which all is well
begin()
{
    rm -rf answers etc lib
    mkdir answers etc etc/conf.d lib
    echo 'slurm-wlm 22.05.8' | tee answers/srun >answers/version
    touch etc/slurm.conf answers/error
    cat >answers/config <<X
Configuration data as of 2026-01-01T00:00:00
PlugStackConfig         = $work/etc/plugstack.conf
PluginDir               = $work/none:$work/lib
SLURM_CONF              = $work/etc/slurm.conf
SLURM_VERSION           = 22.05.8
X
    for node in n1 n2 n3; do
        echo "NodeName=$node Arch=x86_64 CPUTot=2 Version=22.05.8 OS=Linux"
    done >answers/nodes
    cp "$plugin" lib/spank_hvd.so
    cp "$plugin" lib/other.so
    cp "$newer" lib/newer.so
    echo "include conf.d/*.conf" >etc/plugstack.conf
    printf '# a comment\n\noptional %s/lib/spank_hvd.so default=on # another\n' "$work" >etc/conf.d/hvd.conf
}

# says PROMISE STATUS TEXT...: hvd-info exits with STATUS and prints each TEXT within a line
says()
{
    promise=$1 status=$2
    shift 2
    "$info" --slurm >"$out" 2>&1
    [ $? -eq "$status" ] || status=no
    for text; do
        grep -qF -e "$text" "$out" || status=no
    done
    [ "$status" != no ]
    report $? "$promise"
}

begin
says 'a cluster in which all is well is good' 0 'verdict: good' 'srun: 22.05.8' 'slurmctld: 22.05.8' \
    'slurmd: 22.05.8 on n[1-3]' "$work/etc/conf.d/hvd.conf:3: optional $work/lib/spank_hvd.so: for Slurm 22.05"
! grep -q '^wrong\|^unknown\|^note' "$out"
report $? 'and nothing else is said about it'
echo 'slurm 22.05.11' >answers/srun
says 'the third number of a version does not matter' 0 'verdict: good'

begin
cp "$newer" lib/spank_hvd.so
says 'an optional plugin for another release is wrong' 1 "wrong: $work/etc/conf.d/hvd.conf:3: " \
    'is for Slurm 23.11, but srun is 22.05.8, so srun has no --hvd: build hvd against the new release' 'verdict: wrong'
sed -i s/optional/required/ etc/conf.d/hvd.conf
says 'a required one stops Slurm' 1 'every srun, sbatch and salloc fails, and slurmd does not start'
rm answers/srun
echo 'srun: error: spank: Failed to load plugin' >answers/error
says 'and is found when srun does not start any more' 1 'wrong: srun does not start: srun: error: spank: Failed' \
    'srun: 22.05.8' 'is for Slurm 23.11, but srun is 22.05.8'

begin
echo "required $work/lib/newer.so" >>etc/plugstack.conf
says 'the plugin of another project is checked, too' 1 "wrong: $work/etc/plugstack.conf:2: $work/lib/newer.so is for Slurm 23.11" \
    'install the plugin for this release, or take the line out'
echo "optional other.so" >etc/conf.d/other.conf
rm etc/plugstack.conf
echo "include $work/etc/conf.d/*.conf" >etc/plugstack.conf
says 'a plugin without a path is in PluginDir' 0 "other.conf:1: optional $work/lib/other.so: for Slurm 22.05"

begin
rm lib/spank_hvd.so
says 'a plugin that is missing is wrong' 1 "cannot read $work/lib/spank_hvd.so: No such file" 'install hvd again'
echo 'no plugin' >lib/spank_hvd.so
says 'a file that is no plugin is wrong' 1 'is not a plugin of Slurm for this kind of machine'
: >lib/spank_hvd.so
says 'an empty file is wrong' 1 'is not a plugin of Slurm'
for bytes in 70 2000 9000; do
    head -c "$bytes" "$plugin" >lib/spank_hvd.so
    says "a plugin of which $bytes bytes have been copied is wrong" 1 'is not a plugin of Slurm'
done

begin
rm etc/conf.d/hvd.conf
says 'an include without files is named, and hvd is missed' 1 "plugstack.conf:1: include $work/etc/conf.d/*.conf: no such file" \
    'wrong: no line loads spank_hvd.so, so srun has no --hvd: add the line `include /'
rm etc/plugstack.conf
says 'plugstack.conf may be missing' 1 "plugstack.conf: $work/etc/plugstack.conf, which does not exist" 'no line loads'
begin
echo "optional $work/lib/spank_hvd.so" >>etc/plugstack.conf
says 'two lines for hvd are wrong' 1 "wrong: $work/etc/plugstack.conf:2 loads hvd's plugin again, after $work/etc/conf.d/hvd.conf:3"
begin
sed -i 's/default=on/defalt=on fix=bind=cores forbid=elastic,net timeout=0 mpi=keep/' etc/conf.d/hvd.conf
says 'each wrong word of hvd is wrong' 1 \
    "wrong: $work/etc/conf.d/hvd.conf:3: plugstack.conf: unknown word \"defalt=on\"; valid words: default=on|off, " \
    "wrong: $work/etc/conf.d/hvd.conf:3: plugstack.conf: forbid=elastic,net: --hvd has no word \"net\"" \
    "wrong: $work/etc/conf.d/hvd.conf:3: plugstack.conf: timeout=" 'verdict: wrong'
[ "$(grep -c '^wrong' "$out")" = 3 ]
report $? 'and the right ones are not'
echo "optional $work/lib/other.so defalt=on" >>etc/plugstack.conf
sed -i 's/\(spank_hvd.so\).*/\1 default=on  forbid=report,bind # defalt=on/' etc/conf.d/hvd.conf
says 'words of other plugins and comments are not checked' 0 'verdict: good'
begin
echo "load $work/lib/other.so" >>etc/plugstack.conf
says 'a line that Slurm ignores is wrong' 1 "wrong: $work/etc/plugstack.conf:2: Slurm ignores this line, which begins with 'load'"
begin
echo "include plugstack.conf" >>etc/plugstack.conf
says 'files that include each other are an error, not a hang' 1 'files include each other'

begin
sed -i '/n[23]/s/22.05.8/23.11.1/' answers/nodes
says 'a newer slurmd is wrong, with its nodes' 1 'slurmd: 22.05.8 on n1' 'slurmd: 23.11.1 on n[2-3]' \
    'wrong: slurmd on n[2-3] is 23.11.1, but slurmctld is 22.05.8' \
    "hvd.conf:3 is for Slurm 22.05, but slurmd on n[2-3] is 23.11.1, so ranks start there without hvd"
sed -i '/SLURM_VERSION/s/22.05.8/23.11.1/' answers/config
says 'slurmctld may be newer than slurmd' 1 'slurmctld: 23.11.1' 'but slurmd on n[2-3] is 23.11.1'
! grep -q 'but slurmctld is' "$out"
report $? 'that is not called a fault'
begin
echo 'slurm 23.11.1' >answers/srun
cp "$newer" lib/spank_hvd.so
says 'an srun that is newer than slurmctld is wrong' 1 'wrong: srun is 23.11.1, but slurmctld is 22.05.8'
begin
sed -i '/n3/s/Version=[^ ]* //' answers/nodes
says 'a node that is down is named' 0 'note: slurmctld does not know the slurmd on n3, which is down' 'verdict: good'
begin
awk 'BEGIN { for (i = 1; i <= 3000; i++)
    printf "NodeName=n%d Version=%s OS=%0700d\n", i, i == 3000 ? "23.11.1" : "22.05.8", 0 }' </dev/null >answers/nodes
says 'the last node of a large cluster is checked, too' 1 'slurmd: 22.05.8 on n[1-2999]' 'slurmd: 23.11.1 on n3000'

begin
rm answers/config answers/nodes
echo 'Unable to contact slurm controller' >answers/error
says 'without slurmctld it cannot tell' 2 'unknown: slurmctld: scontrol show config: Unable to contact slurm controller' \
    'verdict: unknown'
SLURM_CONF=$work/etc/slurm.conf
export SLURM_CONF
says 'but finds plugstack.conf beside SLURM_CONF' 2 'spank_hvd.so: for Slurm 22.05'
cp "$newer" lib/spank_hvd.so
says 'and a fault of it' 1 'is for Slurm 23.11, but srun is 22.05.8'
unset SLURM_CONF
PATH=$work/none "$info" --slurm >"$out" 2>&1
[ $? -eq 2 ] && [ "$(cat "$out")" = 'verdict: unknown, there is no Slurm here: neither srun nor scontrol is in PATH' ]
report $? 'without Slurm it says so'
tap_done
