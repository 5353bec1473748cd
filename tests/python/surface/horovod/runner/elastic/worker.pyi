# SPDX-License-Identifier: Apache-2.0

class HostUpdateResult:
    no_update: int
    removed: int
    added: int
    mixed: int
