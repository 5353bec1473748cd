# SPDX-License-Identifier: Apache-2.0
"""Large tensors in host memory get huge pages, unless the user has said otherwise."""

import os
import subprocess
import sys
import unittest

VARIABLE = 'THP_MEM_ALLOC_ENABLE'
FAULTS = '''
import resource
import torch
{more}
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
ones = torch.ones(16 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
'''
WITHOUT = '''
import os
exists = os.path.exists
os.path.exists = lambda path: path != '/sys/kernel/mm/transparent_hugepage' and exists(path)
import horovod.torch
'''


def faults(more, setting=None):
    """Returns the number of page faults of a tensor of 64 MiB in a new process."""
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if setting is not None:
        env[VARIABLE] = setting
    done = subprocess.run([sys.executable, '-c', FAULTS.format(more=more)], env=env, check=True,
                          stdout=subprocess.PIPE, text=True)
    return int(done.stdout)


class HugePages(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if faults('', '1') > 4096 or faults('', '0') < 8192:
            raise unittest.SkipTest(f'this torch does not know {VARIABLE}, or Linux gives huge pages '
                                    'to all programs or to none')

    def test_horovod_torch_asks_for_them(self):
        self.assertLess(faults('import horovod.torch'), 4096)

    def test_the_backend_of_torch_distributed_does_so_too(self):
        self.assertLess(faults('import horovod.torch.distributed.group'), 4096)

    def test_a_kernel_without_them_is_not_asked(self):
        self.assertGreater(faults(WITHOUT), 8192)

    def test_the_setting_of_the_user_stays(self):
        self.assertGreater(faults('import horovod.torch', '0'), 8192)


if __name__ == '__main__':
    unittest.main()
