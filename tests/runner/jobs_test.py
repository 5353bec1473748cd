# SPDX-License-Identifier: Apache-2.0
"""The runner of tables must not take a failure for a success, and ends jobs that hang."""

import concurrent.futures
import os
import select
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
JOBS = os.path.join(os.path.dirname(HERE), 'jobs.py')

# Runs the ranks one after the other.
HVDRUN = '''#!/bin/sh
ranks=$2
shift 2
rank=0
while [ "$rank" -lt "$ranks" ]; do
    HOROVOD_RANK=$rank "$@" || exit
    rank=$((rank + 1))
done
'''

TALK = "printf 'ok 1 - first\\nhello 7\\nhello 7\\n1..1\\n'"

CASES = [
    # promise, the table after its name, what must be in the output of jobs.py, exit status
    ('a job that succeeds is ok', 'run = "true"', ['ok 1 - case', '1..1'], 0),
    ('a wrong exit status fails', 'run = "false"', ['not ok 1 - case', '# exit status 1, expected 0'], 1),
    ('an expected exit status is ok', "run = 'sh -c \"exit 3\"'\nexit = 3", ['ok 1 - case'], 0),
    ('an expected error that does not occur fails', 'run = "true"\nexit = "error"', ['# exit status 0, expected an error'], 1),
    ('an expected text is found', 'run = "echo right"\nprints = ["^right$"]', ['ok 1 - case'], 0),
    ('a wrong expected text fails', 'run = "echo right"\nprints = ["wrong"]',
     ['not ok 1 - case', '# no line matches /wrong/', '#     right'], 1),
    ('a forbidden text fails', 'run = "echo right"\nlacks = ["right"]', ['# a line matches /right/: right'], 1),
    ('lines are counted', f'run = """{TALK}"""\ncounts = [[2, "hello"], ["<=2", "hello"], [">=1", "h"]]',
     ['ok 2 - case'], 0),
    ('a wrong number of lines fails', 'run = "echo hello"\ncounts = [["<=0", "hello"]]',
     ['# 1 lines match /hello/, expected <=0'], 1),
    ('matches that differ fail', "run = 'printf \"a 1\\\\na 2\\\\n\"'\nsame = ['a .']", ['are the same: a 1 | a 2'], 1),
    ('named checks are promises of their own', 'run = "echo a"\nprints = {"says a" = "a", "says b" = "b"}',
     ['ok 1 - case', 'ok 2 - case: says a', 'not ok 3 - case: says b', '1..3'], 1),
    ('TAP lines of the job are passed on', f'run = """{TALK}"""', ['ok 1 - case: first', 'ok 2 - case', '1..2'], 0),
    ('a failed TAP line fails', "run = 'printf \"not ok 1 - first\\\\n1..1\\\\n\"'", ['not ok 1 - case: first'], 1),
    ('TAP without its end fails', "run = 'printf \"ok 1\\\\n1..2\\\\n\"'", ['# planned 2 promises, made 1'], 1),
    ('TAP without a plan fails', "run = 'printf \"ok 1\\\\n\"'", ['# its TAP has no plan'], 1),
    ('the seed of a job is shown', "run = 'printf \"# seed 7\\nok 1\\n1..1\\n\"'", ['# seed 7', 'ok 2 - case'], 0),
    ('a job that skips does not pass', "run = 'printf \"1..0 # SKIP no gpu\\\\n\"'\nprints = {'says a' = 'a'}",
     ['ok 1 - case # SKIP no gpu', 'ok 2 - case: says a # SKIP no gpu'], 0),
    ('a job that hangs is ended, and its output shown', "run = 'sh -c \"echo begun; sleep 1000\"'",
     ['not ok 1 - case', '# hangs: ended after 3 s', '#     begun'], 1),
    ('a process that outlives its job fails', "run = 'sh -c \"setsid sleep 30 & echo begun\"'",
     ['# a process of the job goes on after it'], 1),
    ('variables and the command are shown', "run = 'sh -c \"exit 1\"'\nenv = {HVD_X = 'a b'}",
     ["HVD_X='a b' ", "sh -c 'exit 1'"], 1),
    ('each rank runs commands of its own', 'run = "printenv X"\nlayout = "2"\neach_rank = "export X=$HOROVOD_RANK"\n'
     'prints = ["0", "1"]\ncounts = [[2, ""]]', ['ok 1 - case'], 0),
    ('each other rank is checked', 'run = "printenv HOROVOD_RANK"\nlayout = "3"\n'
     'each = [{victim = 1}]\nprints = {"rank {other} speaks" = "^{other}$"}',
     ['ok 2 - case: rank 0 speaks', 'ok 3 - case: rank 2 speaks', '1..3'], 0),
    ('a rank that is silent fails', 'run = """sh -c "[ $HOROVOD_RANK = 2 ] || echo $HOROVOD_RANK" """\n'
     'layout = "3"\neach = [{victim = 1}]\nprints = {"rank {other} speaks" = "^{other}$"}',
     ['not ok 3 - case: rank 2 speaks'], 1),
    ('commands check leftovers of the job', 'run = "touch {tmp}/left"\nafter = {"it is there" = "test -e left", '
     '"it is full" = "test -s left"}', ['ok 2 - case: it is there', 'not ok 3 - case: it is full'], 1),
    ('TAP lines of these commands count', 'run = "true"\nafter = ["echo not ok 1 - full"]', ['not ok 1 - case: full'], 1),
    ('a file is checked', 'run = "sh -c \'echo a >log\'"\nlook_at = "log"\nprints = ["a"]', ['ok 1 - case'], 0),
    ('a file that is missing fails', 'run = "true"\nlook_at = "log"\nlacks = ["a"]',
     ['not ok 1 - case', 'cannot look at', 'No such file'], 1),
    ('a line of the job triggers a command', 'run = "sh -c \'echo a; echo a; read go <$PIPE; echo went on\'"\npipe = "PIPE"\n'
     'when = [["a", 2, "echo go >pipe"]]\nprints = ["went on"]', ['ok 1 - case'], 0),
    ('parameters come from the command', 'run = "echo {given}"\nprints = ["^a=b c$"]', ['ok 1 - case'], 0),
    ('files are written', 'run = "cat {tmp}/greeting"\nfiles = {greeting = "hello {word}"}\n'
     'each = [{word = "you"}]\nprints = ["hello you"]', ['ok 1 - case'], 0),
    ('other jobs run with --more', 'run = "true"\neach = [{more = true}]', ['no job to run'], 1),
    ('an unknown field is an error', 'run = "true"\nprint = ["a"]', ["Bail out!", "no field 'print'"], 1),
    ('a wrong type is an error', 'run = "true"\nprints = "a"', ["'prints' cannot be 'a'"], 1),
    ('an unknown parameter is an error', 'run = "echo {word}"', ['{word} in', 'is no parameter'], 1),
    ('an unknown program is an error', 'run = "no_such_program"', ["no program 'no_such_program'"], 1),
    ('a name that occurs twice is an error', 'run = "true"\neach = [{a = 1}, {a = 2}]', ["the name 'case'"], 1),
    ('a table without a job is an error', 'run = "true"\nmore = true', ['no job to run'], 1),
]


