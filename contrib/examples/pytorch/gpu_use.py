# SPDX-License-Identifier: Apache-2.0
"""The utilisation of this rank's GPU, measured by NVML (package nvidia-ml-py)."""


class Meter:
    """``state`` is a text: what it measures, or why it cannot."""

    def __init__(self, device):
        self._handle = None
        if device.type != 'cuda':
            self.state = 'not measured, the rank computes on the CPU'
            return
        try:
            import pynvml
            import torch
            pynvml.nvmlInit()
            # By PCI address: CUDA_VISIBLE_DEVICES may change the numbers of GPUs.
            place = torch.cuda.get_device_properties(device)
            address = (f'{place.pci_domain_id:08x}:{place.pci_bus_id:02x}:'
                       f'{place.pci_device_id:02x}.0')
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(address.encode())
            self._nvml = pynvml
            self.state = 'as NVML has it, of the last sample period before a step ends'
        except (ImportError, AttributeError) as missing:
            self.state = f'not measured: {missing}'
        except pynvml.NVMLError as error:
            self.state = f'not measured, NVML says: {error}'

    def percent(self):
        """The share of time in which a kernel runs; "-" if it cannot be measured."""
        if self._handle is None:
            return '-'
        return str(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)
