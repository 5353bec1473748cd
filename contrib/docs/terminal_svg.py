#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a command and its output as a terminal, for the pages: see pictures.sh. Needs: pip install rich

usage: terminal_svg.py COMMAND COLUMNS <OUTPUT >PICTURE"""

import io
import re
import sys

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

# Pages may not load fonts from elsewhere, so the reader's own monospace font has to do.
FONT_FACES = re.compile(r'@font-face \{\{.*?\}\}\s*', re.DOTALL)
FRAME = FONT_FACES.sub('', CONSOLE_SVG_FORMAT).replace('Fira Code', 'ui-monospace, Menlo, Consolas, DejaVu Sans Mono')


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    command, columns = sys.argv[1], int(sys.argv[2])
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system='truecolor')
    console.print(Text('$ ' + command, style='bold'))
    console.print(Text.from_ansi(sys.stdin.read().rstrip('\n')))
    sys.stdout.write(console.export_svg(title='', code_format=FRAME, unique_id='terminal'))


if __name__ == '__main__':
    main()
