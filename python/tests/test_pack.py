# SPDX-License-Identifier: Apache-2.0
"""The packer: bulk from arrays, and the same answers as the command and the example in C."""
from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import onnxmem


def overlaps(packing: onnxmem.Packing, sizes: Any, first: Any, last: Any) -> int:
    """Pairs of buffers that share bytes at some step."""
    start = packing.offsets.astype(np.int64)
    end, n = start + sizes, len(sizes)
    bytes_meet = (start[:, None] < end) & (start < end[:, None])
    steps_meet = (first[:, None] <= last) & (first <= last[:, None])
    return int((bytes_meet & steps_meet).sum() - n)


def random_problem(n: int, seed: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    first = random.integers(0, n, n)
    return random.integers(1, 100, n) * 8, first, first + random.integers(0, 12, n)


@pytest.mark.parametrize("seed", range(5))
def test_random_problems(seed: int) -> None:
    sizes, first, last = random_problem(300, seed)
    packing = onnxmem.pack(sizes, first, last, align=64)
    assert overlaps(packing, sizes, first, last) == 0
    assert (packing.offsets % 64 == 0).all()
    assert packing.height == int((packing.offsets + sizes.astype(np.uint64)).max()) >= packing.lower_bound
    again = onnxmem.pack(sizes.tolist(), first.tolist(), last.astype(np.uint32), align=np.full(300, 64))
    assert (again.offsets == packing.offsets).all()


def test_answers_are_those_of_the_command(command: Any, tmp_path: pathlib.Path) -> None:
    sizes, first, last = random_problem(200, 7)
    table = "id,lower,upper,size\n" + "".join(f"b{k},{first[k]},{last[k] + 1},{sizes[k]}\n" for k in range(200))
    (tmp_path / "in.csv").write_text(table)
    command("pack", tmp_path / "in.csv", "--search-nodes", 1000, "--output", tmp_path / "out.csv")
    offsets = [int(line.split(",")[-1]) for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert onnxmem.pack(sizes, first, last, nodes=1000).offsets.tolist() == offsets


def test_the_problem_of_the_example_in_c() -> None:
    packing = onnxmem.pack(
        [4096, 3072, 1024, 512, 512, 2048], align=64, fixed=[0, -1, -1, -1, -1, -1], pool=[1, -1, -1, -1, -1, -1],
        intervals=[(0, 0, 1, 0, 0), (1, 1, 3, 0, 0), (1, 4, 5, 0, 512), (2, 4, 5, 0, 0), (2, 0, 0, 0, 0), (3, 2, 4, 0, 0), (4, 2, 4, 0, 0),
                   (5, 3, 5, 0, 0)],
        access=[0, 3072, 100000, 8192, 8192, 2048], pools=[{"name": "sram", "limit": 2560}, {"name": "dram"}], groups=[[3, 4]],
        names=["camera", "edges", "table", "left", "right", "result"])
    assert packing.offsets.tolist() == [0, 4096, 0, 1024, 1536, 0]
    assert packing.pool_of.tolist() == [1, 1, 0, 0, 0, 1]
    assert [(one.name, one.height, one.is_optimal) for one in packing.pools] == [("sram", 2048, True), ("dram", 7168, True)]


def test_pairs_in_place_of_lifetimes() -> None:
    packing = onnxmem.pack([64, 32, 64], pairs=[(0, 1), (1, 2)])
    assert packing.height == packing.lower_bound == 96 and packing.is_optimal
    assert onnxmem.pack([64, 32], pairs=np.empty((0, 2), np.int64)).height == 64


def test_gaps_in_lifetimes() -> None:
    assert onnxmem.pack([8, 8], intervals=[(0, 0, 1), (1, 2, 3), (0, 4, 5)]).height == 8
    assert onnxmem.pack([8, 8], first=[0, 2], last=[5, 3]).height == 16


def test_no_buffers_and_empty_ones() -> None:
    assert onnxmem.pack([], [], []).height == 0
    assert onnxmem.pack([0, 16], 0, 1).height == 16


def test_progress() -> None:
    sizes, first, last = random_problem(200, 3)
    told: list[tuple[str, int, int]] = []
    onnxmem.pack(sizes, first, last, progress=lambda what, best, bound: told.append((what, best, bound)))
    assert told and all(what == "packing" and best > 0 for what, best, _ in told)


def test_failures() -> None:
    with pytest.raises(onnxmem.BudgetError, match=r"pool 0 has 64 bytes, but 128 are required; step 0 has the peak, with a \(64\) and b"):
        onnxmem.pack([64, 64], 0, 3, pools=[{"limit": 64}], names=["a", "b"])
    with pytest.raises(onnxmem.InvalidModelError):
        onnxmem.pack([64, 64], 0, 3, fixed=0)
    with pytest.raises(onnxmem.InvalidModelError):
        onnxmem.pack([64], 3, 2)
    with pytest.raises(onnxmem.InvalidModelError, match="align"):
        onnxmem.pack([64], 0, 1, align=24)
    wrong: list[dict[str, Any]] = [dict(sizes=[1.5], first=0, last=1), dict(sizes=[1, 2], first=[0], last=1), dict(sizes=[1, 2], first=[0, 1, 2], last=1),
                dict(sizes=[-1], first=0, last=1), dict(sizes=[1], first=-1, last=1), dict(sizes=[1], first=0, last=2**32),
                dict(sizes=[[1]], first=0, last=1), dict(sizes=[1]), dict(sizes=[1], intervals=[(1, 0, 1)]),
                dict(sizes=[1], intervals=[(0, 0)]), dict(sizes=[1], pairs=[(0, 1)]), dict(sizes=[1], first=0, last=1, pool=3),
                dict(sizes=[1], first=0, last=1, groups=[[1]]), dict(sizes=[1], first=0, last=1, names=["a", "b"])]
    for bad in wrong:
        with pytest.raises(onnxmem.UsageError):
            onnxmem.pack(**bad)


def test_many_buffers() -> None:
    sizes, first, last = random_problem(20000, 1)
    packing = onnxmem.pack(sizes, first, last)
    assert len(packing.offsets) == 20000 and packing.height >= packing.lower_bound > 0
