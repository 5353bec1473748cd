# SPDX-License-Identifier: Apache-2.0
# Creates the directory of a cluster: configuration of Slurm, accounts, device files, key.
# shellcheck shell=bash disable=SC2154 # settings come from `cluster`, which reads this file

as_user()
{
    setpriv --reuid "$uid" --regid "$gid" --clear-groups --inh-caps=-all "$@"
}

choose_user()
{
    if uid=$(id -u "$user" 2>/dev/null); then
        gid=$(id -g "$user")
        return
    fi
    uid=61000
    while getent passwd "$uid" >/dev/null || getent group "$uid" >/dev/null; do
        uid=$((uid + 1))
    done
    gid=$uid
}

# Copies /etc for the nodes, with the job user, the names of the nodes, and no name server.
write_etc()
{
    local name etc=$dir/machine-etc
    cp -a /etc "$etc"
    if ! id "$user" >/dev/null 2>&1; then
        echo "$user:x:$uid:$gid:job user:$dir/home:/bin/bash" >>"$etc/passwd"
        echo "$user:x:$gid:" >>"$etc/group"
    fi
    rm -f "$etc/hosts" "$etc/resolv.conf" # these may be links
    touch "$etc/resolv.conf"
    {
        echo '127.0.0.1 localhost'
        echo "$network.254 ctl"
        for name in $(node_names); do
            echo "$network.${name#n} $name"
        done
    } >"$etc/hosts"
}

write_slurm_conf()
{
    local name proctrack=linuxproc task=task/affinity gres='' divided=CR_Core room=''
    [ "$constrain" = no ] || { proctrack=cgroup task+=,task/cgroup; }
    [ "$gpus" = 0 ] || gres="Gres=gpu:$gpus"
    [ "$memory" = 0 ] || { divided=CR_Core_Memory room="RealMemory=$memory"; }
    cat <<EOF
ClusterName=hvd
SlurmctldHost=ctl($network.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
PlugStackConfig=$dir/etc/plugstack.conf
MpiDefault=none
ProctrackType=proctrack/$proctrack
TaskPlugin=$task
SelectType=select/cons_tres
SelectTypeParameters=$divided
GresTypes=gpu
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1
ReturnToService=2
MessageTimeout=20
KillWait=2
EOF
    for name in $(node_names); do
        echo "NodeName=$name NodeHostname=$name NodeAddr=$network.${name#n} Sockets=$sockets" \
            "CoresPerSocket=$cores ThreadsPerCore=1 $room $gres State=UNKNOWN"
    done
    echo 'PartitionName=all Nodes=ALL Default=YES State=UP'
    printf %s "$extra_conf"
}

# Spreads the GPUs over the sockets in order, as on a real node.
write_gres_conf()
{
    local gpu socket first
    for ((gpu = 0; gpu < gpus; gpu++)); do
        socket=$((gpu * sockets / gpus))
        first=$((socket * cores))
        echo "Name=gpu File=$dir/dev/gpu$gpu Cores=$first-$((first + cores - 1))"
        mknod -m 666 "$dir/dev/gpu$gpu" c 240 "$gpu" # a major number without a driver
    done
}

write_plugstack_conf()
{
    local plugin
    echo "include $dir/etc/plugstack.conf.d/*.conf"
    [ -z "$plugstack" ] || echo "include $plugstack/*.conf"
    [ -n "$prefix" ] || return 0
    plugin=$(find "$prefix" -name spank_hvd.so -print -quit)
    [ -n "$plugin" ] || die "no spank_hvd.so below $prefix: install hvd there first"
    as_user test -r "$plugin" || die "$user cannot read $plugin: install hvd where all users can read it"
    echo "optional $plugin"
}

# Slurm 23.11 and later need CgroupPlugin=disabled to start without cgroups; earlier ones do not know the word.
knows_no_cgroups()
{
    [[ $(slurmd -V) =~ \ ([0-9]+)\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}${BASH_REMATCH[2]}" -ge 2311 ]
}

write_cgroup_conf()
{
    if [ "$constrain" = no ] && knows_no_cgroups; then
        echo CgroupPlugin=disabled
    else
        echo CgroupPlugin=cgroup/v1
    fi
    [ "$constrain" = no ] || printf '%s=yes\n' ConstrainCores ConstrainDevices
    [ "$memory" = 0 ] || echo ConstrainRAMSpace=yes
}

# shellcheck disable=SC2034 # `up` asks made_directory whether there is anything to clean up
make_directory()
{
    local name
    umask 022
    made_directory=yes # set before mkdir, because a signal may arrive in between
    mkdir "$dir" || { made_directory=no && die "cannot create $dir"; }
    save_settings
    mkdir "$dir"/{run,run/cgroup,log,etc,etc/plugstack.conf.d,state,munge,dev,home}
    for name in $(node_names); do
        mkdir "$dir/spool-$name"
    done
    chown "$uid:$gid" "$dir/home"
    head -c 128 /dev/urandom >"$dir/munge/key"
    chmod 400 "$dir/munge/key"
    write_etc
    write_slurm_conf >"$dir/etc/slurm.conf"
    write_gres_conf >"$dir/etc/gres.conf"
    write_cgroup_conf >"$dir/etc/cgroup.conf"
    write_plugstack_conf >"$dir/etc/plugstack.conf"
    as_user test -x "$dir/home" || die "$user cannot enter $dir/home: a parent directory denies access"
}
