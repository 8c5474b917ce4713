#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes manifest.json from the manifest of the public model zoo.

    models/manifest.py ONNX_HUB_MANIFEST.json >models/manifest.json

Kept are the facts that fetching needs: names, paths, opsets, sizes and SHA-256 of
models and of their archives with test data, and tags.  A model of which one of
them is not known is left out, and named on standard error.  The mirror is where
the zoo's files moved when their first home stopped to serve them.
"""
import json
import re
import sys

MIRROR = "https://huggingface.co/onnxmodelzoo/legacy_models/resolve/main/"


def file(path, size, sha):
    known = (isinstance(path, str) and path and isinstance(size, int) and size > 0
             and isinstance(sha, str) and re.fullmatch("[0-9a-fA-F]{64}", sha))
    return {"path": path, "bytes": size, "sha256": sha.lower()} if known else None


def model(entry):
    meta = entry.get("metadata", {})
    own = file(entry.get("model_path"), meta.get("model_bytes"), meta.get("model_sha"))
    data = file(meta.get("model_with_data_path"), meta.get("model_with_data_bytes"), meta.get("model_with_data_sha"))
    if not own or not isinstance(entry.get("opset_version"), int) or not entry.get("model"):
        return None
    out = {"name": entry["model"], "opset": entry["opset_version"], **own, "tags": meta.get("tags", [])}
    if data:
        out["data"] = data
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        entries = json.load(f)
    lines = []
    for entry in entries:
        one = model(entry)
        if one:
            lines.append("  " + json.dumps(one))
        else:
            print("left out: %s" % entry.get("model"), file=sys.stderr)
    print('{\n "schema": "onnxmem-manifest/1",\n "mirrors": [%s],\n "models": [\n%s\n ]\n}'
          % (json.dumps(MIRROR), ",\n".join(lines)))


main()
