# SPDX-License-Identifier: Apache-2.0
"""The jobs for Kubernetes in contrib/examples/kubernetes: their numbers of ranks, GPUs and slots agree, and they start
the script of their image. Whether they are valid was checked against the schemas of Kubeflow Trainer and the MPI
operator; this test needs no network."""

import os
import pathlib
import unittest

try:
    import yaml
except ImportError:
    yaml = None

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'contrib' / 'examples'
FOLDER = EXAMPLES / 'kubernetes'
SCRIPT = '/hvd/train.py'


def read(name):
    job, = yaml.safe_load_all((FOLDER / name).read_text())
    return job


def gpus(limits):
    return limits['limits']['nvidia.com/gpu']


@unittest.skipIf(yaml is None, 'needs PyYAML')
class KubernetesTest(unittest.TestCase):
    def check_image(self, image, dockerfile):
        text = (FOLDER / dockerfile).read_text()
        self.assertIn(f'-t {image} .', text)
        copied = next(line.split()[1:] for line in text.splitlines() if line.startswith('COPY '))
        self.assertEqual((copied[0], copied[-2:]), ('hvd-*.whl', ['train.py', f'{os.path.dirname(SCRIPT)}/']))
        self.assertTrue((EXAMPLES / 'digits' / 'train.py').exists())

    def test_torchrun_of_the_train_job_starts_a_rank_for_each_gpu(self):
        job = read('trainjob.yaml')
        trainer = job['spec']['trainer']
        self.assertEqual((job['apiVersion'], job['kind']), ('trainer.kubeflow.org/v1alpha1', 'TrainJob'))
        self.assertEqual(job['spec']['runtimeRef'], {'name': 'torch-distributed'})
        self.assertEqual(trainer['command'], ['torchrun', SCRIPT])
        self.assertEqual(trainer['numProcPerNode'], gpus(trainer['resourcesPerNode']))
        self.check_image(trainer['image'], 'torch.Dockerfile')

    def test_the_train_job_leaves_the_variables_of_torchrun_to_the_runtime(self):
        names = {each['name'] for each in read('trainjob.yaml')['spec']['trainer']['env']}
        self.assertEqual(names, {'HVD_SECRET'})

    def test_mpirun_of_the_mpi_job_starts_a_rank_for_each_slot_and_gpu(self):
        job = read('mpijob.yaml')
        spec = job['spec']
        launcher, worker = (spec['mpiReplicaSpecs'][role]['template']['spec']['containers'][0]
                            for role in ('Launcher', 'Worker'))
        self.assertEqual((job['apiVersion'], job['kind']), ('kubeflow.org/v2beta1', 'MPIJob'))
        self.assertEqual(spec['slotsPerWorker'], gpus(worker['resources']))
        ranks = spec['slotsPerWorker'] * spec['mpiReplicaSpecs']['Worker']['replicas']
        self.assertEqual(launcher['command'], ['mpirun'])
        self.assertEqual(launcher['args'][:4], ['-np', str(ranks), '--bind-to', 'none'])
        self.assertEqual(launcher['args'][-2:], ['python3', SCRIPT])
        self.assertEqual(launcher['image'], worker['image'])
        self.check_image(worker['image'], 'mpi.Dockerfile')

    def test_sshd_of_the_mpi_job_uses_the_keys_of_the_operator(self):
        spec = read('mpijob.yaml')['spec']
        worker = spec['mpiReplicaSpecs']['Worker']['template']['spec']['containers'][0]
        home = os.path.dirname(spec['sshAuthMountPath'])
        self.assertEqual([worker['command'], worker['args']],
                         [['/usr/sbin/sshd'], ['-De', '-f', f'{home}/.sshd_config']])
