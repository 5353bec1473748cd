#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job listens only on the ports that it was given, as a firewall may require, and only on the networks of
# HVD_IFACE.
# shellcheck disable=SC2016,SC2154 # variables of jobs expand in the jobs; harness.sh sets others
. "$(dirname "$0")/harness.sh"

# Prints the addresses at which the job user listens on a node, one "ADDRESS PORT" a line, without those of
# Slurm's PMIx.
listening()
{
    as_root --node "$1" /usr/bin/python3 -c '
import socket, struct, sys
for name in "tcp", "tcp6":
    for line in list(open(f"/proc/net/{name}"))[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[7] == sys.argv[1]:
            host, port = fields[1].split(":")
            data = struct.pack(f"={len(host) // 8}I", *(int(host[i:i + 8], 16) for i in range(0, len(host), 8)))
            family = socket.AF_INET if len(data) == 4 else socket.AF_INET6
            print(socket.inet_ntop(family, data), int(port, 16))' "$uid" | sort -u
}

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix" --conf SrunPortRange=61000-61099
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
cp "$MESON_BUILD_ROOT/tests/cluster/steady" "$home/"
chmod a+rx "$home/steady"
uid=$(as_user id -u)

service='echo $HVD_RENDEZVOUS | cut -d : -f 2'
prints "hvd's service takes a port of SrunPortRange" '^610[0-9][0-9]$' \
    as_user srun --hvd -N2 -n2 sh -c "$service | uniq"
prints "hvd's service takes a port of HVD_PORT_RANGE first" '^6200[0-9]$' \
    as_user HVD_PORT_RANGE=62000-62009 srun --hvd -N2 -n2 sh -c "$service | uniq"
prints 'MASTER_PORT is a port of HVD_PORT_RANGE' '^6200[0-9]$' \
    as_user HVD_PORT_RANGE=62000-62009 srun --hvd -N1 -n1 sh -c 'echo $MASTER_PORT'
complains 'a value that is not a range is rejected' "HVD_PORT_RANGE is 'many', but must be two TCP ports" \
    as_user HVD_PORT_RANGE=many srun --mpi=none --hvd -N2 -n2 true

begin_job as_user HVD_TEST_CANARY=x LD_LIBRARY_PATH="$library" HVD_NET=tcp HVD_PORT_RANGE=62000-62009 HVD_IFACE=eth0,lo \
    srun --hvd --mpi=none -N2 --ntasks-per-node=2 ./steady
succeeds "ranks of two nodes find each other with these settings" await_said "^steady: 4 ranks"
for node in n1 n2; do
    address=10.79.0.${node#n}
    # shellcheck disable=SC2034 # for prints
    others=$(listening "$node" | grep -Evc "^($address|127\.0\.0\.1|::1) 6200[0-9]\$")
    prints "a job listens on these ports and on these networks only, on $node" '^[2-4] 0$' \
        echo "$(listening "$node" | grep -Ec "^$address 6200[0-9]\$") $others"
done
touch "$home/end"
end_job
prints 'the results of the job are right' '^4$' grep -Ec '^rank [0-3]: [0-9]+ steps, 0 wrong, status 0' "$work/said"
tap_done
