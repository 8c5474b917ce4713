# SPDX-License-Identifier: Apache-2.0
"""The tools of others, where they are installed."""
from __future__ import annotations

import importlib
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest

import onnxmem
from onnxmem import interop

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)


def digits_of(model: Any) -> Any:
    return onnxmem.Session(model, precise=True).run({"picture": X})["digit"]


def test_a_pass_of_onnx_ir(models: pathlib.Path) -> None:
    ir = pytest.importorskip("onnx_ir")
    model = ir.load(models / "trained.onnx")
    planned = ir.to_proto(ir.passes.Sequential(interop.ir_pass(io="arena"))(model).model)
    assert onnxmem.verify(planned).arenas[0].bytes == onnxmem.report(models / "trained.onnx", io="arena").arena_bytes
    tiled = ir.passes.Sequential(interop.ir_pass(onnxmem.tile), interop.ir_pass())(model).model
    assert np.allclose(digits_of(ir.to_proto(tiled)), digits_of(models / "trained.onnx"), rtol=1e-4, atol=1e-5)


def test_a_pass_of_olive(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    package = pytest.importorskip("olive.package_config")
    settings = package.OlivePackageConfig(passes={"OnnxmemPlan": {"module_path": "onnxmem.olive.OnnxmemPlan"}})
    model = importlib.import_module("olive.model").ONNXModelHandler(str(models / "trained.onnx"))
    create = importlib.import_module("olive.passes.olive_pass").create_pass_from_dict
    found = []
    for name, config in ("planned", {"options": {"io": "arena"}}), ("tiled", {"options": {"io": "arena"}, "tile": {}}):
        done = create(settings.import_pass_module("OnnxmemPlan"), config, disable_search=True).run(model, str(tmp_path / name))
        found.append(onnxmem.verify(done.model_path).arenas[0].bytes)
        assert np.allclose(digits_of(done.model_path), digits_of(models / "trained.onnx"), rtol=1e-4, atol=1e-5)
    assert found[0] == onnxmem.report(models / "trained.onnx", io="arena").arena_bytes and found[1] < found[0]


@pytest.mark.parametrize("package,step", [("onnxsim", "simplify"), ("onnxslim", "slim")])
def test_a_step_of_a_pipeline(package: str, step: str, models: pathlib.Path) -> None:
    function = getattr(pytest.importorskip(package), step)
    planned = interop.pipeline([function, onnxmem.tile])(onnx.load(models / "trained.onnx"))
    assert onnxmem.verify(planned).placements > 0
    assert np.allclose(digits_of(planned), digits_of(models / "trained.onnx"), rtol=1e-4, atol=1e-5)


def test_a_step_that_fails() -> None:
    with pytest.raises(ValueError, match="could not check"):
        interop.pipeline([lambda model: (model, False)])(onnx.ModelProto())


def test_a_session_of_onnx_runtime(models: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime")
    session = interop.ort_session(str(models / "trained.onnx"), share_arena=False)
    assert np.allclose(session.run(None, {"picture": X})[0], digits_of(models / "trained.onnx"), rtol=1e-4, atol=1e-5)
    options = interop.ort_session_options(onnxmem.report(models / "trained.onnx"))
    assert options.enable_mem_pattern and options.get_session_config_entry("session.use_device_allocator_for_initializers") == "1"


def test_the_arena_of_onnx_runtime(models: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime")
    program = ("import sys, numpy\nfrom onnxmem import interop\n"
               "session = interop.ort_session(sys.argv[1])\n"
               "print(session.run(None, {'picture': numpy.zeros((1, 1, 8, 8), numpy.float32)})[0].shape)\n")
    done = subprocess.run([sys.executable, "-c", program, models / "trained.onnx"], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "(1, 10)\n"


def net(torch: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.ReLU(),
                               torch.nn.Conv2d(8, 4, 3, padding=1)).eval()


def test_a_module_of_torch() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    module, x = net(torch), torch.linspace(-1, 1, 256).reshape(1, 1, 16, 16)
    model = interop.from_torch(module, (x,), input_names=["x"], output_names=["y"])
    assert onnxmem.report(model).arena_bytes >= 2 * 8 * 16 * 16 * 4
    assert np.allclose(onnxmem.Session(model).run({"x": x})["y"], module(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    exported = torch.export.export(module, (x,))
    assert onnxmem.report(interop.from_torch(exported, ())).arena_bytes == onnxmem.report(model).arena_bytes


def test_tensors_of_torch_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    value = onnx.helper.make_tensor_value_info
    model = onnx.helper.make_model(onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", 1, [4, 1024])],
                                                          [value("y", 1, [4, 1024])]), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    session = onnxmem.Session(model)
    x, y = torch.linspace(-1, 1, 4096).reshape(4, 1024), torch.empty(4, 1024)
    bound: list[int] = []
    executor = session._need_last()
    assert executor is not None
    bind = executor.bind_input

    def watched(k: int, one: Any) -> None:
        bound.append(one.tensor.data)
        bind(k, one)
    executor.bind_input = watched   # type: ignore[method-assign]
    found = session.run({"x": x}, {"y": y})["y"]
    assert bound == [x.data_ptr()] and found is y and (y == torch.relu(x)).all()
    fresh = session.run({"x": x})["y"]
    again = torch.from_dlpack(fresh)
    assert again.data_ptr() == fresh.ctypes.data and (again == y).all()


def test_a_bar_of_tqdm() -> None:
    pytest.importorskip("tqdm")
    import io
    out, random = io.StringIO(), np.random.default_rng(5)
    first = random.integers(0, 60, 120)
    with interop.Bar(file=out, mininterval=0) as bar:
        packing = onnxmem.pack(random.integers(1, 1000, 120), first, first + random.integers(0, 30, 120), progress=bar)
    assert f"bound={packing.lower_bound}" in out.getvalue() and "attempts" in out.getvalue()


def test_the_planner_of_executorch() -> None:
    torch = pytest.importorskip("torch")
    exir = pytest.importorskip("executorch.exir")
    exported = torch.export.export(net(torch), (torch.zeros(1, 1, 16, 16),))
    sizes = {}
    for name, planning in ("onnxmem", interop.executorch_planning_pass()), ("greedy", None):
        config = exir.ExecutorchBackendConfig(**({"memory_planning_pass": planning} if planning else {}))
        program = exir.to_edge(exported).to_executorch(config)
        sizes[name] = sum(program.executorch_program.execution_plan[0].non_const_buffer_sizes)
        graph_module = program.exported_program().graph_module
        verifier = importlib.import_module("executorch.exir.memory_planning").Verifier(graph_module, alloc_graph_input=True, alloc_graph_output=True, alloc_mutable_buffers=True)
        assert verifier.verify_storage_reuse() >= 1
    assert 0 < sizes["onnxmem"] <= sizes["greedy"]


def test_the_planner_of_tvm(monkeypatch: pytest.MonkeyPatch, models: pathlib.Path) -> None:
    """USMP of versions of TVM with Relay; of packages that can be installed, hhb-tvm has it."""
    monkeypatch.setenv("TVM_FFI", "ctypes")
    tvm = pytest.importorskip("tvm")
    relay = pytest.importorskip("tvm.relay")
    backend = importlib.import_module("tvm.relay.backend")
    conflicts: list[int] = []

    def algorithm(buffers: Any, pressure: Any) -> Any:
        found = interop.tvm_usmp_algorithm(buffers, pressure)
        at = {str(one.name_hint): (int(found[one].byte_offset), int(one.size_bytes)) for one in buffers}
        for one in buffers:
            for other in one.conflicts:
                (a, n), (b, m) = at[str(one.name_hint)], at[str(other.name_hint)]
                conflicts.append(a + n <= b or b + m <= a)
        return found
    tvm.register_func("tir.usmp.algo.onnxmem", algorithm, override=True)
    module, params = relay.frontend.from_onnx(onnx.load(models / "trained.onnx"), freeze_params=True)
    sizes = {}
    for name in "greedy_by_size", "onnxmem":
        config = {"tir.disable_vectorize": True, "tir.usmp.enable": True,
                  "tir.usmp.custom_algorithm" if name == "onnxmem" else "tir.usmp.algorithm": name}
        executor = backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"})
        with tvm.transform.PassContext(opt_level=3, config=config):
            built = relay.build(module, "c", executor=executor, runtime=backend.Runtime("crt"), params=params)
        pools = built.executor_codegen_metadata.pool_inputs.values()
        sizes[name] = sum(int(one.allocated_size) for one in pools if "const" not in str(one.pool_info.pool_name))
    assert conflicts and all(conflicts)
    assert 0 < sizes["onnxmem"] <= sizes["greedy_by_size"], sizes
