# SPDX-License-Identifier: Apache-2.0
"""Shared by the programs that check timelines: they print TAP without a plan."""
import json


class Checks:
    """Prints TAP lines and counts the failures."""

    def __init__(self):
        self.failures = 0

    def ok(self, passed, promise, why=''):
        print(f'{"ok" if passed else "not ok"} - {promise}')
        if not passed:
            self.failures += 1
            print(f'# {why}')

    def run(self, look, *arguments):
        """Calls a function that reads timelines; returns the exit status of the program."""
        try:
            look(*arguments)
        except (OSError, ValueError) as error:
            self.ok(False, 'the timeline exists and is valid JSON', error)
        return 1 if self.failures else 0


def read(path):
    """Returns the events of a timeline."""
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def names_of(events):
    """Returns the name of each row, keyed by the numbers of its process and thread."""
    return {(event['pid'], event.get('tid')): event['args'].get('name') for event in events
            if event['ph'] == 'M' and event['name'] in ('process_name', 'thread_name')}
