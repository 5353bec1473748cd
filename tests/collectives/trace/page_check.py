# SPDX-License-Identifier: Apache-2.0
"""Opens pages of straggler reports in headless Chromium and prints TAP.

page_check.py SAMPLE FRAME    SAMPLE is the program page_sample, FRAME the file report.html

Chromium is driven through a pipe (the DevTools protocol), so that no package of Python is needed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

LARGEST = 5 * 10 ** 6  # bytes of a page
BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
LOCKED_OUT = ('--no-sandbox',) if os.geteuid() == 0 else ()  # Chromium refuses root with a sandbox
# Text that the page shows: the boxes of all leaves with text that overlap another one's.
OVERLAPS = '''(() => {
  const boxes = [...document.querySelectorAll('svg text, td, th, p, h1, h2')].filter(each => each.textContent.trim())
    .map(each => [each, each.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
  const found = [];
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const [a, one] = boxes[i], [b, other] = boxes[j];
    if (one.left + 1 < other.right && other.left + 1 < one.right && one.top + 2 < other.bottom &&
        other.top + 2 < one.bottom) found.push(a.textContent + ' / ' + b.textContent);
  }
  return found.slice(0, 5);
})()'''
# The contrast of text and background, as WCAG defines it.
CONTRAST = '''(() => {
  const light = text => text.match(/[0-9.]+/g).slice(0, 3).map(each => each / 255)
    .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0);
  const back = light(getComputedStyle(document.body).backgroundColor);
  const ratio = element => {
    const fore = light(getComputedStyle(element).color);
    return (Math.max(fore, back) + 0.05) / (Math.min(fore, back) + 0.05);
  };
  return [...document.querySelectorAll('h2, p, td, th')].map(ratio).reduce((a, b) => Math.min(a, b), 99);
})()'''
# Colours of the heat map: of the late rank's row and of the first row, in the middle of the canvas.
ROWS = '''(() => {
  const canvas = document.querySelector('#map canvas'), context = canvas.getContext('2d');
  const at = rank => [...context.getImageData(canvas.width / 2, (rank + 0.5) * canvas.height / SIZE, 1, 1).data].join();
  return [at(LATE), at(0)];
})()'''

# Words of tables that are broken into two lines; names of tensors and lists of CPUs may be.
BROKEN = '''(() => {
  const found = [], cells = [...document.querySelectorAll('th, td:not(.long)')];
  for (const node of cells.flatMap(cell => [...cell.childNodes])) for (const word of (node.data || '').matchAll(/\\w+/g)) {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    if (range.getClientRects().length > 1) found.push(word[0]);
  }
  return found;
})()'''
# The marks above the bars of "Where the time goes", whether its longest bar shows waiting, and the end of the heat
# map's legend.
STALL = '''(() => {
  const texts = chosen => [...document.querySelectorAll(chosen)].map(each => each.textContent);
  const path = document.querySelector('#parts path.waiting'), point = path.ownerSVGElement.createSVGPoint();
  const box = document.querySelector('#parts .cuts path').getBBox();
  point.x = box.x + box.width / 2;
  point.y = 20;
  return [path.isPointInFill(point), texts('#parts .cuts text'), texts('#parts .cuts path').length,
    texts('#map svg:last-child text').pop()];
})()'''


class Browser:
    def __init__(self, path, home):
        command_out, self._commands = os.pipe()
        self._answers, answer_in = os.pipe()

        def place_pipes():  # the protocol wants descriptors 3 and 4
            spare = [os.dup(command_out), os.dup(answer_in)]
            high = [os.dup2(each, 20 + i) for i, each in enumerate(spare)]
            for i, each in enumerate(high):
                os.dup2(each, 3 + i)

        self._process = subprocess.Popen(
            [path, '--headless', '--disable-gpu', '--remote-debugging-pipe', f'--user-data-dir={home}', *LOCKED_OUT],
            preexec_fn=place_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(command_out)
        os.close(answer_in)
        self._rest = b''
        self._number = 0
        self.events = []
        self._session = None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self._session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for each in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{each}.enable')
        self.call('Network.emulateNetworkConditions', offline=True, latency=0, downloadThroughput=-1,
                  uploadThroughput=-1)

    def _receive(self):
        while b'\0' not in self._rest:
            part = os.read(self._answers, 1 << 16)
            if not part:
                raise RuntimeError(f'{self._process.args[0]} has ended')
            self._rest += part
        message, _, self._rest = self._rest.partition(b'\0')
        return json.loads(message)

    def call(self, method, **params):
        self._number += 1
        request = {'id': self._number, 'method': method, 'params': params}
        if self._session:
            request['sessionId'] = self._session
        os.write(self._commands, json.dumps(request).encode() + b'\0')
        while True:
            message = self._receive()
            if message.get('id') == self._number:
                if 'error' in message:
                    raise RuntimeError(f'{method}: {message["error"]}')
                return message['result']
            self.events.append(message)

    def value_of(self, expression):
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True)
        assert 'exceptionDetails' not in result, result
        return result['result'].get('value')

    def open(self, path, scheme, width=1280):
        """Opens a file. Returns what the page has complained about."""
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        self.events.clear()
        self.call('Page.navigate', url=f'file://{path}')
        while not any(each.get('method') == 'Page.loadEventFired' for each in self.events):
            self.events.append(self._receive())
        return [each['params'] for each in self.events
                if each.get('method') in ('Runtime.exceptionThrown', 'Runtime.consoleAPICalled', 'Log.entryAdded')]

    def close(self):
        try:
            self.call('Browser.close')
        except RuntimeError:
            pass  # it has ended before it could answer
        self._process.wait()


count = 0


def ok(passed, promise, *found):
    global count
    count += 1
    print(f'{"ok" if passed else "not ok"} {count} - {promise}')
    if not passed:
        print(*(f'# {each}' for each in found), sep='\n')
    return passed


def check(browser, path, ranks, steps):
    late, backs = ranks // 3, []
    name = f'the page of {ranks} ranks and {steps} steps'
    ok(os.path.getsize(path) < LARGEST, f'{name} is smaller than 5 MB', os.path.getsize(path))
    for scheme in ('light', 'dark'):
        complaints = browser.open(path, scheme)
        ok(not complaints, f'{name} opens without an error ({scheme})', complaints)
        print(f'# {os.path.getsize(path)} bytes, drawn in {browser.value_of("document.documentElement.dataset.drawnMs")} ms')
        verdict = browser.value_of('document.getElementById("verdict").textContent')
        ok(verdict.startswith(f'Rank {late} on node{late // 8 + 1} was the last in') and "section 'data'" in verdict,
           f'{name} names the late rank and its section ({scheme})', verdict)
        rows = browser.value_of(ROWS.replace('SIZE', str(ranks)).replace('LATE', str(late)))
        ok(rows[0] != rows[1], f'the heat map of {ranks} ranks shows the late one ({scheme})', rows)
        ok(browser.value_of('document.querySelector("#bindings table").rows.length') >= min(ranks, 32) + 1,
           f'{name} shows where the ranks run ({scheme})')
        overlaps = browser.value_of(OVERLAPS)
        ok(not overlaps, f'no text of {name} lies on another ({scheme})', overlaps)
        contrast = browser.value_of(CONTRAST)
        ok(contrast > 4.5, f'the text of {name} can be read ({scheme})', contrast)
        backs.append(browser.value_of('getComputedStyle(document.body).backgroundColor'))
    ok(backs[0] != backs[1], f'{name} is light or dark as the reader wants', backs)
    for width in (900, 1100):
        browser.open(path, 'light', width)
        broken = browser.value_of(BROKEN)
        ok(not broken, f'{name} breaks no word in a window of {width} pixels', broken)


def check_stall(browser, path):
    browser.open(path, 'light')
    found = browser.value_of(STALL)
    ok(found == [True, ['25.1 s'], 1, '25.0 s'], 'the wait in a step far longer than most is shown, with its length', found)
    overlaps = browser.value_of(OVERLAPS)
    ok(not overlaps, 'its mark lies on no other text', overlaps)


def main():
    sample, frame = sys.argv[1:]
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        print('1..0 # SKIP no chromium: apt-get install chromium')
        return
    with open(frame, encoding='utf-8') as file:
        if 'D3, https://d3js.org' not in file.read():
            print('1..0 # SKIP hvd was built without D3: apt-get install node-d3')
            return
    with tempfile.TemporaryDirectory(prefix='hvd-page-', ignore_cleanup_errors=True) as home:
        browser = Browser(path, os.path.join(home, 'profile'))
        for ranks, steps, stall_ms in ((8, 300, 0), (1024, 10000, 0), (4, 100, 25000)):
            page = os.path.join(home, f'{ranks}.html')
            with open(page, 'wb') as file:
                subprocess.run([sample, frame, str(ranks), str(steps), str(stall_ms)], stdout=file, check=True)
            if stall_ms:
                check_stall(browser, page)
            else:
                check(browser, page, ranks, steps)
        browser.close()
    print(f'1..{count}')


if __name__ == '__main__':
    main()
