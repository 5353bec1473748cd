# SPDX-License-Identifier: Apache-2.0
"""What every front end shares: the C library, ranks, process sets, requests."""
