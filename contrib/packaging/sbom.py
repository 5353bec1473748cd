#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the SBOM of a package beside it, as SPDX 2.3 in JSON: its files with checksums, and what it depends on.

usage: sbom.py PACKAGE.deb|PACKAGE.rpm|PACKAGE.whl|NAME-VERSION.tar.gz      writes PACKAGE.spdx.json
A deb needs dpkg-deb, an rpm needs rpm and rpm2archive. SOURCE_DATE_EPOCH, in seconds since 1970, is the time of
creation in the SBOM, so that two builds of one commit have the same SBOM.
"""

import collections
import datetime
import email
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import uuid
import zipfile

Package = collections.namedtuple('Package', 'name version depends files')  # files: {path: contents}


def output_of(*command, stdin=None):
    return subprocess.run(command, check=True, stdin=stdin, stdout=subprocess.PIPE).stdout


def files_of_tar(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {re.sub(r'^\./', '', member.name): tar.extractfile(member).read()
                for member in tar if member.isfile() or member.islnk()}


def read_deb(path):
    fields = output_of('dpkg-deb', '--show', '--showformat', '${Package}\n${Version}\n${Depends}', path).decode()
    name, version, depends = fields.split('\n', 2)
    files = files_of_tar(output_of('dpkg-deb', '--fsys-tarfile', path))
    return Package(name, version, [each.strip() for each in depends.split(',')] if depends else [], files)


def read_rpm(path):
    fields = output_of('rpm', '--query', '--package', '--queryformat', '%{NAME}\n%{VERSION}-%{RELEASE}', path).decode()
    depends = output_of('rpm', '--query', '--package', '--requires', path).decode().splitlines()
    with open(path, 'rb') as package:
        files = files_of_tar(output_of('rpm2archive', '-', stdin=package))
    of_other_packages = sorted({each for each in depends if not each.startswith('rpmlib(')})
    return Package(*fields.split('\n'), of_other_packages, files)


def read_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist() if not name.endswith('/')}
    metadata = next(text for name, text in files.items() if name.endswith('.dist-info/METADATA'))
    fields = email.message_from_bytes(metadata)
    return Package(fields['Name'], fields['Version'], fields.get_all('Requires-Dist', []), files)


def read_source(path):
    name, version = os.path.basename(path)[:-len('.tar.gz')].split('-', 1)
    with open(path, 'rb') as archive:
        return Package(name, version, [], files_of_tar(archive.read()))


READERS = {'.deb': read_deb, '.rpm': read_rpm, '.whl': read_wheel, '.tar.gz': read_source}


def read_package(path):
    for suffix, read in READERS.items():
        if path.endswith(suffix):
            return read(path)
    raise SystemExit(f'sbom.py: {path} ends with none of {" ".join(READERS)}')


def time_of_creation():
    seconds = os.environ.get('SOURCE_DATE_EPOCH', '')
    if not seconds.isdigit():
        raise SystemExit(f'sbom.py: SOURCE_DATE_EPOCH is {seconds!r}: set it to the time of the commit, '
                         'which `git log -1 --format=%ct` prints')
    created = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    return created.strftime('%Y-%m-%dT%H:%M:%SZ')


def digest(algorithm, content):
    return {'algorithm': algorithm.upper(), 'checksumValue': hashlib.new(algorithm, content).hexdigest()}


def describe_files(files):
    return [{'SPDXID': f'SPDXRef-File-{number}', 'fileName': './' + path,
             'checksums': [digest('sha1', content), digest('sha256', content)],
             'licenseConcluded': 'NOASSERTION', 'copyrightText': 'NOASSERTION'}
            for number, (path, content) in enumerate(sorted(files.items()))]


def verification_code(files):
    """Returns the digest by which SPDX 2.3 identifies the set of a package's files."""
    digests = sorted(hashlib.sha1(content).hexdigest() for content in files.values())
    return hashlib.sha1(''.join(digests).encode()).hexdigest()


def name_in(dependency):
    """Returns the name without the versions. A choice between packages stays as it is."""
    is_choice = '|' in dependency or dependency.startswith('(')
    return dependency if is_choice else re.match('[^ <>=~!;]+', dependency)[0]


def describe_dependencies(depends):
    texts = {}
    for dependency in depends:
        texts.setdefault(name_in(dependency), []).append(dependency)
    return [{'SPDXID': f'SPDXRef-Depends-{number}', 'name': name, 'comment': ', '.join(texts[name]),
             'downloadLocation': 'NOASSERTION', 'filesAnalyzed': False}
            for number, name in enumerate(sorted(texts))]


def relate(source, relation, targets):
    return [{'spdxElementId': source, 'relationshipType': relation, 'relatedSpdxElement': target['SPDXID']}
            for target in targets]


def describe(path):
    package = read_package(path)
    with open(path, 'rb') as file:
        content = file.read()
    this = {'SPDXID': 'SPDXRef-Package', 'name': package.name, 'versionInfo': package.version,
            'packageFileName': os.path.basename(path), 'checksums': [digest('sha256', content)],
            'downloadLocation': 'NOASSERTION', 'licenseDeclared': 'Apache-2.0', 'licenseConcluded': 'Apache-2.0',
            'copyrightText': 'NOASSERTION', 'filesAnalyzed': True,
            'packageVerificationCode': {'packageVerificationCodeValue': verification_code(package.files)}}
    files = describe_files(package.files)
    needed = describe_dependencies(package.depends)
    identity = uuid.uuid5(uuid.NAMESPACE_OID, hashlib.sha256(content).hexdigest())
    return {
        'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT',
        'name': os.path.basename(path), 'documentNamespace': f'urn:uuid:{identity}',
        'creationInfo': {'created': time_of_creation(), 'creators': ['Tool: hvd-sbom']},
        'packages': [this, *needed], 'files': files,
        'relationships': relate('SPDXRef-DOCUMENT', 'DESCRIBES', [this])
        + relate('SPDXRef-Package', 'CONTAINS', files) + relate('SPDXRef-Package', 'DEPENDS_ON', needed),
    }


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    path = sys.argv[1]
    document = describe(path)
    with open(path + '.spdx.json', 'w', encoding='utf-8') as out:
        json.dump(document, out, indent=1)
        out.write('\n')


if __name__ == '__main__':
    main()
