# SPDX-License-Identifier: Apache-2.0
"""Plans, tiled models, gradients and outputs are those of the command, byte for byte; what it refuses is refused with the same words.

All models of the tree, and some of the folder of models, ONNXMEM_DATA; with ONNXMEM_MODELS=all, each of them."""
from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import onnxmem
from conftest import ROOT, dims_of, filled

TREE = sorted(path.name for path in (ROOT / "models").glob("*.onnx"))
DATA = pathlib.Path(os.environ.get("ONNXMEM_DATA") or ROOT.parent / "shared" / "data") / "models"
SOME = ["burn_mnist", "deeploy_autoencoder1d", "dtln_1", "magika_v3_3", "mnist_8", "mnist_quantized", "silero_vad_v4", "tract_byte_bilstm"]
MODELS = sorted(path.stem for path in DATA.glob("*.onnx")) if os.environ.get("ONNXMEM_MODELS") == "all" else SOME
SPEECH = {"input": (1, 512), "state": (2, 1, 128)}
# Of inputs whose dims cannot all be the same.
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "ppocr_v2_cls": {"x": (1, 3, 48, 192)}, "ppocr_v4_det": {"x": (1, 3, 96, 96)}, "ppocr_v4_rec": {"x": (1, 3, 48, 96)},
    "silero_vad_16k_op15": SPEECH, "silero_vad_half": SPEECH, "silero_vad_ifless": SPEECH, "silero_vad_v5": SPEECH,
    "silero_vad_v4": {"input": (1, 512), "h": (2, 1, 64), "c": (2, 1, 64)}}
WAYS: list[dict[str, Any]] = [{}, {"poison": True}, {"no_reuse": True}, {"threads": 1}]


def sizes_of(name: str) -> tuple[dict[str, Any], list[object]]:
    """Numbers for the open dims of a model of the folder: options, and words of the command."""
    shapes = SHAPES.get(name, {})
    words = [word for one, dims in shapes.items() for word in ("--input-shape", f"{one}:{'x'.join(map(str, dims))}")]
    return {"default_dim": 3, "shapes": shapes}, ["--default-dim", 3, *words]


def refusal(words: list[object]) -> str | None:
    """Why the command refuses; None: it does not."""
    done = subprocess.run([os.environ["ONNXMEM"], *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.stderr.splitlines()[-1].removeprefix("onnxmem: ") if done.returncode else None


def same_file(folder: pathlib.Path, words: list[object], call: Callable[[pathlib.Path], object]) -> None:
    """The command, with the name of its output after two words, and the call write the same file, or refuse it."""
    expected = refusal([*words[:2], folder / "command.onnx", *words[2:]])
    if expected is None:
        call(folder / "python.onnx")
        assert (folder / "python.onnx").read_bytes() == (folder / "command.onnx").read_bytes(), words
        return
    with pytest.raises(onnxmem.Error) as raised:
        call(folder / "python.onnx")
    assert str(raised.value) == expected


def same_files(path: pathlib.Path, sizes: tuple[dict[str, Any], list[object]], folder: pathlib.Path) -> None:
    options, words = sizes
    same_file(folder, ["plan", path, *words], lambda to: onnxmem.plan(path, to, **options))
    same_file(folder, ["tile", path, *words], lambda to: onnxmem.tile(path, to, **options))
    same_file(folder, ["grad", path, *words, "--loss-fn", "mse"], lambda to: onnxmem.grad(path, to, loss_fn="mse", **options))


def same_outputs(path: pathlib.Path, sizes: tuple[dict[str, Any], list[object]], folder: pathlib.Path) -> None:
    options, words = sizes
    try:
        values = filled(onnxmem.Session(path, **options), shapes=options.get("shapes", {}))
    except onnxmem.Error as error:
        assert str(error) == refusal(["run", path, *words, "--fill", "deterministic"])
        return
    np.savez(folder / "in.npz", **values)
    data = ["--data", folder / "in.npz"] if values else []
    expected = refusal(["run", path, *words, *data, "-q", "--save", folder / "out.npz"])
    for way in WAYS:
        session = onnxmem.Session(path, **options, **way)
        if expected is None:
            same_arrays(session.run(values), np.load(folder / "out.npz"))
            continue
        with pytest.raises(onnxmem.Error) as raised:
            session.run(values)
        assert str(raised.value) == expected


def same_arrays(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert sorted(found) == sorted(expected)
    for name, array in found.items():
        assert array.dtype == expected[name].dtype and array.shape == expected[name].shape, name
        assert array.tobytes() == expected[name].tobytes(), name


@pytest.mark.parametrize("name", TREE)
def test_models_of_the_tree(name: str, models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    same_files(models / name, dims_of(name), tmp_path)
    if name != "names.onnx":
        same_outputs(models / name, dims_of(name), tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_others(name: str, command: Any, tmp_path: pathlib.Path) -> None:
    path = DATA / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    same_files(path, sizes_of(name), tmp_path)
    same_outputs(path, sizes_of(name), tmp_path)
