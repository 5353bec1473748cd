# SPDX-License-Identifier: Apache-2.0
"""Looks for every package horovod that a Python finds, and makes virtual environments find hvd's.

hvd-info runs this file by that Python, outside of the package, so nothing of hvd is imported here:
the package that Python finds may be another one.
usage: neighbours.py --python | --report | --into-venv DIR | --out-of-venv DIR
"""

import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import site
import subprocess
import sys
import sysconfig

PACKAGES = ('horovod', 'hvd')
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PTH = 'hvd.pth'
# Distributions whose versions a report about a fault needs, without the suffixes of their builds, such as -cu12.
FRAMEWORKS = ('accelerate', 'cloudpickle', 'deepspeed', 'horovod', 'hvd', 'jax', 'jaxlib', 'keras', 'lightning', 'mpi4py',
              'mxnet', 'numpy', 'nvidia-nccl', 'pyspark', 'pytorch-lightning', 'ray', 'tensorflow', 'tf-keras', 'torch',
              'transformers')
BUILD = re.compile(r'-(cpu|gpu|intel|rocm|cu\d+(mkl)?)$')

# Prints where Python finds horovod.
FIND = ('import importlib.util as util; spec = util.find_spec("horovod"); '
        'print(spec and spec.origin or "")')


class Failure(Exception):
    """The sentence to print before the program ends with status 1."""


class Package:
    """A package that Python finds: its folder, its entry in sys.path, and its distributions. The
    entry is None if a finder of its own finds the package, as in editable installations."""

    def __init__(self, name, origin, entry):
        self.entry = entry
        self.folder = os.path.dirname(os.path.abspath(origin))
        if os.path.basename(origin) != '__init__.py':
            self.folder = os.path.abspath(origin)  # a file horovod.py
        self.parent = os.path.dirname(self.folder)
        self.is_own = is_own(self.parent)
        self.owners = owners(name, self.parent)

    def __str__(self):
        owner = ' and '.join(self.owners)
        return (self.folder + (', hvd\'s' if self.is_own else ', not hvd\'s') +
                (f', installed by {owner}' if owner else ''))

    def is_same(self, other):
        return os.path.realpath(self.folder) == os.path.realpath(other.folder)


def is_own(parent):
    """Tells whether the package horovod in ``parent`` is hvd's: only hvd's loads libhvd."""
    try:
        with open(os.path.join(parent, 'horovod', 'common', 'library.py'), 'rb') as file:
            return b'libhvd' in file.read()
    except OSError:
        return False


def owners(name, parent):
    """Returns name and version of each distribution that installed the package into ``parent``: of
    those whose list of files has the package, else of those that have its name. meson installs no
    list of files, and the metadata of horovod in hvd's wheel has none."""
    listed, named = [], []
    for each in importlib.metadata.distributions(path=[parent]):
        files = each.read_text('RECORD') or each.read_text('installed-files.txt')
        project = each.metadata['Name'] or ''
        if files and f'{name}/__init__.py' in files:
            listed.append(f'{project} {each.version}')
        elif not files and project.lower() == 'horovod':
            named.append(f'{project} {each.version}')
    return sorted(listed or named)


def origin_of(spec):
    """Returns the file of a package, None for a folder without __init__.py: Python imports such a
    folder only if it finds nothing else."""
    return spec.origin if spec is not None and spec.has_location else None


def packages(name):
    """Returns the packages of that name that are on sys.path, first the one that is imported."""
    first = origin_of(importlib.util.find_spec(name))
    found = []
    for entry in sys.path:
        origin = origin_of(importlib.machinery.PathFinder.find_spec(name, [entry]))
        package = Package(name, origin, entry) if origin else None
        if package and not any(package.is_same(each) for each in found):
            found.append(package)
    if first:
        winner = Package(name, first, None)
        same = [each for each in found if each.is_same(winner)]
        found = (same or [winner]) + [each for each in found if not each.is_same(winner)]
    return found


def isolated_origin(python):
    """Returns the file of the package horovod that this Python finds without PYTHONPATH."""
    result = subprocess.run([python, '-I', '-c', FIND], stdout=subprocess.PIPE, text=True,
                            check=True)
    return result.stdout.strip()


def uninstall(package):
    """Returns the command that uninstalls the package. hvd is the first, because its metadata of
    horovod, which pip cannot uninstall, may hide that of another horovod."""
    names = sorted((owner.rpartition(' ')[0] for owner in package.owners),
                   key=lambda name: name != 'hvd')
    names = ' '.join(names)
    return f'{sys.executable} -m pip uninstall {names}'


def way_out(winner, others):
    """Returns the advice when Python does not import hvd's package."""
    load = 'start it with srun --hvd, or type "module load hvd" first'
    if winner is None:
        return ('Python finds no package horovod: ' + load + '; in a virtual environment: hvd-info '
                '--into-venv DIR')
    text = f'Python imports {winner.folder}, which is not hvd\'s: '
    listed = [os.path.abspath(entry)
              for entry in os.environ.get('PYTHONPATH', '').split(os.pathsep) if entry]
    if winner.entry is not None and winner.parent in listed:
        return text + f'remove {winner.parent} from PYTHONPATH'
    if winner.entry == '':
        return text + 'start Python in another folder'
    if winner.owners and any(each.is_own for each in others):
        return text + uninstall(winner)
    if winner.owners:
        return text + load + '; or uninstall it: ' + uninstall(winner)
    return text + load + f'; or remove {winner.folder}'


