# SPDX-License-Identifier: Apache-2.0
"""Makes the page of a straggler report from a timeline. hvd-info runs this file by Python, outside of the package.

usage: timeline_page.py FRAME TIMELINE
   FRAME     report.html of the installation, in which the data are put
   TIMELINE  a file of HOROVOD_TIMELINE. The page is written beside it, as TIMELINE.html
"""

import base64
import json
import re
import sys

MARK = '@DATA@'
COLUMNS, CELLS = 1024, 1 << 20  # at most, as in a report
# Collectives whose end tells when the last rank has arrived.
COMPARED = ('ALLREDUCE', 'ADASUM', 'ALLGATHER', 'ALLTOALL', 'REDUCESCATTER', 'BARRIER')
BYTES = {'int64': 8, 'uint64': 8, 'float64': 8, 'int32': 4, 'uint32': 4, 'float32': 4, 'int16': 2, 'uint16': 2,
         'float16': 2, 'bfloat16': 2}


def fail(text):
    sys.exit(f'hvd-info: --timeline: {text}')


def read_events(path):
    """Returns the events. A job that was killed may have left the file without its end, and the last event cut."""
    try:
        with open(path, encoding='utf-8') as file:
            text = file.read().rstrip().rstrip(',')
    except (OSError, UnicodeDecodeError) as error:
        fail(f'cannot read {path}: {getattr(error, "strerror", None) or "it is not text"}')
    whole = text[:text.rfind('},') + 1]
    for attempt in (text, text + ']', *([whole + ']'] if whole else [])):
        try:
            events = json.loads(attempt)
        except json.JSONDecodeError as error:
            wrong = error
            continue
        if isinstance(events, dict):
            events = events.get('traceEvents')
        if isinstance(events, list) and all(isinstance(each, dict) for each in events):
            return events
        fail(f'{path} is JSON, but no timeline: expected a list of events')
    fail(f'{path} is no timeline: expected JSON, found {wrong.msg} in line {wrong.lineno}')


class Operation:
    """One collective on a tensor: who submitted it when, and when it ended on whom."""

    def __init__(self, tensor, kind):
        self.tensor, self.kind, self.bytes = tensor, kind, 0
        self.came, self.ended = {}, {}


def has_all_ranks(events):
    """Whether each process of the file is a rank, and not a tensor (HVD_TIMELINE_RANKS=all)."""
    return any(each.get('name') == 'process_name' and re.match(r'rank \d+ on ', each['args'].get('name', ''))
               for each in events if 'args' in each)


def names_of(events, kind):
    return {(each.get('pid'), each.get('tid') if kind == 'thread_name' else None): each['args'].get('name', '')
            for each in events if each.get('name') == kind}


def size_of(arguments):
    shape = re.findall(r'\d+', arguments.get('shape', ''))
    elements = 1
    for each in shape:
        elements *= int(each)
    return elements * BYTES.get(arguments.get('dtype'), 1)


def rows_of(events):
    """Yields (pid, tid, events) of each row, in order of time."""
    rows = {}
    for event in events:
        if event.get('ph') in ('B', 'E', 'X') and isinstance(event.get('ts'), (int, float)):
            rows.setdefault((event.get('pid'), event.get('tid')), []).append(event)
    for (pid, tid), row in rows.items():
        yield pid, tid, row


def operations_of_row(row, tensor, rank):
    """Returns the operations of a tensor's row. rank: whose row it is; None: that of rank 0, in which marks tell when
    the others came."""
    found, open_events, current = [], [], None
    for event in row:
        name = event.get('name', '')
        if event['ph'] == 'X':
            if current is not None and rank is None and name.isdigit():
                current.came.setdefault(int(name), event['ts'])
        elif event['ph'] == 'B':
            open_events.append(name)
            if name.startswith('NEGOTIATE_'):
                current = Operation(tensor, name[len('NEGOTIATE_'):])
                if rank is not None:
                    current.came[rank] = event['ts']
        elif open_events:
            name = open_events.pop()
            if current is not None and not open_events and not name.startswith('NEGOTIATE_'):
                current.ended[rank or 0] = event['ts']
                current.bytes = size_of(event.get('args', {}))
                found.append(current)
                current = None
    return found


