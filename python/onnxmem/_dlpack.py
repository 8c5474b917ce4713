# SPDX-License-Identifier: Apache-2.0
"""DLPack: tensors of other packages, without a copy.

NumPy exchanges the element types that it has; this module reads and offers all that DLPack 0.8 has, with bfloat16.
"""
from __future__ import annotations

import ctypes as c
import weakref
from typing import Any

_CPU = 1
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_NAMES = {(_INT, 8): "int8", (_INT, 16): "int16", (_INT, 32): "int32", (_INT, 64): "int64", (_UINT, 8): "uint8",
          (_UINT, 16): "uint16", (_UINT, 32): "uint32", (_UINT, 64): "uint64", (_FLOAT, 16): "float16", (_FLOAT, 32): "float32",
          (_FLOAT, 64): "float64", (_BFLOAT, 16): "bfloat16", (_COMPLEX, 64): "complex64", (_COMPLEX, 128): "complex128",
          (_BOOL, 8): "bool"}
_CODES = {name: code for code, name in _NAMES.items()}


class _Managed(c.Structure):
    pass


_deleter = c.CFUNCTYPE(None, c.POINTER(_Managed))
_Managed._fields_ = [("data", c.c_void_p), ("device_type", c.c_int), ("device_id", c.c_int), ("ndim", c.c_int),
                     ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                     ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64), ("manager_ctx", c.c_void_p),
                     ("deleter", c.c_void_p)]

_api = c.pythonapi
_get = c.PYFUNCTYPE(c.c_void_p, c.py_object, c.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = c.PYFUNCTYPE(c.c_int, c.py_object, c.c_char_p)(("PyCapsule_SetName", _api))
_is_valid = c.PYFUNCTYPE(c.c_int, c.py_object, c.c_char_p)(("PyCapsule_IsValid", _api))
_capsule_destructor = c.PYFUNCTYPE(None, c.c_void_p)
_new = c.PYFUNCTYPE(c.py_object, c.c_void_p, c.c_char_p, c.c_void_p)(("PyCapsule_New", _api))
_get_raw = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", _api))
_is_valid_raw = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)(("PyCapsule_IsValid", _api))

_NEW, _USED = b"dltensor", b"used_dltensor"   # PyCapsule keeps pointers to names


#: Kinds of devices.  What stands for memory of the simulated device is of the kind for extensions.
DEVICES = {"cuda": 2, "opencl": 4, "sim": 12}
#: The stream of CUDA for which elements are asked for: that of the process, which waits for all others.
_CUDA_STREAM = 1


def device_kind(tensor: Any) -> int:
    """The kind of the device that a tensor of another package is on; what has no DLPack is on the CPU."""
    return int(tensor.__dlpack_device__()[0]) if hasattr(tensor, "__dlpack_device__") else _CPU


class Foreign:
    """A tensor of another package.  Its memory is given back when this object goes."""

    def __init__(self, tensor: Any, kind: int = _CPU) -> None:
        device = device_kind(tensor)
        if device != kind:
            raise ValueError(f"the tensor is on a device of the kind {device}: copy it to the CPU first")
        self.is_there = kind != _CPU
        #: What its elements come from.
        self.stream = _CUDA_STREAM if kind == DEVICES["cuda"] else None
        capsule = tensor.__dlpack__() if self.stream is None else tensor.__dlpack__(stream=self.stream)
        if not _is_valid(capsule, _NEW):
            raise ValueError("the DLPack capsule of the tensor was used before, or has another version")
        managed = c.cast(_get(capsule, _NEW), c.POINTER(_Managed))
        _rename(capsule, _USED)
        weakref.finalize(self, _release, managed)
        one = managed.contents
        self.dtype = _NAMES.get((one.code, one.bits)) if one.lanes == 1 else None
        self.shape = tuple(one.shape[k] for k in range(one.ndim))
        self.address = (one.data or 0) + one.byte_offset
        #: In elements; None: dense, in row-major order.
        self.strides = tuple(one.strides[k] for k in range(one.ndim)) if one.strides else None
        self.is_contiguous = not one.strides or _is_row_major(self.shape, [one.strides[k] for k in range(one.ndim)])


def _release(managed: Any) -> None:
    if managed.contents.deleter:
        _deleter(managed.contents.deleter)(managed)


def _is_row_major(shape: tuple[int, ...], strides: list[int]) -> bool:
    expected = 1
    for dim, stride in zip(reversed(shape), reversed(strides)):
        if dim != 1 and stride != expected:
            return 0 in shape
        expected *= dim
    return True


# ---- Offering. ----

_offered: dict[int, tuple[Any, ...]] = {}    # what is in use by others, by address of its struct


def _forget(managed: Any) -> None:
    _offered.pop(c.addressof(managed.contents), None)


def _forget_unused(capsule: int) -> None:
    if _is_valid_raw(capsule, _NEW):
        _offered.pop(_get_raw(capsule, _NEW), None)


_take_back, _drop = _deleter(_forget), _capsule_destructor(_forget_unused)


def offer(array: Any, dtype: str, kind: int = _CPU) -> Any:
    """A capsule for a contiguous NumPy array, whose elements are of this type whatever NumPy calls them."""
    code, bits = _CODES[dtype]
    shape = (c.c_int64 * max(array.ndim, 1))(*array.shape)
    managed = _Managed(data=array.ctypes.data, device_type=kind, ndim=array.ndim, code=code, bits=bits, lanes=1, shape=shape,
                       deleter=c.cast(_take_back, c.c_void_p))
    address = c.addressof(managed)
    _offered[address] = (managed, shape, array)
    return _new(address, _NEW, c.cast(_drop, c.c_void_p))


class DLPackArray:
    """A NumPy array that offers its elements to other packages as the type that they are, bfloat16 for example."""

    def __init__(self, array: Any, dtype: str | None = None) -> None:
        import numpy as np
        self.array = np.ascontiguousarray(array)
        self.dtype = dtype or str(array.dtype)
        if self.dtype not in _CODES:
            raise ValueError(f"DLPack has no elements of type {self.dtype}")

    def __dlpack__(self, **unused: object) -> Any:
        return offer(self.array, self.dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0
