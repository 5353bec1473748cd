# SPDX-License-Identifier: Apache-2.0
"""How busy this rank's GPU is, as NVML tells (package nvidia-ml-py), where there is one."""


class Meter:
    """``state`` says in words what it measures, or why it does not."""

    def __init__(self, device):
        self._handle = None
        if device.type != 'cuda':
            self.state = 'not measured, the rank computes on the CPU'
            return
        try:
            import pynvml
            import torch
            pynvml.nvmlInit()
            # By its address: CUDA_VISIBLE_DEVICES may number GPUs anew.
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
        """The share of time with a kernel running; "-" where it is not measured."""
        if self._handle is None:
            return '-'
        return str(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)
