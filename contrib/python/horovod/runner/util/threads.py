# SPDX-License-Identifier: Apache-2.0
"""Runs functions in threads."""

import contextlib
import queue
import threading


def in_thread(target, args=(), name=None, daemon=True, silent=False):
    """Starts a thread that calls ``target(*args)``; returns the thread. ``silent``: ignores
    exceptions of the function."""
    _check_arguments(args)

    def call():
        with contextlib.suppress(*[Exception] if silent else []):
            target(*args)

    thread = threading.Thread(target=call, name=name, daemon=daemon)
    thread.start()
    return thread


def on_event(event, func, args=(), stop=None, check_stop_interval_s=1.0, daemon=True,
             silent=False):
    """Starts a thread that calls ``func(*args)`` when the event is set, unless the event ``stop``
    is set first; returns the thread."""
    if event is None:
        raise ValueError('Event must not be None')
    _check_arguments(args)
    if stop is None and not daemon:
        raise ValueError('Stop event must be given for non-daemon event thread')

    def wait():
        if stop is None:
            event.wait()
        while stop is not None and not stop.is_set():
            if event.wait(check_stop_interval_s):
                break
        if stop is None or not stop.is_set():
            func(*args)

    return in_thread(wait, daemon=daemon, silent=silent)


def execute_function_multithreaded(fn, args_list, block_until_all_done=True,
                                   max_concurrent_executions=1000):
    """Calls the function in threads, once with each list of arguments in args_list, with at most
    max_concurrent_executions calls at a time. Returns {index in args_list: result}; without
    block_until_all_done, returns None at once. RuntimeError if a call fails."""
    calls, results = queue.Queue(), {}
    for numbered in enumerate(args_list):
        calls.put(numbered)

    def work():
        while True:
            try:
                number, arguments = calls.get_nowait()
            except queue.Empty:
                return
            results[number] = fn(*arguments)

    count = min(max_concurrent_executions, len(args_list))
    threads = [in_thread(work, daemon=not block_until_all_done) for _ in range(count)]
    if not block_until_all_done:
        return None
    for thread in threads:
        while thread.is_alive():
            thread.join(0.5)  # lets signal handlers run
    if len(results) != len(args_list):
        name = getattr(fn, '__name__', repr(fn))
        raise RuntimeError(f'Some threads for func {name} did not complete successfully.')
    return results


def _check_arguments(args):
    if not isinstance(args, tuple):
        raise ValueError(f'args must be a tuple, not {type(args)}, for a single argument use '
                         '(arg,)')
