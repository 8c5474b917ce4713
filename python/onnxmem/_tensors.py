# SPDX-License-Identifier: Apache-2.0
"""Elements between Python and the library: NumPy arrays, DLPack, strings, sequences, optionals and maps.

An array is bound where it is if its type is that of the model, its elements are in row-major order, and its address
is a multiple of their size.  Anything else is converted to such an array, but never to another type.
"""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np

from . import _structs as s
from ._context import dims_of, shape_of, text
from ._errors import ShapeError, UnsupportedError

# Types of NumPy, and those of the package ml_dtypes that stand for others.
_NUMPY = {name: np.dtype(name) for name in (
    "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "bool", "float16", "float64", "uint32", "uint64",
    "complex64", "complex128")}
_ML_DTYPES = {
    "bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz", "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu", "uint4": "uint4", "int4": "int4", "float4e2m1": "float4_e2m1fn",
    "uint2": "uint2", "int2": "int2", "float6e2m3": "float6_e2m3fn", "float6e3m2": "float6_e3m2fn",
}
#: Bits of elements that are packed, the first in the low bits.
_PACKED = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2}


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy type of an element type: of ml_dtypes for those that NumPy does not have."""
    if name in _NUMPY:
        return _NUMPY[name]
    if name == "string":
        return np.dtype(object)
    try:
        import ml_dtypes
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
        return found
    except ImportError:
        raise UnsupportedError(f"elements of type {name} require the package ml_dtypes") from None
    except (KeyError, AttributeError):
        raise UnsupportedError(f"NumPy and ml_dtypes have no type for {name}") from None


def is_packed(name: str) -> bool:
    """Has a byte several elements of this type?"""
    return name in _PACKED


class Bound:
    """A tensor for the library, with all that it refers to."""

    def __init__(self, tensor: s.Tensor, keep: Any, array: np.ndarray[Any, Any] | None = None) -> None:
        self.tensor, self.keep, self.array = tensor, keep, array

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims."""
        return tuple(self.tensor.shape.dim[: self.tensor.shape.rank])


# ---- To the library. ----

def bound(name: str, value: Any, type_: s.Type) -> Bound:
    """A value for input `name`, of the type that the model declares."""
    if type_.kind == s.TENSOR:
        return _bound_tensor(name, value, s.DTYPES[type_.elem])
    if type_.kind in (s.SEQUENCE, s.OPTIONAL):
        items = ([] if value is None else [value]) if type_.kind == s.OPTIONAL else list(value)
        return _bound_items(name, items, type_)
    if type_.kind == s.MAP:
        return _bound_map(name, dict(value), type_)
    raise UnsupportedError(f"input {name} is a {s.KINDS[type_.kind]}, which has no counterpart in Python")


def filled(value: Any, dims: tuple[int | str | None, ...] | None) -> Any:
    """A single number as a tensor of these dims; anything else, or without known dims, as it is."""
    if isinstance(value, (bool, int, float)) and dims and all(isinstance(dim, int) for dim in dims):
        return np.full([int(dim) for dim in dims if isinstance(dim, int)], value).tolist()
    return value


def _bound_tensor(name: str, value: Any, dtype: str) -> Bound:
    if dtype == "undefined":
        value = np.asarray(value)
        dtype = _name_of(value.dtype)
    if dtype == "string":
        return _bound_strings(value)
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        foreign = _bound_foreign(name, value, dtype)
        if foreign:
            return foreign
    array = _array(name, value, dtype)
    if dtype in _PACKED:
        packed = _pack(array, _PACKED[dtype])
        return Bound(_tensor(packed.ctypes.data, dtype, array.shape), packed)
    return Bound(_tensor(array.ctypes.data, dtype, array.shape), array, array)


def _tensor(address: int, dtype: str, shape: tuple[int, ...]) -> s.Tensor:
    return s.Tensor(data=address, type=s.DTYPES.index(dtype), shape=shape_of(shape))


