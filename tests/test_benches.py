"""Every named cocotb bench passes."""

import pytest

from sim.registry import bench_names, run_named


@pytest.mark.parametrize("name", bench_names())
def test_bench(name):
    assert run_named(name).tests > 0
