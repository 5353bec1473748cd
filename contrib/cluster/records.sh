# SPDX-License-Identifier: Apache-2.0
# What the directory of a cluster records for later commands: settings and processes.
# shellcheck shell=bash disable=SC2154 # settings come from `cluster`, which reads this file

save_settings()
{
    printf '%s=%q\n' nodes "$nodes" user "$user" uid "$uid" gid "$gid" prefix "$prefix" \
        constrain "$constrain" >"$dir/settings"
}

# Fails if `up` did not make the directory.
load_settings()
{
    [ -O "$dir/settings" ] || return 1
    # shellcheck source=/dev/null
    . "$dir/settings"
}

node_names()
{
    seq -f 'n%.0f' "$nodes"
}

cgroup_name()
{
    printf 'hvd-%s-%s' "$(printf %s "$dir" | cksum | cut -d ' ' -f 1)" "$1"
}

# Processes are identified by id and start time, because ids are used again.

# State and start time of a process; fails when there is none.
process_stamp()
{
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    # shellcheck disable=SC2086 # the fields after the name, which may contain blanks
    set -- ${stat##*) }
    echo "$1 ${20}"
}

record_process()
{
    local pid=$1 stamp
    stamp=$(process_stamp "$pid")
    echo "$pid ${stamp#* }" >"$2"
}

# The id of a recorded process that still runs; a zombie does not.
living_process()
{
    local pid started stamp
    read -r pid started 2>/dev/null <"$1" || return 1
    stamp=$(process_stamp "$pid") || return 1
    [ "${stamp#* }" = "$started" ] && [ "${stamp% *}" != Z ] || return 1
    echo "$pid"
}
