# SPDX-License-Identifier: Apache-2.0
"""Write the backend node tests of the installed onnx package: generate.py FOLDER

For where the tests are not at hand as files.  What cannot be written is left
out and named."""
import os
import sys
import warnings

import numpy
import onnx
import onnx.backend.test.case.node as node
from onnx import numpy_helper


def message(value, info):
    if isinstance(value, onnx.TensorProto):
        return value
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(list(value), info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(numpy.asarray(value), info.name)


def write(case, folder):
    os.makedirs(folder)
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data)
        graph = case.model.graph
        for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for k, value in enumerate(values):
                with open(os.path.join(data, f"{kind}_{k}.pb"), "wb") as file:
                    file.write(message(value, infos[k]).SerializeToString())
    onnx.save(case.model, os.path.join(folder, "model.onnx"))  # last: without it there is no test


def main():
    warnings.simplefilter("ignore")
    root = os.path.join(sys.argv[1], "node")
    for case in node.collect_testcases(None):
        try:
            write(case, os.path.join(root, case.name))
        except Exception as why:  # whatever a case does
            print(f"# {case.name} cannot be written: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
