# SPDX-License-Identifier: Apache-2.0
"""The rows of the fault table: a fault of a job, and the expected outcome."""

import dataclasses

# Seconds that jobs last: SHORT without a fatal fault, otherwise until the fault, at most LONG.
SHORT, LONG = 3, 120
STALL_CHECK, STALL_SHUTDOWN = 4, 12
# Seconds after which hvd_init gives up. A rank may exit with 0 while the others are in hvd_init; the
# launcher does not take that for a failure, so the others wait for this time.
START_TIMEOUT = 10
NOTICE = 5  # more than the 3.5 s after which hvd takes a silent link for dead (HVD_SOCKET_DEAD_AFTER_MS)

PLACES = ('boot', 'init', 'steps', 'small', 'large', 'allgather', 'broadcast', 'alltoall',
          'reducescatter', 'barrier', 'shutdown')
COLLECTIVES = PLACES[3:10]
FATAL = {'kill': (137,), 'segv': (139,), 'exit': (7,), 'leave': (3,)}
WORDS = {'kill': 'kill -9', 'segv': 'SIGSEGV', 'exit': '_exit(7)', 'leave': '_exit(0)',
         'raise': 'exception', 'os_exit': 'os._exit(7)', 'sys_exit': 'sys.exit(0)'}


@dataclasses.dataclass(frozen=True)
class Case:
    """A row of the table. ``places``: the place of the fault; one is drawn for each run. ``act``: how the job is
    disturbed from outside when the fault is due. ``fate``: the outcome for the ranks other than the victim:

    told        their error names the victim and the operation
    told far    their error names a rank of the other node
    told early  their error names the victim, in hvd_init
    told first  like told early, for at least one rank; hvdrun may end the others before they have an error
    left        the victim's Python shuts hvd down: their error is Horovod's sentence
    ended       hvdrun ends them and names the victim
    done        they succeed
    any         told or done
    gone        they end with hvdrun
    """
    name: str
    how: str
    places: tuple
    fate: str
    codes: tuple
    program: str = 'C'
    layouts: tuple = ('2,2', '2,2', '4')
    seconds: float = LONG
    act: str = ''
    wrap: tuple = ()  # a command before each rank's program
    shm: str = ''  # a shell command before the job
    memory: int = 0  # limit of the job's cgroup, in bytes
    cable: tuple = ()
    settings: tuple = ()
    notice: float = NOTICE  # within how many seconds all survivors are told
    is_certain: bool = True  # bad luck cannot make it fail, so the test includes it


def _death(how, place):
    """Returns the fields of a Case that depend on how the victim dies and where."""
    if place == 'shutdown':
        codes = (0, 3) if how == 'leave' else (*FATAL[how], 3)
        return {'fate': 'any', 'codes': codes, 'seconds': 0.3}
    if place not in ('boot', 'init'):
        return {'fate': 'told', 'codes': FATAL[how]}
    if how == 'leave' and place == 'init':
        # hvdrun takes exit status 0 for success, so a rank that waits for the victim learns of it only at the time
        # limit. A rank that was connected to the victim learns at once; then hvdrun ends all.
        return {'fate': 'told first', 'codes': FATAL[how], 'notice': START_TIMEOUT + NOTICE,
                'settings': (f'HVD_START_TIMEOUT={START_TIMEOUT}',), 'is_certain': False}
    return {'fate': 'told early' if how == 'leave' else 'ended', 'codes': FATAL[how]}


def _deaths():
    for how in FATAL:
        for place in PLACES:
            yield Case(f'{WORDS[how]}, {place}', how, (place,), **_death(how, place))


def _python():
    for how, codes in {'raise': (1,), 'os_exit': (7,), 'sys_exit': (3,)}.items():
        for place in ('boot', 'init', 'steps', 'objects'):
            early = place in ('boot', 'init')
            if how != 'sys_exit' or not early:  # there, sys.exit(0) is the same as _exit(0)
                fate = 'ended' if early else 'told' if how == 'os_exit' else 'left'
                yield Case(f'{WORDS[how]}, {place}', how, (place,), fate, codes, program='Python')


def _stops():
    settings = (f'HOROVOD_STALL_CHECK_TIME_SECONDS={STALL_CHECK}',
                f'HOROVOD_STALL_SHUTDOWN_TIME_SECONDS={STALL_SHUTDOWN}')
    places = ('steps', *COLLECTIVES)
    yield Case('SIGSTOP, shorter than the stall times', 'stop', places, 'done', (0,), seconds=SHORT,
               act='continue', settings=settings)
    yield Case('SIGSTOP, for longer', 'stop', places, 'told', (3,), settings=settings,
               notice=2 * STALL_SHUTDOWN + NOTICE, is_certain=False)  # see frozen.toml


def _links():
    places = ('steps', *COLLECTIVES)
    far = {'layouts': ('2,2',)}
    yield Case('link down for 1 s', 'mark', places, 'done', (0,), act='blink', seconds=SHORT,
               **far)
    yield Case('link down for good', 'mark', places, 'told far', (3,), act='cut', **far)
    for name, cable in {'5 % loss': (5, 0, 0), '100 ms delay': (0, 100, 0),
                        '5 ms delay, 25 % reordered': (0, 5, 25)}.items():
        yield Case(f'link with {name}', 'mark', places, 'done', (0,), cable=cable, seconds=SHORT,
                   is_certain=cable[0] == 0, **far)  # a link that loses six packets in a row looks dead
        yield Case(f'link with {name}, kill -9', 'kill', places, 'told', (137,), cable=cable, **far)


def _limits():
    yield Case('/dev/shm full', 'mark', ('steps', *COLLECTIVES), 'done', (0,), seconds=SHORT,
               shm='mount -o remount,size=4k /dev/shm && head -c 4096 /dev/zero >/dev/shm/full')
    yield Case('descriptors full before init', 'files', ('boot',), 'ended', (3,))
    yield Case('descriptors full', 'files', ('steps', *COLLECTIVES), 'done', (0,), seconds=SHORT)
    # Only places where the other ranks allocate nothing, because the kernel might kill a rank that does.
    for place in ('boot', 'steps', 'large', 'barrier'):
        yield Case(f'memory of the cgroup full, {place}', 'memory', (place,),
                   'ended' if place == 'boot' else 'told', (137,), memory=1 << 30)
    yield Case('memlock 64 KiB', 'mark', ('steps', *COLLECTIVES), 'done', (0,), seconds=SHORT,
               wrap=('setpriv', '--bounding-set=-ipc_lock', '--inh-caps=-ipc_lock',
                     'prlimit', '--memlock=65536:65536'))
    yield Case("clock of a rank's process jumps by 1 h", 'clock', ('steps', *COLLECTIVES), 'done',
               (0,), seconds=SHORT)
    yield Case('hvdrun killed', 'mark', ('init', 'steps', *COLLECTIVES), 'gone', (-9, 137),
               act='kill hvdrun')


CASES = [*_deaths(), *_python(), *_stops(), *_links(), *_limits()]
