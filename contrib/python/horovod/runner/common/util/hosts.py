# SPDX-License-Identifier: Apache-2.0
"""Parses lists of hosts, and assigns ranks to them."""

import collections
from dataclasses import dataclass


@dataclass
class HostInfo:
    """A host and its number of slots."""
    hostname: str
    slots: int

    @staticmethod
    def from_string(host_string):
        """Parses a text such as "host:4". ValueError if it has another form."""
        hostname, separator, slots = host_string.strip().rpartition(':')
        if not (hostname and separator and slots.isdigit()):
            raise ValueError(f'"{host_string}" is not of the form host:slots, such as worker-0:2')
        return HostInfo(hostname, int(slots))


@dataclass
class SlotInfo:
    """A rank, its host, and its numbers as in hvd.local_rank() and so on."""
    hostname: str
    rank: int
    local_rank: int
    cross_rank: int
    size: int
    local_size: int
    cross_size: int

    def to_response_string(self):
        return ','.join(map(str, (self.rank, self.size, self.local_rank, self.local_size,
                                  self.cross_rank, self.cross_size)))


def parse_hosts(hosts_string):
    """Parses a text such as "host:4,other:2"; returns a list of HostInfo."""
    return [HostInfo.from_string(each) for each in hosts_string.split(',')]


def parse_host_files(filename):
    """Reads a file with lines such as "host slots=4"; returns a text for parse_hosts. ValueError,
    which names the line, if one has another form."""
    hosts = []
    with open(filename) as file:
        for number, line in enumerate(file, 1):
            words = line.partition('#')[0].replace('=', ' ').split()
            if not words:
                continue
            if len(words) != 3 or words[1] != 'slots' or not words[2].isdigit():
                raise ValueError(f'{filename}, line {number}: "{line.strip()}" is not of the '
                                 'form host slots=N')
            hosts.append(f'{words[0]}:{words[2]}')
    return ','.join(hosts)


def get_host_assignments(hosts, min_num_proc, max_num_proc=None):
    """Assigns at most max_num_proc ranks to the hosts, host by host; returns a list of SlotInfo.
    ValueError if there are fewer than min_num_proc slots."""
    places = [(host.hostname, local) for host in hosts for local in range(host.slots)]
    places = places[:max_num_proc]
    if len(places) < min_num_proc:
        raise ValueError(f'Requested more processes ({min_num_proc}) than there are available '
                         f'slots ({len(places)})')
    local_sizes = collections.Counter(hostname for hostname, _ in places)
    having = collections.defaultdict(list)  # {local rank: the hosts with a rank of this number}
    for hostname, local in places:
        having[local].append(hostname)
    return [SlotInfo(hostname, rank, local, having[local].index(hostname), len(places),
                     local_sizes[hostname], len(having[local]))
            for rank, (hostname, local) in enumerate(places)]
