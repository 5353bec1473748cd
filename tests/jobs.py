# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of a table and prints TAP.

usage: jobs.py [--more] TABLE [PROGRAM | NAME=VALUE]...

PROGRAM is a path; the table names it without its folder. NAME=VALUE is a parameter. --more runs the jobs with `more = true`,
otherwise the others run. HVD_TEST_CASE=REGEX selects jobs by name, HVD_TEST_TIMES=N (default 4)
multiplies the time limit of a minute. A job that fails is shown with its command, its environment and
its output.

The table is a TOML file; each [[job]] is a case:

    name       the promise, a sentence: the job ends as `exit` says; if `exit` is 0, its TAP lines are promises, too
    run        program and arguments, split as by a shell
    layout     ranks per node ("2,2"), started by hvdrun; without it the program runs by itself
    env        variables; each_rank: shell commands that each rank runs before the program
    exit       exit status, default 0; "error" is any but 0
    files      text of files in the job's own folder, {tmp}
    pipe       name of a variable for a FIFO that stays open
    own_shm    true: a /dev/shm of its own, in which nothing may be left
    when       [[line, times, run]]: runs a shell command in {tmp} at the n-th line that matches
    look_at    a file in {tmp} in which the expectations look, instead of the output
    each       rows of fields and parameters: one case for each, or for each combination of values in lists
    more       true: the case repeats a promise with another number of ranks or another layout

and what is expected; regular expressions match within a line:

    prints     matches a line           lacks      matches no line
    counts     [number, regex]: so many lines match; the number may begin with <= or >=
    same       all matches are the same text
    after      shell commands in {tmp} that succeed; their TAP lines count. The output is in {tmp}/output