def run_table(table):
    """Runs jobs.py on the table. Returns its output and its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        hvdrun, path = os.path.join(folder, 'hvdrun'), os.path.join(folder, 'case.toml')
        with open(hvdrun, 'w') as file:
            file.write(HVDRUN)
        os.chmod(hvdrun, 0o755)
        with open(path, 'w') as file:
            file.write(f'[[job]]\nname = "case"\n{table}\n')
        env = {name: value for name, value in os.environ.items() if name != 'HVD_TEST_CASE'}
        env['HVD_TEST_LIMIT'] = '3' if 'sleep' in table else '60'
        done = subprocess.run([sys.executable, JOBS, 'case.toml', './hvdrun', 'given=a=b c'], cwd=folder, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout, done.returncode


def leaves_a_job_behind():
    """Returns whether a job survives when jobs.py is terminated, as meson does at its time limit."""
    with tempfile.TemporaryDirectory() as folder:
        path, pipe = os.path.join(folder, 'case.toml'), os.path.join(folder, 'pipe')
        os.mkfifo(pipe)
        with open(path, 'w') as file:
            file.write(f"""[[job]]\nname = "case"\nrun = 'sh -c "exec 9>{pipe}; echo here >&9; sleep 1000"'\n""")
        with subprocess.Popen([sys.executable, JOBS, path], stdout=subprocess.DEVNULL) as process, open(pipe) as reader:
            reader.readline()
            process.terminate()
            process.wait()
            ready = select.select([reader], [], [], 20)[0]  # end of file: no process has the pipe open
            return not ready or reader.read() != ''


def lacks(wanted, output):
    """Returns the first wanted text that is not in the output; promises and plans must be whole lines."""
    lines = output.splitlines()
    for text in wanted:
        is_line = text.startswith(('ok ', 'not ok ', '1..'))
        if not (text in lines if is_line else text in output):
            return text
    return None


def main():
    count = failed = 0
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for (promise, _, wanted, status), (output, code) in zip(CASES, pool.map(run_table, [case[1] for case in CASES])):
            missing = lacks(wanted, output)
            is_right = missing is None and code == status
            count, failed = count + 1, failed + (not is_right)
            print(f'{"ok" if is_right else "not ok"} {count} - {promise}')
            if not is_right:
                print(f'# exit status {code}, expected {status}; missing: {missing}; output:')
                print('\n'.join(f'# {line}' for line in output.splitlines()))
    count += 1
    is_left = leaves_a_job_behind()
    failed += is_left
    print(f'{"not ok" if is_left else "ok"} {count} - no job survives when the runner is terminated')
    print(f'1..{count}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
