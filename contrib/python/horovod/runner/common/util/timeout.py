# SPDX-License-Identifier: Apache-2.0
"""A time limit for a task of several steps."""

import time


class TimeoutException(Exception):
    """The time limit has passed."""

    def __init__(self, message):
        self.message = message
        super().__init__(message)


class Timeout:
    """A time limit that ends ``timeout`` seconds from now. ``message``: the text of the
    TimeoutException, which may contain {activity}."""

    def __init__(self, timeout, message):
        self._seconds = timeout
        self._end = time.monotonic() + timeout
        self._message = message

    def remaining(self):
        """Returns the remaining seconds, at least 0."""
        return max(0, self._end - time.monotonic())

    def timed_out(self):
        """Whether the time limit has passed."""
        return time.monotonic() > self._end

    def check_time_out_for(self, activity):
        """Raises TimeoutException with the message if the time limit has passed."""
        if self.timed_out():
            message = self._message.format(activity=activity).rstrip()
            raise TimeoutException(f'{message}{"" if message.endswith(".") else "."} Timeout '
                                   f'after {self._seconds} seconds.')
