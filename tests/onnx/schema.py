# SPDX-License-Identifier: Apache-2.0
"""proto/onnx.proto says what the schema of the installed onnx package says:
every message, field, number, label, type and enum."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import SRC, Points, scratch, skip_all

try:
    from google.protobuf import descriptor_pb2
    from onnx import onnx_ml_pb2
except ImportError as e:
    skip_all(str(e))
try:
    from onnx import onnx_data_pb2
except ImportError:
    onnx_data_pb2 = None


def facts_of_enum(e, path, out):
    for v in e.value:
        out[f"{path}{e.name}.{v.name}"] = v.number


def facts_of_message(m, path, out):
    path += m.name + "."
    out[path] = "message"
    for e in m.enum_type:
        facts_of_enum(e, path, out)
    for sub in m.nested_type:
        facts_of_message(sub, path, out)
    for f in m.field:
        oneof = m.oneof_decl[f.oneof_index].name if f.HasField("oneof_index") else None
        out[path + f.name] = (f.number, f.label, f.type, f.type_name, oneof,
                              f.options.packed, f.default_value)


def facts(*files):
    out = {}
    for f in files:
        for e in f.enum_type:
            facts_of_enum(e, "", out)
        for m in f.message_type:
            facts_of_message(m, "", out)
    return out


def ours():
    with scratch() as tmp:
        to = os.path.join(tmp, "set")
        proto = os.path.join(SRC, "proto")
        subprocess.run([os.environ.get("PROTOC_C", "protoc-c"), "--proto_path=" + proto,
                        "--descriptor_set_out=" + to, "--c_out=" + tmp,
                        os.path.join(proto, "onnx.proto")], check=True)
        files = descriptor_pb2.FileDescriptorSet()
        with open(to, "rb") as f:
            files.ParseFromString(f.read())
    return facts(*files.file), files.file[0].syntax in ("", "proto2")


def theirs():
    files = []
    for module in (onnx_ml_pb2, onnx_data_pb2):
        if module:
            f = descriptor_pb2.FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(f)
            files.append(f)
    return facts(*files)


t = Points()
mine, proto2 = ours()
other = theirs()
t.point(proto2, "the syntax is proto2: zeros stay written")
wrong = [f"{k}: ours {mine.get(k)}, theirs {v}" for k, v in other.items() if mine.get(k) != v]
t.point(not wrong, f"all {len(other)} facts of the installed schema are ours", *wrong)
# Ours may be newer than the package, so this one is told, not failed.
for k in mine.keys() - other.keys():
    print("# only ours:", k)
t.point(len(other) > 200, "the installed schema is a whole one")
t.end()
