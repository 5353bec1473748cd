# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Runs after a deb or rpm has installed the plugin: tells the admin what to add to plugstack.conf, which the package
# never edits.
if ! grep -qsE '^[[:space:]]*include[[:space:]].*plugstack\.conf\.d' /etc/slurm/plugstack.conf; then
    cat <<'TEXT'
hvd-slurm-plugin: srun --hvd works once plugstack.conf has this line:

    include /etc/slurm/plugstack.conf.d/*.conf

* If each node has its own slurm.conf: add the line to /etc/slurm/plugstack.conf there, or create that file.
* If slurmctld sends it to them (configless): add the line to plugstack.conf beside slurm.conf on the machine of
  slurmctld, and run `scontrol reconfigure`. Install this package on each node, because slurmctld does not send the
  files that plugstack.conf includes.

Then check it: srun --hvd -N 2 -n 2 hvd-info --check
TEXT
fi
