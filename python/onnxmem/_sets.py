# SPDX-License-Identifier: Apache-2.0
"""Reads manifests of sets (docs/sets.md): which models there are, in which order they run, and what they hand over."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import MalformedError, UsageError


@dataclass(frozen=True)
class Part:
    """A model, as a part of a set."""

    name: str                   #: Of the part.
    model: str                  #: Path of its file.
    dims: Mapping[str, int]     #: Symbols that have one number.
    values: Mapping[str, Any]   #: Inputs that are constants.


class Manifest:
    """The parts of a set that end in a loop of one part: those that run once, and that of the loop."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            parts = self._read()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedError(f"{self.path}: no manifest of a set: {error!r}") from None
        if [isinstance(one, list) for one in parts] != [False] * (len(parts) - 1) + [True] or len(parts[-1]) != 1:
            raise UsageError(f"{self.path}: the order of a set that generates tokens ends in a loop of one part, and has no other loop")
        self.once: list[Part] = parts[:-1]
        self.step: Part = parts[-1][0]

    def _read(self) -> list[Any]:
        """The parts in their order; those of a loop are a list."""
        with open(self.path, encoding="utf-8") as file:
            document = json.load(file)
        if document["schema"] != "onnxmem-set/1":
            raise ValueError("its schema is not onnxmem-set/1")
        listed = {one["name"]: self._part(one) for one in document["parts"]}
        self._links: list[list[str]] = document.get("links", [])
        return [[listed[name] for name in one] if isinstance(one, list) else listed[one] for one in document["order"]]

    def _part(self, one: Mapping[str, Any]) -> Part:
        numbers = {symbol: n for symbol, n in one.get("dims", {}).items() if isinstance(n, int)}
        return Part(one["name"], os.path.join(os.path.dirname(self.path), one["model"]), numbers, one.get("values", {}))

    def shared(self, names: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], int]:
        """The number of the shared value of each end that has one, by the names that inputs and outputs of parts have."""
        found: dict[tuple[str, str], int] = {}
        number = 0
        for link in self._links:
            ends = [(part, name) for part, _, name in (end.partition(".") for end in link)]
            for part, _ in ends:
                if part not in names:
                    raise UsageError(f"{self.path}: a link names a part {part}, which is not in the order")
            for text in _texts(ends[0][1], names[ends[0][0]]):
                found.update(((part, name.replace("*", text)), number) for part, name in ends)
                number += 1
        for part, name in found:
            if name not in names[part]:
                raise UsageError(f"{self.path}: part {part} has no input or output {name}")
        return found


def _texts(pattern: str, names: Sequence[str]) -> list[str]:
    """What the star of a pattern stands for in the names that match it; without one, nothing once."""
    before, star, after = pattern.partition("*")
    if not star:
        return [""]
    return [name[len(before):len(name) - len(after)] for name in names
            if name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)]