Each is a list, which belongs to the promise `name`, or a table that maps sentences to values: each of these
sentences is a promise of its own. Texts may have {parameters}: those of the row, layout, ranks, nodes,
others (ranks - 1), tmp, tests (the folder of the table), python, and those of the command. A promise with
{other} is made for each rank but {victim}. The fields in [all] are defaults for all jobs.
"""

import dataclasses
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib

HERE = os.path.dirname(os.path.realpath(__file__))
JOB = os.path.join(HERE, 'collectives', 'job.sh')
OWN_SHM = os.path.join(HERE, 'collectives', 'own_shm.sh')
LIMIT = float(os.environ.get('HVD_TEST_LIMIT', 60 * float(os.environ.get('HVD_TEST_TIMES', 4))))
SHOWN_LINES = 100
GRACE = min(10, LIMIT)  # seconds for hvdrun to end its ranks, and for the output to close

EXPECTATIONS = ('prints', 'lacks', 'counts', 'same', 'after')
FIELDS = {'name': '', 'run': '', 'layout': '', 'env': {}, 'each_rank': '', 'exit': 0, 'files': {}, 'pipe': '',
          'own_shm': False, 'when': [], 'look_at': '', 'each': [], 'more': False,
          **dict.fromkeys(EXPECTATIONS, [])}

TAP_LINE = re.compile(r'(ok|not ok)\b\s*\d*\s*(?:- )?(.*)$')
TAP_PLAN = re.compile(r'1\.\.(\d+)\s*(?:# SKIP\w* *(.*))?$')


class TableError(Exception):
    """The table is wrong, so none of its jobs is run."""


# --- the table ---

def expand(value, parameters):
    """Replaces {parameters} in all texts of a value."""
    if isinstance(value, dict):
        return {expand(name, parameters): expand(item, parameters) for name, item in value.items()}
    if isinstance(value, list):
        return [expand(item, parameters) for item in value]
    if not isinstance(value, str):
        return value

    def replace(match):
        if match[1] not in parameters:
            raise TableError(f'{match[0]} in {value!r} is no parameter; there are {", ".join(sorted(parameters))}')
        return str(parameters[match[1]])
    return re.sub(r'(?<!\$)\{([a-z_]+)\}', replace, value)


def check_field(name, value):
    if name not in FIELDS:
        raise TableError(f'a job has no field {name!r}; there are {", ".join(FIELDS)}')
    kinds = type(FIELDS[name])
    if name in EXPECTATIONS:
        kinds = (list, dict)
    if name == 'exit':
        kinds = int if value != 'error' else str
    if not isinstance(value, kinds):
        raise TableError(f'the field {name!r} cannot be {value!r}')


def combinations(row):
    """All rows that a row with lists stands for."""
    values = [value if isinstance(value, list) else [value] for value in row.values()]
    return [dict(zip(row, chosen)) for chosen in itertools.product(*values)]


def read_table(path):
    """The cases of a table: pairs of fields, not expanded yet, and parameters."""
    with open(path, 'rb') as file:
        table = tomllib.load(file)
    if set(table) - {'all', 'job'}:
        raise TableError(f'expected [all] and [[job]], found {", ".join(set(table) - {"all", "job"})}')
    for job in table.get('job', []):
        for row in job.get('each', [{}]):
            for chosen in combinations(row):
                fields = {**FIELDS, **table.get('all', {}), **job,
                          **{name: value for name, value in chosen.items() if name in FIELDS}}
                fields['env'] = {**table.get('all', {}).get('env', {}), **fields['env']}
                for name, value in fields.items():
                    check_field(name, value)
                yield fields, chosen


# --- a case ---

class Case:
    def __init__(self, fields, row, programs, given, table):
        layout = fields['layout'] or '1'
        ranks = sum(map(int, layout.split(',')))
        self.parameters = {**given, **row, 'layout': layout, 'ranks': ranks, 'others': ranks - 1,
                           'nodes': len(layout.split(',')), 'most': max(map(int, layout.split(','))),
                           'tests': os.path.dirname(os.path.abspath(table)), 'python': sys.executable}
        self.programs = programs
        self.name = expand(fields['name'], self.parameters)
        self.more = fields['more']
        self.raw = fields
        if not self.name or not fields['run']:
            raise TableError(f'a job needs name and run: {fields["name"] or fields["run"]!r}')
        self.prepare('/nonexistent')  # finds mistakes before any job runs

    def prepare(self, tmp):
        """Expands all fields for a run in this folder."""
        self.tmp = tmp
        other = {'other': '{other}'}  # replaced when the promise is checked
        for name, value in self.raw.items():
            if name not in ('each', 'name'):
                setattr(self, name, expand(value, {**self.parameters, 'tmp': tmp, **other}))
        words = shlex.split(self.run)
        words[0] = self.program(words[0])
        if self.each_rank:
            words = ['sh', '-c', f'{self.each_rank}\nexec "$@"', 'rank', *words]
        if self.layout:
            words = [JOB, self.program('hvdrun'), self.layout, *words]
        self.command = [OWN_SHM, *words] if self.own_shm else words

    def program(self, name):
        path = self.programs.get(name) or shutil.which(name)
        if not path:
            raise TableError(f'there is no program {name!r}: meson.build hands over {", ".join(self.programs)}')
        return path

    def environment(self):
        env = {**os.environ, **self.env}
        if self.pipe:
            env[self.pipe] = os.path.join(self.tmp, 'pipe')
        return env

    def promises(self):
        """Yields (kind, sentence or None, wanted) for each expectation."""
        for kind in EXPECTATIONS:
            wanted = getattr(self, kind)
            for item in wanted.items() if isinstance(wanted, dict) else [(None, value) for value in wanted]:
                if '{other}' not in str(item):
                    yield kind, *item
                    continue
                for rank in range(self.parameters['ranks']):
                    if rank != int(self.parameters['victim']):
                        yield kind, *replace_other(item, rank)


def replace_other(value, rank):
    if isinstance(value, (list, tuple)):
        return [replace_other(item, rank) for item in value]
    return value.replace('{other}', str(rank)) if isinstance(value, str) else value


# --- a run of it ---

@dataclasses.dataclass
class Run:
    status: int = None  # None: the time limit ended it
    lines: list = dataclasses.field(default_factory=list)
    is_closed: bool = True  # no process has the output open


def read_lines(stream, case, run):
    """Reads the output, and does what the table says when certain lines come."""
    seen = [0] * len(case.when)
    for line in stream:
        run.lines.append(line.rstrip('\n'))
        for number, (pattern, times, command) in enumerate(case.when):
            seen[number] += bool(re.search(pattern, line))
            if seen[number] == times and re.search(pattern, line):
                subprocess.run(['sh', '-c', command], cwd=case.tmp, check=False, timeout=LIMIT)


def end(process):
    """Ends a job that hangs: hvdrun first gets the chance to end its ranks."""
    for number, seconds in (signal.SIGTERM, GRACE), (signal.SIGKILL, None):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


class Interrupt:
    """Lets SIGTERM end a job, but not between its start and the `try` that ends it."""
    is_told = is_running = False

    @classmethod
    def on_signal(cls, *_):
        cls.is_told = True
        if cls.is_running:
            sys.exit(1)


def run_job(case):
    run = Run()
    process = subprocess.Popen(case.command, env=case.environment(), cwd=case.tmp, text=True, errors='replace',
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    reader = threading.Thread(target=read_lines, args=(process.stdout, case, run), daemon=True)
    reader.start()
    try:
        Interrupt.is_running = True
        if Interrupt.is_told:
            sys.exit(1)
        run.status = process.wait(LIMIT)
        reader.join(GRACE)
    except subprocess.TimeoutExpired:
        pass
    finally:  # also where this program is told to end
        Interrupt.is_running = False
        end(process)
    reader.join(GRACE)
    run.is_closed = not reader.is_alive()
    return run


def prepare_folder(case):
    for name, text in case.files.items():
        with open(os.path.join(case.tmp, name), 'w') as file:
            file.write(text)
    if case.pipe:
        path = os.path.join(case.tmp, 'pipe')
        os.mkfifo(path)
        return os.open(path, os.O_RDWR)  # a FIFO that nobody has open forgets its contents
    return os.open(os.devnull, os.O_RDONLY)


# --- what is expected of it ---

def is_number(found, wanted):
    sign, number = re.fullmatch(r'(<=|>=|)(\d+)', str(wanted)).groups()
    return {'<=': found <= int(number), '>=': found >= int(number), '': found == int(number)}[sign]


def problem_with(kind, wanted, lines):
    """Returns what is wrong with the lines, or None."""
    number, pattern = wanted if kind == 'counts' else (None, wanted)
    found = [match.group() for match in map(re.compile(pattern).search, lines) if match]
    if kind == 'prints' and not found:
        return f'no line matches /{pattern}/'
    if kind == 'lacks' and found:
        return f'a line matches /{pattern}/: {found[0]}'
    if kind == 'counts' and not is_number(len(found), number):
        return f'{len(found)} lines match /{pattern}/, expected {number}'
    if kind == 'same' and len(set(found)) > 1:
        return f'not all matches of /{pattern}/ are the same: {" | ".join(sorted(set(found)))}'
    return None


def tap_of(lines):
    """Returns the promises of TAP lines, the plan or None, and the reason why all are skipped or None."""
    promises, plan, reason = [], None, None
    for line in lines:
        if match := TAP_PLAN.match(line):
            plan, reason = int(match[1]), match[2] if match[1] == '0' else reason
        elif match := TAP_LINE.match(line):
            promises.append(match.groups())
    return promises, plan, reason


class Report:
    """Prints one line for each promise."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def line(self, verdict, promise):
        self.count += 1
        self.failed += verdict != 'ok'
        print(f'{verdict} {self.count} - {promise}', flush=True)

    def promise(self, promise, problems):
        self.line('not ok' if problems else 'ok', promise)
        for problem in problems:
            self.note(problem)

    def note(self, text):
        for line in text.splitlines():
            print('#', line)

    def show(self, case, run):
        """Prints the command, its exit status and its output."""
        variables = [f'{name}={shlex.quote(value)}' for name, value in sorted(case.environment().items())
                     if name in case.env or name == case.pipe or name.startswith(('HVD_', 'HOROVOD_', 'FAKE_'))]
        self.note(f'command: {" ".join(variables)} {shlex.join(case.command)}')
        self.note(f'exit status: {"none, it was ended" if run.status is None else run.status}; output:')
        for line in run.lines[-SHOWN_LINES:]:
            self.note(f'    {line}')


