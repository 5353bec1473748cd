# SPDX-License-Identifier: Apache-2.0
"""What programs that look at timelines have in common: they print TAP without a plan."""
import json


class Checks:
    """The lines so far, and whether one failed."""

    def __init__(self):
        self.failures = 0

    def ok(self, passed, promise, why=''):
        print(f'{"ok" if passed else "not ok"} - {promise}')
        if not passed:
            self.failures += 1
            print(f'# {why}')

    def run(self, look, *arguments):
        """Calls the function, which reads timelines; returns the exit status of the program."""
        try:
            look(*arguments)
        except (OSError, ValueError) as error:
            self.ok(False, 'the timeline is there, and JSON', error)
        return 1 if self.failures else 0


def read(path):
    """The events of a timeline."""
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def names_of(events):
    """The name of each row, by the numbers of its process and thread."""
    return {(event['pid'], event.get('tid')): event['args'].get('name') for event in events
            if event['ph'] == 'M' and event['name'] in ('process_name', 'thread_name')}
