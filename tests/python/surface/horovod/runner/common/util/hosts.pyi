# SPDX-License-Identifier: Apache-2.0

class HostInfo:
    hostname: str
    slots: int
    def __init__(self, hostname, slots): ...
    def from_string(host_string): ...

class SlotInfo:
    hostname: str
    rank: int
    local_rank: int
    cross_rank: int
    size: int
    local_size: int
    cross_size: int
    def __init__(self, hostname, rank, local_rank, cross_rank, size, local_size, cross_size): ...

def parse_host_files(filename): ...
def parse_hosts(hosts_string): ...
def get_host_assignments(hosts, min_num_proc, max_num_proc=None): ...
