# SPDX-License-Identifier: Apache-2.0
# Shell functions for the tests of the plugin. A test sources this file after harness.sh.
# shellcheck shell=bash disable=SC2154,SC2120 # prefix, work, home come from harness.sh

# enable_plugin WORD...: enables the plugin as an admin would, with these words in plugstack.conf. Slurm reads the
# file anew for each step, so tests may call this again.
enable_plugin()
{
    local installed plugin
    installed=$(find "$prefix" -path '*plugstack.conf.d/hvd.conf' -print -quit)
    plugin=$(find "$prefix" -name spank_hvd.so -print -quit)
    sed "s|^optional .*|optional $plugin $*|" "$installed" \
        >"$work/cluster/etc/plugstack.conf.d/hvd.conf"
}

disable_plugin()
{
    rm -f "$work/cluster/etc/plugstack.conf.d/hvd.conf"
}

# batch OPTIONS SCRIPT [VAR=VALUE...]: submits SCRIPT with OPTIONS as #SBATCH line, waits, shows its output and
# returns its status. (sbatch --wait would poll only every few seconds.)
batch()
{
    printf '#!/bin/bash\n#SBATCH %s\ntrap "echo \\$? >status" EXIT\n%s\n' "$1" "$2" \
        >"$home/batch.sh"
    chmod a+r "$home/batch.sh"
    # shellcheck disable=SC2016 # expands inside
    as_user "${@:3}" sh -c 'rm -f out status && mkfifo status && sbatch --quiet -o out batch.sh || exit
        read -r status <status && cat out && exit "$status"'
}

# in_line COMMAND...: prints the sorted output lines of a command as one line.
in_line()
{
    "$@" | sort | paste -sd ' '
}

# install_torchrun: puts torchrun into $home/bin. Debian 12's fails in Python 3.11, where Std.from_str finds no member
# for 0.
install_torchrun()
{
    cat >"$home/bin/torchrun" <<'PY'
#!/usr/bin/python3
from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.run import main
if Std.from_str('0') is None:
    Std.from_str = classmethod(lambda cls, text: cls.NONE)
main()
PY
    chmod -R a+rX "$home/bin" && chmod a+x "$home/bin/torchrun"
}
