# SPDX-License-Identifier: Apache-2.0
# The tables of passes and operators.
om passes
for pass in inline shapes fold prune liveness views inplace pack; do om passes $pass; done
om passes nonsense
"$ONNXMEM" ops | sed -n '1p; /^Relu /p; /^If /p'
om ops Relu
om ops Softmax
om ops Nonsense