def merge_ranks(rows):
    """rows: {(rank, tensor): operations}. Returns the operations that all ranks have."""
    ranks, tensors = sorted({rank for rank, _ in rows}), sorted({tensor for _, tensor in rows})
    merged = []
    for tensor in tensors:
        for parts in zip(*(rows.get((rank, tensor), []) for rank in ranks)):
            for part in parts[1:]:
                parts[0].came.update(part.came)
                parts[0].ended.update(part.ended)
            merged.append(parts[0])
    return merged


def read_operations(events):
    """Returns the operations, and the names of the ranks' nodes."""
    processes, threads = names_of(events, 'process_name'), names_of(events, 'thread_name')
    if has_all_ranks(events):
        rows = {}
        for pid, tid, row in rows_of(events):
            tensor = threads.get((pid, tid), '')
            if not tensor.endswith(' (GPU)'):
                rows[pid, tensor] = operations_of_row(row, tensor, pid)
        hosts = {pid: name.split(' on ', 1)[1] for (pid, _), name in processes.items() if ' on ' in name}
        return merge_ranks(rows), hosts
    found = []
    for pid, tid, row in rows_of(events):
        if tid is None or 'tid' not in row[0]:  # another thread of the row has the times of the GPU
            found += operations_of_row(row, processes.get((pid, None), ''), None)
    return found, {}


def measure(operations, size):
    """Returns for each operation (its end, its wait on each rank), as in a report: from the submission, or the end of
    the rank's previous operation, to the end."""
    last, found = [0] * size, []
    for each in sorted(operations, key=lambda one: one.ended[0]):
        waits = []
        for rank in range(size):
            end = each.ended.get(rank, each.ended[0])
            waits.append(max(0, int(end - max(each.came[rank], last[rank]))))
            last[rank] = end
        found.append((each, waits))
    return found


def code(us):
    """A time as a byte, as in straggler_page.h."""
    if us <= 0:
        return 0
    value = int(us) + 1
    exponent = value.bit_length() - 1
    mantissa = value >> (exponent - 3) if exponent >= 3 else value << (3 - exponent)
    return min(255, 8 * exponent + (mantissa & 7))


def span(us):
    return f'{us:.0f} us' if us < 1e3 else f'{us / 1e3:.1f} ms' if us < 1e6 else f'{us / 1e6:.1f} s'


def judge(ranks, compared, elapsed):
    """Returns the late rank, or -1, and the verdict, by the rule of a report."""
    order = sorted(range(len(ranks)), key=lambda rank: -ranks[rank]['late_us'])
    worst = ranks[order[0]]
    others = ranks[order[1]]['late_us'] if len(order) > 1 else 0
    if worst['late_us'] <= 0 or worst['late_us'] < elapsed / 100 or worst['late_us'] / 2 <= others:
        return -1, 'No rank stands out as late.'
    return worst['rank'], (
        f'Rank {worst["rank"]} on {worst["host"]} was the last in {worst["times_last"]} of {compared} tensors, by '
        f'{span(worst["late_us"] / worst["times_last"])}; the job lost '
        f'{min(100, 100 * worst["late_us"] / elapsed):.0f} % of its time waiting for it.')


