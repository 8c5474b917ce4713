# SPDX-License-Identifier: Apache-2.0
# The help of every command; -h, -V, -q and -v anywhere.
om --help
for command in report dump hash pack passes ops; do om $command --help; done
om -V | sed 's/^kernels for .*/kernels for ISA/'
om help ops
om -h ops
om -q help ops -v
# No command has two options of one name.
for command in $("$ONNXMEM" help --commands); do "$ONNXMEM" $command --help | grep -o '^  --[a-z0-9-]*' | sort | uniq -d; done