def list_packages():
    """Prints the packages of each name, and raises Failure unless Python imports hvd's horovod."""
    print(f'python: {sys.executable}, {sys.version.split()[0]}')
    found = {name: packages(name) for name in PACKAGES}
    for name in PACKAGES:
        for each in found[name]:
            use = 'imported' if each is found[name][0] else 'hidden'
            print(f'{name}: {each}: {use}')
        if not found[name]:
            print(f'{name}: none')
    isolated = os.path.dirname(isolated_origin(sys.executable))
    print(f'without PYTHONPATH, as python -I: {isolated or "no horovod"}', flush=True)
    other = found['hvd'][0] if found['hvd'] else None
    if other is not None and not other.is_own:
        print(f'note: only "import horovod" imports hvd here. {way_out(other, found["hvd"][1:])}',
              flush=True)
    winner = found['horovod'][0] if found['horovod'] else None
    if winner is not None and len(winner.owners) > 1:
        raise Failure(f'{" and ".join(winner.owners)} have written the same files in '
                      f'{winner.folder}: uninstall all of them, then install the one that you '
                      f'want: {uninstall(winner)}')
    if winner is None or not winner.is_own:
        raise Failure(way_out(winner, found['horovod'][1:]))


def list_frameworks():
    """Prints the frameworks that Python finds, without importing them."""
    found = [(BUILD.sub('', (each.metadata['Name'] or '').lower().replace('_', '-')), each)
             for each in importlib.metadata.distributions()]
    for name, each in sorted(found, key=lambda pair: pair[0]):
        if name in FRAMEWORKS:
            print(f'{each.metadata["Name"]} {each.version}: {each.locate_file("")}')


def report():
    """Prints the frameworks, and then where Python finds the packages of hvd."""
    list_frameworks()
    list_packages()


def pth_file(venv):
    """Returns the path of hvd's .pth file, in a folder of the environment of this Python where it
    reads such files."""
    root = os.path.realpath(venv) + os.sep
    folders = [folder for folder in site.getsitepackages()
               if os.path.isdir(folder) and os.path.realpath(folder).startswith(root)]
    if not folders:
        raise Failure(f'{venv} has no packages of its own: its Python has them in '
                      f'{", ".join(site.getsitepackages())}')
    usual = sysconfig.get_path('purelib')
    return os.path.join(usual if usual in folders else folders[0], PTH)


def read(file):
    """Returns the folder in the .pth file, None if there is no such file."""
    try:
        with open(file, 'rb') as stream:
            text = os.fsdecode(stream.read())
    except FileNotFoundError:
        return None
    if text.count('\n') != 1 or not text.startswith('/') or not text.endswith('\n'):
        raise Failure(f'{file} was not written by hvd-info: remove it or rename it')
    return text.rstrip('\n')


def write(file, folder):
    """Replaces the .pth file at once: a Python that starts meanwhile must not read a part."""
    part = f'{file}.{os.getpid()}'  # without the suffix, so that no Python reads it
    try:
        with open(part, 'wb') as stream:
            stream.write(os.fsencode(folder) + b'\n')
        os.replace(part, file)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)
        raise


def into_venv(venv):
    """Writes the .pth file, and takes it back if Python still imports another horovod. Python reads
    .pth files after it has added site-packages itself to sys.path."""
    if os.path.isdir(os.path.join(HOME, 'horovod', '_hvd')):
        raise Failure(f'this hvd was installed by pip into {HOME}, a folder of other packages: '
                      f'install hvd into {venv} by pip, too')
    file = pth_file(venv)
    before = read(file)
    own = os.path.join(HOME, 'horovod', '__init__.py')
    write(file, HOME)
    origin = isolated_origin(sys.executable)
    if origin and os.path.realpath(origin) == own:
        print(f'{file}: {"already leads" if before == HOME else "leads"} to {HOME}')
        return
    if before is None:
        os.unlink(file)
    else:
        write(file, before)
    if not origin:
        raise Failure(f'{venv} ignores {file}: its Python reads no .pth files')
    other = Package('horovod', origin, None)
    remove = uninstall(other) if other.owners else f'remove {other.folder}'
    raise Failure(f'{venv} has {other}, which Python imports before any folder of a .pth file: '
                  f'first {remove}')


def out_of_venv(venv):
    """Removes the .pth file."""
    file = pth_file(venv)
    if read(file) is None:
        raise Failure(f'there is no {file}: nothing to remove')
    os.unlink(file)
    print(f'{file}: removed')


def main(arguments):
    """Returns the exit status."""
    try:
        if arguments[0] == '--python':
            list_packages()
        elif arguments[0] == '--report':
            report()
        elif arguments[0] == '--into-venv':
            into_venv(arguments[1])
        else:
            out_of_venv(arguments[1])
        sys.stdout.flush()
    except Failure as failure:
        print(f'hvd-info: {failure}', file=sys.stderr)
        return 1
    except OSError as error:
        print(f'hvd-info: cannot write {error.filename or "the output"}: {error.strerror}',
              file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
