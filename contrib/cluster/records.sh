# SPDX-License-Identifier: Apache-2.0
# Records in the directory of a cluster for later commands: settings and processes.
# shellcheck shell=bash disable=SC2154 # settings come from `cluster`, which reads this file

save_settings()
{
    printf '%s=%s\n' nodes "$nodes" user "$user" uid "$uid" gid "$gid" prefix "$prefix" \
        constrain "$constrain" >"$dir/settings"
}

# owner_and_mode PATH: sets owner and mode; fails if PATH is a link or belongs to neither this user nor root.
owner_and_mode()
{
    local found
    found=$([ -L "$1" ] || stat -c '%u %a' -- "$1" 2>/dev/null)
    owner=${found% *} mode=${found#* }
    [ "$owner" = 0 ] || [ "$owner" = "$(id -u)" ]
}

# is_safe_place PATH: only this user and root can rename or remove this user's files in PATH. PATH and all directories
# above it must belong to one of them, and must be sticky if others may write to them.
is_safe_place()
{
    local path=$1 owner mode
    while owner_and_mode "$path"; do
        ! ((8#$mode & 022)) || ((8#$mode & 01000)) || return 1
        [ "$path" != / ] || return 0
        path=$(dirname -- "$path")
    done
    return 1
}

# is_trusted PATH: only this user and root can change or replace the file or directory.
is_trusted()
{
    local owner mode
    owner_and_mode "$1" && ! ((8#$mode & 022)) && is_safe_place "$(dirname -- "$1")"
}

# set_setting NAME VALUE: fails for a setting that save_settings does not write.
set_setting()
{
    case $1 in
    nodes | uid | gid) [[ $2 =~ ^[0-9]{1,10}$ ]] ;;
    user) [[ $2 =~ ^[A-Za-z0-9._-]{1,64}$ ]] ;;
    constrain) [[ $2 =~ ^(yes|no)$ ]] ;;
    prefix) [[ -z $2 || $2 = /* ]] ;;
    *) return 1 ;;
    esac && printf -v "$1" %s "$2"
}

# Reads the settings, without running the file. Fails if `up` did not make the directory, or another user may have
# changed it.
load_settings()
{
    local name value
    is_trusted "$dir" && [ -f "$dir/settings" ] && is_trusted "$dir/settings" || return 1
    while IFS='=' read -r name value; do
        set_setting "$name" "$value" || return 1
    done <"$dir/settings"
}

node_names()
{
    seq -f 'n%.0f' "$nodes"
}

cgroup_name()
{
    printf 'hvd-%s-%s' "$(printf %s "$dir" | cksum | cut -d ' ' -f 1)" "$1"
}

# Processes are identified by id and start time, because the kernel reuses ids.

# process_stamp PID: prints the state and start time of a process; fails if there is none.
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

# living_process FILE: prints the id of a recorded process; fails if it has ended, even as a zombie.
living_process()
{
    local pid started stamp
    read -r pid started 2>/dev/null <"$1" || return 1
    stamp=$(process_stamp "$pid") || return 1
    [ "${stamp#* }" = "$started" ] && [ "${stamp% *}" != Z ] || return 1
    echo "$pid"
}
