#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes a picture of the upper part of a report's page, for observe.md: see pictures.sh.

Needs Debian's chromium, and: pip install playwright pillow.

usage: page_png.py PAGE PICTURE"""

import os
import sys

from PIL import Image
from playwright.sync_api import sync_playwright

WIDTH, COLORS = 1100, 64
LAST = '#ranks'  # the part of the page at which the picture ends


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    page_path, picture = sys.argv[1:]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path='/usr/bin/chromium', args=['--no-sandbox'])
        page = browser.new_page(viewport={'width': WIDTH, 'height': 900}, color_scheme='light')
        page.goto(f'file://{os.path.abspath(page_path)}')
        box = page.locator(LAST).bounding_box()
        page.screenshot(path=picture, full_page=True,
                        clip={'x': 0, 'y': 0, 'width': WIDTH, 'height': box['y'] + box['height'] + 12})
        browser.close()
    Image.open(picture).quantize(COLORS).save(picture, optimize=True)


if __name__ == '__main__':
    main()
