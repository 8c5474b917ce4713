#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A suite on the nodes of a cluster: an array of jobs, one for each shard, and one that merges.
#
#     sbatch --array=1-8 examples/fleet/slurm.sh SUITE FOLDER
#     sbatch --dependency=afterany:ID examples/fleet/slurm.sh SUITE FOLDER merge [OPTION]...
#
# FOLDER is shared by all nodes.  The second job ends with the status of the suite; its options are those of
# `onnxmem regress`, such as --update or --junit FILE.
#SBATCH --job-name=onnxmem
#SBATCH --cpus-per-task=2
suite=$1 folder=$2
shift 2
: "${ONNXMEM:=onnxmem}"
mkdir -p "$folder" || exit 1
if [ "${1:-}" != merge ]; then
	rm -f "$folder/shard-$SLURM_ARRAY_TASK_ID.json"
	# A model that fails is an outcome like others: the merge judges it.
	"$ONNXMEM" regress "$suite" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --jobs "${SLURM_CPUS_PER_TASK:-1}" \
		--outcomes "$folder/shard-$SLURM_ARRAY_TASK_ID.json" "$@"
	[ -s "$folder/shard-$SLURM_ARRAY_TASK_ID.json" ]
	exit
fi
shift
for file in "$folder"/shard-*.json; do
	set -- "$@" --merge "$file"
done
exec "$ONNXMEM" regress "$suite" "$@"