class Page:
    """Adds up what the page shows."""

    def __init__(self, size, hosts, count, begin):
        self.begin = begin
        self.ranks = [{'rank': rank, 'host': hosts.get(rank, 'a node'), 'times_last': 0, 'late_us': 0, 'late_mean_us': 0,
                       'late_most_us': 0, 'waited_us': 0} for rank in range(size)]
        self.width = 1
        while -(-count // self.width) > max(1, min(COLUMNS, CELLS // size)):
            self.width *= 2
        self.columns = -(-count // self.width)
        self.late = [[0] * self.columns for _ in range(size)]
        self.waited = [[0] * self.columns for _ in range(size)]
        self.ended, self.moving, self.buckets = [0] * self.columns, [0] * self.columns, {}

    def add(self, number, operation, waits):
        column, least = number // self.width, min(waits)
        last, late = waits.index(least), sorted(waits)[1] - least if len(waits) > 1 else 0
        rank = self.ranks[last]
        if late > 0:
            rank['times_last'] += 1
            rank['late_us'] += late
            rank['late_most_us'] = max(rank['late_most_us'], late)
            self.late[last][column] += late
        for i, wait in enumerate(waits):
            self.ranks[i]['waited_us'] += wait - least
            self.waited[i][column] += wait - least
        self.ended[column] = max(self.ended[column], int(operation.ended[0] - self.begin))
        self.moving[column] += least
        bucket = self.buckets.setdefault((operation.tensor, operation.kind), {
            'name': operation.tensor, 'kind': operation.kind.lower(), 'tensors': 1, 'batches': 0, 'bytes': 0,
            'moving_us': 0, 'least_us': least, 'late_us': 0})
        bucket['batches'] += 1
        bucket['bytes'] += operation.bytes
        bucket['moving_us'] += least
        bucket['least_us'] = min(bucket['least_us'], least)
        bucket['late_us'] += late

    def data(self, compared):
        for rank in self.ranks:
            rank['late_mean_us'] = rank['late_us'] // max(1, rank['times_last'])
        elapsed, size = max(1, *self.ended), len(self.ranks)
        late_rank, verdict = judge(self.ranks, compared, elapsed)
        return {
            'report': {'complete': True, 'size': size, 'elapsed_us': elapsed, 'batches_compared': compared,
                       'late_rank': late_rank, 'verdict': verdict, 'ranks': self.ranks},
            'time': {'unit': 'tensor', 'width': self.width, 'count': self.columns, 'ended_us': self.ended,
                     'moving_us': self.moving,
                     'waited_us': [sum(row[i] for row in self.waited) // size for i in range(self.columns)],
                     'late': encode(self.late), 'waited': encode(self.waited)},
            'scores': [], 'buckets': list(self.buckets.values())[:256], 'bindings': []}


def encode(rows):
    return base64.b64encode(bytes(code(us) for row in rows for us in row)).decode()


def make_page(path):
    """Returns the data of the page of a timeline."""
    operations, hosts = read_operations(read_events(path))
    operations = [each for each in operations if each.kind in COMPARED and each.came and each.ended]
    if not operations:
        fail(f'{path} has no collective that ranks have negotiated: expected a timeline of hvd or Horovod')
    size = max(max(hosts, default=0), max(max(each.came) for each in operations)) + 1
    complete = [each for each in operations if len(each.came) == size and 0 in each.ended]
    if size == 1 or not complete:
        fail(f'{path} does not tell when the ranks other than 0 came: record it with HVD_TIMELINE_RANKS=all')
    page = Page(size, hosts, len(complete), min(min(each.came.values()) for each in complete))
    for number, (operation, waits) in enumerate(measure(complete, size)):
        page.add(number, operation, waits)
    return page.data(len(complete)), len(operations) - len(complete)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    frame_path, path = sys.argv[1:]
    data, left_out = make_page(path)
    try:
        with open(frame_path, encoding='utf-8') as file:
            before, after = file.read().split(MARK, 1)
        with open(path + '.html', 'w', encoding='utf-8') as file:
            file.write(before + json.dumps(data).replace('<', '\\u003c') + after)
    except OSError as error:
        fail(f'{error.filename}: {error.strerror}')
    print(f'{path}.html: {data["report"]["verdict"]}')
    if left_out:
        print(f'{left_out} tensors are left out, because the timeline does not tell when all ranks came: '
              'record it with HVD_TIMELINE_RANKS=all')


if __name__ == '__main__':
    main()
