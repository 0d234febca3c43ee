# SPDX-License-Identifier: MIT
"""The parts of bench/compare: stats, machine, contenders, rounds, report."""
