#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""contrib/packaging/sbom.py describes a package of each kind, twice with the same text.

usage: sbom_test.py SOURCE_ROOT"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

CONTENT = b'one file\n'
CONTROL = '''Package: one
Version: 2.5-1
Architecture: all
Maintainer: The Test <test@example.org>
Depends: libc6 (>= 2.34), slurm-wlm (>= 22.05~) | slurm-smd (>= 22.05~), slurm-wlm (<< 22.06~) | slurm-smd (<< 22.06~)
Description: a package with one file
'''
SPEC = '''Name: one
Version: 2.5
Release: 1
Summary: a package with one file
License: Apache-2.0
BuildArch: noarch
Requires: python3 >= 3.8
Requires: (slurm < 22.06 or slurm-ohpc < 22.06)
%description
A package with one file.
%install
mkdir -p %{buildroot}/usr/share
printf 'one file\\n' >%{buildroot}/usr/share/one
%files
/usr/share/one
'''
METADATA = 'Metadata-Version: 2.1\nName: one\nVersion: 2.5\nRequires-Dist: cloudpickle>=2\n'
DEPENDS_OF_DEB = {
    'libc6': 'libc6 (>= 2.34)', 'slurm-wlm (>= 22.05~) | slurm-smd (>= 22.05~)': None,
    'slurm-wlm (<< 22.06~) | slurm-smd (<< 22.06~)': None}
DEPENDS_OF_RPM = {'python3': 'python3 >= 3.8', '(slurm < 22.06 or slurm-ohpc < 22.06)': None}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def make_deb(work):
    write(f'{work}/deb/DEBIAN/control', CONTROL)
    write(f'{work}/deb/usr/share/one', CONTENT)
    subprocess.run(['dpkg-deb', '--root-owner-group', '--build', f'{work}/deb', f'{work}/one.deb'], check=True,
                   stdout=subprocess.DEVNULL)
    return f'{work}/one.deb', '2.5-1', './usr/share/one', DEPENDS_OF_DEB


def make_rpm(work):
    spec = write(f'{work}/one.spec', SPEC)
    subprocess.run(['rpmbuild', '-bb', '--quiet', '--define', f'_topdir {work}/rpmbuild', spec], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f'{work}/rpmbuild/RPMS/noarch/one-2.5-1.noarch.rpm', '2.5-1', './usr/share/one', DEPENDS_OF_RPM


def make_wheel(work):
    path = f'{work}/one-2.5-py3-none-any.whl'
    with zipfile.ZipFile(path, 'w') as wheel:
        wheel.writestr('one/__init__.py', CONTENT)
        wheel.writestr('one-2.5.dist-info/METADATA', METADATA)
    return path, '2.5', './one/__init__.py', {'cloudpickle': 'cloudpickle>=2'}


def make_source(work):
    path = f'{work}/one-2.5.tar.gz'
    with tarfile.open(path, 'w:gz') as archive:
        archive.add(write(f'{work}/source/one', CONTENT), 'one-2.5/one')
    return path, '2.5', './one-2.5/one', {}


KINDS = {'a deb': (make_deb, 'dpkg-deb'), 'an rpm': (make_rpm, 'rpmbuild'), 'a wheel': (make_wheel, 'python3'),
         'an archive of the source': (make_source, 'python3')}


def sbom_of(sbom_py, path):
    environment = {**os.environ, 'SOURCE_DATE_EPOCH': '86400'}
    subprocess.run([sys.executable, sbom_py, path], check=True, env=environment)
    with open(path + '.spdx.json', encoding='utf-8') as file:
        return file.read()


def problems(text, path, version, file, depends):
    """Returns what is wrong in an SBOM."""
    document = json.loads(text)
    this, *needed = document['packages']
    with open(path, 'rb') as package:
        digest = hashlib.sha256(package.read()).hexdigest()
    sums = {each['fileName']: {sum['algorithm']: sum['checksumValue'] for sum in each['checksums']}
            for each in document['files']}
    code = hashlib.sha1(''.join(sorted(sum['SHA1'] for sum in sums.values())).encode()).hexdigest()
    ids = [each['SPDXID'] for each in document['packages'] + document['files']]
    related = [each['relatedSpdxElement'] for each in document['relationships']]
    found = {each['name']: each['comment'] for each in needed}
    expected = {name: text or name for name, text in depends.items()}
    promises = {
        'name and version': (this['name'], this['versionInfo']) == ('one', version),
        'checksum of the package': this['checksums'] == [{'algorithm': 'SHA256', 'checksumValue': digest}],
        'checksum of the file': sums.get(file, {}).get('SHA256') == hashlib.sha256(CONTENT).hexdigest(),
        'verification code': this['packageVerificationCode'] == {'packageVerificationCodeValue': code},
        'time': document['creationInfo']['created'] == '1970-01-02T00:00:00Z',
        'relations of all elements': sorted(ids) == sorted(related),
        f'dependencies {found}': found == expected,
    }
    return [each for each, holds in promises.items() if not holds]


def main():
    sbom_py = os.path.join(sys.argv[1], 'contrib', 'packaging', 'sbom.py')
    failed = False
    for number, (kind, (make, tool)) in enumerate(KINDS.items(), 1):
        promise = f'{number} - the SBOM of {kind} has its files, its dependencies and no time but that of the commit'
        if not shutil.which(tool):
            print(f'ok {promise} # SKIP no {tool} here')
            continue
        with tempfile.TemporaryDirectory() as work:
            path, *expected = make(work)
            text = sbom_of(sbom_py, path)
            found = problems(text, path, *expected)
            if sbom_of(sbom_py, path) != text:
                found.append('the second one differs')
        print('not ok' if found else 'ok', promise)
        for each in found:
            print(f'# wrong: {each}')
        failed = failed or bool(found)
    print(f'1..{len(KINDS)}')
    return failed


sys.exit(main())
