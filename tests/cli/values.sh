# SPDX-License-Identifier: Apache-2.0
# Inputs that are constants.
om report "$models/branches.onnx" --value which=true
om report "$models/branches.onnx" --value which=0 --passes inline,shapes,fold,prune,liveness,views,inplace,pack | head -3
for target in generic cpu; do
	om plan "$models/branches.onnx" planned.onnx --value which=true --target $target >/dev/null
	om verify planned.onnx | tail -2
	om run "$models/branches.onnx" --fill deterministic --fill which:value=1 --save own.npz | tail -1
	om run planned.onnx --fill deterministic --expect own.npz | tail -2
	om run planned.onnx --fill deterministic --value which=true --poison --expect own.npz | tail -2
	om run planned.onnx --fill deterministic --fill which:value=1 --expect own.npz | tail -2
	om run planned.onnx --fill deterministic --fill which:value=0
	om run planned.onnx --fill deterministic --value which=false
done
om hash "$models/branches.onnx"
om hash planned.onnx
om report planned.onnx | head -3
om run "$models/branches.onnx" --fill deterministic --value which=true --expect own.npz | tail -1
om plan "$models/branches.onnx" open.onnx >/dev/null
om run open.onnx --fill deterministic --value which=true
om report "$models/branches.onnx" --value which=3
om report "$models/branches.onnx" --value which=1,0
om report "$models/branches.onnx" --value who=1
om report "$models/branches.onnx" --value which
om report "$models/branches.onnx" --value which:none.npy
om report "$models/branches.onnx" --value which=1 --value which=0
om report "$models/branches.onnx" --value x=1 | head -3
om report "$models/dynamic.onnx" --dim N=2 --value x=0.5 | head -2
om report "$models/dynamic.onnx" --value x=0.5
# A document whose value was changed.
om plan "$models/branches.onnx" --value which=1 --sidecar doc.json
om verify "$models/branches.onnx" --sidecar doc.json | tail -1
om run "$models/branches.onnx" --sidecar doc.json --fill deterministic | grep -o 'arena [0-9]* bytes'
om run "$models/branches.onnx" --sidecar doc.json --fill deterministic --target cpu
for edit in 's/"elements":"01"/"elements":"0x"/' 's/"elements":"01"/"elements":"0101"/' 's/"elements":"01"/"elements":"00"/' \
	's/"type":"bool","shape":\[\]/"type":"int8","shape":[]/' 's/"type":"bool","shape":\[\]/"type":"bool","shape":[1]/' \
	's/"values":{"which"/"values":{"nobody"/'; do
	sed "$edit" doc.json >changed.json
	om verify "$models/branches.onnx" --sidecar changed.json
done
om tile "$models/branches.onnx" tiled.onnx --value which=true
om dump tiled.onnx | grep -c ' If('
# What is written for a value has no input for it, so that it cannot be run with another one.
om dump tiled.onnx | grep '^^'
om run tiled.onnx --fill x:value=0.5 --save tiled.npz | tail -2
om run "$models/branches.onnx" --fill x:value=0.5 --value which=true --expect tiled.npz | tail -2
om run tiled.onnx --fill deterministic --fill which:value=0
om grad "$models/branches.onnx" grad.onnx --loss-fn mse --wrt x --value which=true
om dump grad.onnx | grep '^^'
om run grad.onnx --fill deterministic | tail -2