@functools.cache
def _name_of(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "OUST":
        return "string"
    for name in s.DTYPES[1:]:
        if name != "string" and (name == dtype.name or _ML_DTYPES.get(name) == dtype.name):
            return name
    raise ShapeError(f"elements of type {dtype} have no counterpart in ONNX")


def _foreign(what: str, value: Any, dtype: str, *kind: int) -> Any:
    """A tensor of another package on a device of this kind, by default the CPU."""
    from ._dlpack import Foreign
    if getattr(value, "requires_grad", False):
        value = value.detach()
    foreign = Foreign(value, *kind)
    if foreign.dtype != dtype:
        raise ShapeError(f"{what} must be {dtype}, not {foreign.dtype or 'of a type that ONNX does not have'}")
    return foreign


def _bound_foreign(name: str, value: Any, dtype: str) -> Bound | None:
    foreign = _foreign(f"input {name}", value, dtype)
    bits = 8 * dtype_size(dtype)
    if not foreign.is_contiguous or foreign.address * 8 % bits:
        if dtype not in _NUMPY:
            raise ShapeError(f"input {name}: its elements are not contiguous; make it contiguous first")
        return None    # NumPy copies
    return Bound(_tensor(foreign.address, dtype, foreign.shape), foreign)


def bound_there(name: str, value: Any, type_: s.Type, kind: int) -> Bound:
    """A tensor on a device of this kind for input or output `name`, where it is."""
    dtype = s.DTYPES[type_.elem]
    foreign = _foreign(name, value, dtype, kind)
    if type_.kind != s.TENSOR:
        raise ShapeError(f"{name} must be {dtype}, not {foreign.dtype}")
    if not foreign.is_contiguous:
        raise ShapeError(f"{name}: its elements on the device are not contiguous; make it contiguous first")
    return Bound(_tensor(foreign.address, dtype, foreign.shape), foreign)


def dtype_size(name: str) -> int:
    """Bytes of an element that is not packed."""
    return _NUMPY[name].itemsize if name in _NUMPY else 2 if name == "bfloat16" else 1


def _array(name: str, value: Any, dtype: str) -> np.ndarray[Any, Any]:
    wanted = dtype_of(dtype)
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        array = np.from_dlpack(value)
    elif isinstance(value, (int, float, complex, list, tuple)):
        array = np.asarray(value, dtype=wanted)    # Python's numbers have no type of their own
    else:
        array = np.asarray(value)
    if array.dtype != wanted:
        raise ShapeError(f"input {name} must be {dtype}, not {array.dtype}")
    return np.require(array, requirements=["C", "A"])


def _pack(array: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    per = 8 // bits
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    raw = np.concatenate([raw, np.zeros(-raw.size % per, np.uint8)]).reshape(-1, per)
    packed = np.zeros(raw.shape[0], np.uint8)
    for k in range(per):
        packed |= raw[:, k] << np.uint8(k * bits)
    return packed


def _bound_strings(value: Any) -> Bound:
    array = np.asarray(value, dtype=object)
    raw = [one if isinstance(one, bytes) else str(one).encode("utf-8", "surrogateescape") for one in array.reshape(-1)]
    strings = (s.String * max(len(raw), 1))()
    for k, one in enumerate(raw):
        strings[k].data = ctypes.cast(ctypes.c_char_p(one), ctypes.c_void_p)
        strings[k].size = len(one)
    return Bound(_tensor(ctypes.addressof(strings), "string", array.shape), (raw, strings))


def _bound_items(name: str, items: list[Any], type_: s.Type) -> Bound:
    bounds = [bound(f"{name}, element {k}", one, type_.of.contents) for k, one in enumerate(items)]
    tensors = (s.Tensor * max(len(bounds), 1))(*(one.tensor for one in bounds))
    container = s.Container(n=len(bounds), item=tensors)
    return Bound(_object(container, type_), (container, tensors, bounds))


def _bound_map(name: str, items: dict[Any, Any], type_: s.Type) -> Bound:
    key = _bound_tensor(f"{name}, keys", np.array(list(items), dtype=dtype_of(s.DTYPES[type_.elem])), s.DTYPES[type_.elem])
    of = type_.of.contents
    if of.kind != s.TENSOR:
        raise UnsupportedError(f"input {name} is a map to {s.KINDS[of.kind]}s, which is not supported")
    values = np.array(list(items.values()), dtype=dtype_of(s.DTYPES[of.elem]))
    value = _bound_tensor(f"{name}, values", values, s.DTYPES[of.elem])
    container = s.Container(n=len(items), key=key.tensor, value=value.tensor)
    return Bound(_object(container, type_), (container, key, value))


def _object(container: s.Container, type_: s.Type) -> s.Tensor:
    while type_.kind != s.TENSOR and type_.kind != s.MAP:
        type_ = type_.of.contents
    return s.Tensor(data=ctypes.addressof(container), type=type_.elem, shape=s.Shape(rank=-1))


# ---- From the library. ----

def taken(tensor: s.Tensor, type_: s.Type) -> Any:
    """A copy of a result in Python's own memory."""
    if type_.kind == s.TENSOR:
        return _taken_tensor(tensor)
    if not tensor.data:
        raise UnsupportedError(f"a result is a {s.KINDS[type_.kind]}, which has no counterpart in Python")
    container = s.Container.from_address(tensor.data)
    if type_.kind == s.MAP:
        return dict(zip(_taken_tensor(container.key).tolist(), _taken_tensor(container.value).tolist()))
    items = [taken(container.item[k], type_.of.contents) for k in range(container.n)]
    if type_.kind == s.OPTIONAL:
        return items[0] if items else None
    return items


def _taken_tensor(tensor: s.Tensor) -> np.ndarray[Any, Any]:
    dtype, shape = s.DTYPES[tensor.type], tuple(tensor.shape.dim[: tensor.shape.rank])
    n = math.prod(shape)
    if dtype == "string":
        return _taken_strings(tensor, shape, n)
    if dtype in _PACKED:
        raw = _copy(tensor.data, -(-n * _PACKED[dtype] // 8), np.dtype(np.uint8))
        return _unpack(raw, _PACKED[dtype], n, dtype_of(dtype), dtype).reshape(shape)
    if tensor.splat:
        return np.full(shape, _copy(tensor.data, 1, dtype_of(dtype))[0], dtype_of(dtype))
    return _copy(tensor.data, n, dtype_of(dtype)).reshape(shape)


def _copy(address: int | None, n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    out = np.empty(n, dtype)
    if n:
        assert address is not None
        ctypes.memmove(out.ctypes.data, address, n * dtype.itemsize)
    return out


def _unpack(packed: np.ndarray[Any, Any], bits: int, n: int, dtype: np.dtype[Any], name: str) -> np.ndarray[Any, Any]:
    per = 8 // bits
    mask = np.uint8((1 << bits) - 1)
    raw = np.stack([packed >> np.uint8(k * bits) & mask for k in range(per)], axis=-1).reshape(-1)[:n]
    if name.startswith("int"):     # signed elements of ml_dtypes have the sign in all higher bits
        sign = np.uint8(1 << (bits - 1))
        raw = (raw ^ sign) - sign
    return raw.astype(np.uint8).view(dtype)


def _taken_strings(tensor: s.Tensor, shape: tuple[int, ...], n: int) -> np.ndarray[Any, Any]:
    out = np.empty(n, dtype=object)
    strings = ctypes.cast(tensor.data, ctypes.POINTER(s.String))
    for k in range(n):
        one = strings[0 if tensor.splat else k]
        out[k] = text(ctypes.string_at(one.data, one.size)) if one.size else ""
    return out.reshape(shape)


def fresh(value: s.Value) -> np.ndarray[Any, Any] | None:
    """A new array for an output that may be bound before the run; None if its size or type says that it cannot."""
    name, dims = s.DTYPES[value.type.elem], dims_of(value.shape)
    if value.type.kind != s.TENSOR or name in _PACKED or name in ("string", "undefined") or dims is None:
        return None
    if any(not isinstance(dim, int) for dim in dims):
        return None
    return np.empty(tuple(int(dim) for dim in dims if isinstance(dim, int)), dtype_of(name))
