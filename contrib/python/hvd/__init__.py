# SPDX-License-Identifier: Apache-2.0
"""Another name of the package horovod: ``import hvd.torch as hvd``.

``hvd`` and ``hvd.torch`` are the module objects ``horovod`` and ``horovod.torch``, so a job may
use both names. Classes keep their module's name, such as ``horovod.torch.elastic.state``, and are
pickled by it.
"""

import os
import sys

import horovod  # first: its error for an old Python must come before newer syntax is read

_OWN = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_FOUND = os.path.dirname(os.path.dirname(os.path.realpath(horovod.__file__ or '.')))
if _FOUND != _OWN:
    raise ImportError('Python imports the package horovod in %s, not the one of hvd in %s: '
                      'uninstall it or remove it from PYTHONPATH; hvd-info --python lists all'
                      % (_FOUND, _OWN))

from horovod.common import alias, owners

if 'horovod.common.absent' not in sys.modules:  # horovod/__init__.py is not hvd's
    raise ImportError(owners.describe(owners.others() or ['horovod']))
alias.announce('hvd', 'horovod')
sys.modules[__name__] = horovod
