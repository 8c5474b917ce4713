# SPDX-License-Identifier: Apache-2.0
"""A suite on the workers of a Dask cluster, and the merged result.

    dask_suite.py SUITE --shards 8 [--scheduler ADDRESS] [OPTION]...

Without a scheduler a cluster is started on this machine.  Other options are those of `onnxmem regress` for the merge,
such as --update or --junit FILE; ONNXMEM names the command, which the workers have, too.  The suite and its models are
read from a folder that all workers share.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from dask.distributed import Client, LocalCluster

COMMAND = os.environ.get("ONNXMEM", "onnxmem")


def run_shard(suite, k, n):
    """The outcomes of a shard, as the text of their file, and what the command said."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "outcomes.json")
        done = subprocess.run([COMMAND, "regress", suite, "--shard", f"{k}/{n}", "--outcomes", path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not os.path.exists(path):
            raise RuntimeError(f"shard {k}/{n} exits with {done.returncode}: {done.stdout}")
        with open(path) as f:
            return f.read()


def merge(suite, outcomes, options):
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for k, text in enumerate(outcomes):
            path = os.path.join(folder, f"shard-{k}.json")
            with open(path, "w") as f:
                f.write(text)
            words += ["--merge", path]
        return subprocess.run([COMMAND, "regress", suite, *words, *options]).returncode


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("suite")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--scheduler")
    how, options = parser.parse_known_args()
    suite = os.path.abspath(how.suite)
    cluster = None if how.scheduler else LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with Client(how.scheduler or cluster) as client:
        shards = client.map(run_shard, [suite] * how.shards, range(1, how.shards + 1), [how.shards] * how.shards, pure=False)
        outcomes = client.gather(shards)
    if cluster:
        cluster.close()
    sys.exit(merge(suite, outcomes, options))


if __name__ == "__main__":
    main()
