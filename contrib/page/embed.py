#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the frame of the report's page: page.html with its style, its script and D3 inside. libhvd puts the data of
a job in place of @DATA@.

usage: embed.py D3|'' HTML STYLE SCRIPT OUT
   D3  the file d3.min.js; '': none, the page has no charts"""

import os
import sys

# D3's license must be part of every copy. It lies beside dist/ in npm's package; Debian keeps it apart.
DEBIAN_LICENSE = '/usr/share/doc/node-d3/copyright'


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def library(path):
    """Returns the script of D3, with its license in a comment."""
    if not path:
        return '// none'
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(path))), 'LICENSE')
    license_path = next((each for each in (own, DEBIAN_LICENSE) if os.path.exists(each)), None)
    if license_path is None:
        sys.exit(f'embed.py: {path} has no license: neither {own} nor {DEBIAN_LICENSE} exists. Put the file LICENSE of '
                 'D3 there, because every copy of D3 must contain it')
    script, terms = read(path), read(license_path)
    if '</script' in script.lower() or '*/' in terms or '</script' in terms.lower():
        sys.exit(f'embed.py: {path} or {license_path} contains "</script" or "*/", so it cannot be part of a page: '
                 'take the d3.min.js of D3 5, 6 or 7')
    return f'/*\nD3, https://d3js.org\n\n{terms}*/\n{script}'


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    d3, html, style, script, out = sys.argv[1:]
    page = read(html)
    for mark, text in (('@STYLE@', read(style)), ('@SCRIPT@', read(script)), ('@D3@', library(d3))):
        page = page.replace(mark, text.rstrip('\n'), 1)
    with open(out, 'w', encoding='utf-8') as file:
        file.write(page)


if __name__ == '__main__':
    main()