def problems_of_end(case, run, promises, plan):
    if run.status is None:
        yield f'hangs: ended after {LIMIT:g} s'
    elif case.exit == 'error' and run.status == 0:
        yield 'exit status 0, expected an error'
    elif case.exit != 'error' and run.status != case.exit:
        yield f'exit status {run.status}, expected {case.exit}'
    if not run.is_closed:
        yield 'a process of the job goes on after it'
    if case.exit == 0 and plan is None and promises:
        yield 'its TAP has no plan'
    if case.exit == 0 and plan is not None and plan != len(promises):
        yield f'planned {plan} promises, made {len(promises)}'


def run_after(case, command, report):
    """Runs a command after the job and reports its TAP lines. Returns a text if the command fails, else None."""
    done = subprocess.run(['sh', '-c', command], cwd=case.tmp, env=case.environment(), text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
    promises = tap_of(done.stdout.splitlines())[0]
    for verdict, promise in promises:
        report.line(verdict, f'{case.name}: {promise}')
    if done.returncode != 0:
        return f'{command}: exit status {done.returncode}\n{done.stdout}'
    if any(verdict != 'ok' for verdict, _ in promises):
        report.note(done.stdout)
    return None


def lines_to_look_at(case, run):
    """Returns the lines in which texts are expected, and a list of problems if they cannot be read."""
    with open(os.path.join(case.tmp, 'output'), 'w') as file:
        file.writelines(f'{line}\n' for line in run.lines)
    if not case.look_at:
        return run.lines, []
    try:
        with open(os.path.join(case.tmp, case.look_at), errors='replace') as file:
            return file.read().splitlines(), []
    except OSError as error:
        return [], [f'cannot look at {error.filename}: {error.strerror}']


def report_shm(case, run, report):
    promise = f'{case.name}: nothing is left in /dev/shm'
    if 'no /dev/shm of its own' in run.lines:
        report.line('ok', f'{promise} # SKIP no mount namespaces')
    else:
        report.promise(promise, [line for line in run.lines if line.startswith('left in /dev/shm: ')])


def report_case(case, run, report):
    promises, plan, _ = tap_of(run.lines)
    lines, problems = lines_to_look_at(case, run)
    problems, separate = [*problems_of_end(case, run, promises, plan), *problems], []
    for kind, sentence, wanted in case.promises():
        problem = run_after(case, wanted, report) if kind == 'after' else problem_with(kind, wanted, lines)
        if sentence is None:
            problems += [problem] if problem else []
        else:
            separate.append((sentence, [problem] if problem else []))
    report.note('\n'.join(line.lstrip('# ') for line in run.lines if re.match('# .*seed', line)))
    for verdict, promise in promises if case.exit == 0 else []:
        report.line(verdict, f'{case.name}: {promise}')
    report.promise(case.name, problems)
    for sentence, problem in separate:
        report.promise(f'{case.name}: {sentence}', problem)
    if case.own_shm:
        report_shm(case, run, report)


def run_case(case, report):
    before = report.failed
    with tempfile.TemporaryDirectory(prefix='hvd-job-') as tmp:
        case.prepare(tmp)
        pipe = prepare_folder(case)
        run = run_job(case)
        os.close(pipe)
        reason = tap_of(run.lines)[2]
        if reason is not None:
            for sentence in [None] + [sentence for _, sentence, _ in case.promises() if sentence]:
                report.line('ok', f'{case.name}{": " + sentence if sentence else ""} # SKIP {reason}')
            return
        report_case(case, run, report)
        if report.failed > before:
            report.show(case, run)
            if case.look_at:
                report.note('\n'.join([f'{case.look_at}:'] + lines_to_look_at(case, run)[0][-SHOWN_LINES:]))


def main(arguments):
    more = arguments[:1] == ['--more']
    table, *programs = arguments[more:]
    given = dict(text.split('=', 1) for text in programs if re.match('[a-z_]+=', text))
    paths = {os.path.basename(path): os.path.abspath(path) for path in programs if not re.match('[a-z_]+=', path)}
    try:
        cases = [Case(fields, row, paths, given, table) for fields, row in read_table(table)]
        names = [case.name for case in cases]
        for name in names:
            if names.count(name) > 1:
                raise TableError(f'two jobs have the name {name!r}')
        cases = [case for case in cases if case.more == more]
        if not cases:
            raise TableError('no job to run')
    except (TableError, tomllib.TOMLDecodeError, OSError) as error:
        print(f'Bail out! {table}: {error}')
        return 1
    signal.signal(signal.SIGTERM, Interrupt.on_signal)
    report = Report()
    for case in cases:
        if re.search(os.environ.get('HVD_TEST_CASE', ''), case.name):
            run_case(case, report)
    print(f'1..{report.count}')
    return 1 if report.failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
