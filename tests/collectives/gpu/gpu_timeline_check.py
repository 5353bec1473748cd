# SPDX-License-Identifier: Apache-2.0
"""Checks the timelines that gpu_timeline_job has written, and prints TAP without a plan.

gpu_timeline_check.py one FILE TRANSPORT          the timeline of rank 0
gpu_timeline_check.py all FILE TRANSPORT RANKS    the timeline of all ranks
gpu_timeline_check.py dynamic FILE                a timeline started and stopped by the program
"""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from timeline import Checks, names_of, read

STEPS = 5  # as in gpu_timeline_job.c
DEVICE = 1000000  # larger thread numbers stand for a GPU, see trace_text.c
FIRST = r'(?:\+INIT_NCCL - )?'
EXPECTED = {
    'fused/a': r'\+ALLREDUCE \+QUEUE - ' + FIRST + r'\+WAIT_FOR_DATA - '
               r'\+MEMCPY_IN_FUSION_BUFFER - \+NCCL_ALLREDUCE - \+MEMCPY_OUT_FUSION_BUFFER - - ',
    'gathered': r'\+ALLGATHER \+QUEUE - \+WAIT_FOR_DATA - \+NCCL_ALLGATHER - - ',
    'shared': r'\+BROADCAST \+QUEUE - \+WAIT_FOR_DATA - \+NCCL_BCAST - - ',
    'sent': r'\+ALLTOALL \+QUEUE - \+WAIT_FOR_DATA - (?:\+NCCL_ALLTOALL - ){1,2}- ',
    'scattered': r'\+REDUCESCATTER \+QUEUE - \+WAIT_FOR_DATA - \+NCCL_REDUCESCATTER - - ',
    'summed': r'\+REDUCE \+QUEUE - \+WAIT_FOR_DATA - \+NCCL_REDUCE - - ',
    'collected': r'\+GATHER \+QUEUE - \+WAIT_FOR_DATA - (?:\+NCCL_GATHER - ){1,2}- ',
    'dealt': r'\+SCATTER \+QUEUE - \+WAIT_FOR_DATA - (?:\+NCCL_SCATTER - ){1,2}- ',
    'staged': r'\+ALLREDUCE \+QUEUE - \+WAIT_FOR_DATA - \+MEMCPY_IN_HOST_BUFFER - '
              r'\+TRANSPORT_ALLREDUCE - \+MEMCPY_OUT_HOST_BUFFER - - ',
}
EXPECTED['fused/b'] = EXPECTED['fused/a']
HOST = re.compile(r'(?:\+NEGOTIATE_(\w+) - \+\1 \+QUEUE - \+LAUNCH - - )*')

checks = Checks()
ok = checks.ok


def halves(events):
    """Maps the name and the rank of each tensor to its events on the host and on the GPU."""
    names, rows = names_of(events), collections.defaultdict(lambda: ([], []))
    for event in events:
        pid, tid = event['pid'], event.get('tid')
        if event['ph'] in 'BE' and tid is not None and tid > DEVICE:
            rows[pid, tid - DEVICE][1].append(event)
        elif event['ph'] in 'BE' and tid == 1 and (pid, None) in names:
            rows[pid, None][1].append(event)
        elif event['ph'] in 'BE':
            rows[pid, tid][0].append(event)
    return {(names[key], key[0] if key[1] else 0): row for key, row in rows.items()}


def words(row):
    return ''.join(f'+{event["name"]} ' if event['ph'] == 'B' else '- ' for event in row)


def is_sorted(row):
    times = [event['ts'] for event in row]
    return times == sorted(times)


def begins(row, name):
    return [event['ts'] for event in row if event['ph'] == 'B' and event['name'] == name]


def check_rows(rows, transport, ranks):
    missing = [(name, rank) for name in EXPECTED for rank in range(ranks)
               if (name, rank) not in rows]
    ok(not missing, 'every tensor has a row', missing)
    wrong = [(name, rank, words(device)) for (name, rank), (_, device) in rows.items()
             if name in EXPECTED and not re.fullmatch(
                 f'(?:{EXPECTED[name].replace("TRANSPORT", transport)}){{{STEPS}}}',
                 words(device))]
    ok(not wrong, 'each step shows what the GPU did, in order and nested', wrong)
    odd = [(name, rank, words(host)) for (name, rank), (host, _) in rows.items()
           if name in EXPECTED and not HOST.fullmatch(words(host))]
    ok(not odd, 'the row of the host shows negotiation, queue and launch', odd)
    back = [key for key, halves in rows.items() if not all(map(is_sorted, halves))]
    ok(not back, 'time does not go back', back)
    early = []
    for (name, rank), (host, device) in rows.items():
        kind = re.match(r'\\\+(\w+)', EXPECTED.get(name, ''))
        if kind and any(there < here for here, there in zip(
                begins(host, kind[1]), begins(device, kind[1]))):
            early.append((name, rank))
    ok(not early, 'nothing begins on the GPU before all ranks have agreed', early)


def check_dynamic(rows):
    names = {name for name, _ in rows if not name.startswith('hvd.')}
    ok(names == {'meanwhile'}, 'only tensors launched meanwhile are there', names)
    text = words(rows.get(('meanwhile', 0), ([], []))[1])
    ok('+NCCL_ALLREDUCE' in text, 'the timeline shows what the GPU did', text)


def look(what, path, transport='', ranks='1'):
    rows = halves(read(path))
    if what == 'dynamic':
        check_dynamic(rows)
    else:
        check_rows(rows, transport, int(ranks))


if __name__ == '__main__':
    sys.exit(checks.run(look, *sys.argv[1:]))
