# SPDX-License-Identifier: Apache-2.0
"""Modules of Horovod's launcher that other tools import."""
