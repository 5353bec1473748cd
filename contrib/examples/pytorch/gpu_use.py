# SPDX-License-Identifier: Apache-2.0
"""Measures the utilisation of this rank's GPU with NVML (package nvidia-ml-py)."""


class Meter:
    """Measures the utilisation of a GPU. ``state``: a text that says what is measured, or why
    nothing can be measured."""

    def __init__(self, device):
        self._handle = None
        if device.type != 'cuda':
            self.state = 'not measured, the rank computes on the CPU'
            return
        try:
            import pynvml
            import torch
            pynvml.nvmlInit()
            # NVML numbers all GPUs, torch only those in CUDA_VISIBLE_DEVICES: use the PCI address.
            place = torch.cuda.get_device_properties(device)
            address = (f'{place.pci_domain_id:08x}:{place.pci_bus_id:02x}:'
                       f'{place.pci_device_id:02x}.0')
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(address.encode())
            self._nvml = pynvml
            self.state = "NVML's last sample before the end of each step"
        except (ImportError, AttributeError) as missing:
            self.state = f'not measured: {missing}'
        except pynvml.NVMLError as error:
            self.state = f'not measured: NVML failed: {error}'

    def percent(self):
        """Returns the percentage of time in which a kernel was running, or "-" if it cannot be
        measured."""
        if self._handle is None:
            return '-'
        return str(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)
