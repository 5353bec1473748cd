# SPDX-License-Identifier: Apache-2.0
"""Code that all front ends share: the C library, ranks, process sets, requests."""
