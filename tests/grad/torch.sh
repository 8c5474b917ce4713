# SPDX-License-Identifier: Apache-2.0
# Sets $torch to a Python that has PyTorch, which may be where Debian has put it and not where onnx is;
# to nothing where there is none.
torch=
find_torch()
{
	for python; do
		if "$python" -c 'import torch, numpy' 2>/dev/null; then
			torch=$python
			return
		fi
	done
}
if [ "${TORCH_PYTHON:-}" ]; then
	find_torch "$TORCH_PYTHON"
else
	find_torch "${PYTHON:-python3}" python3 /usr/bin/python3
fi
