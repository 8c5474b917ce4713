#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of the communication of data-parallel training goes on while ranks compute, over links of a given rate, for docs/distributed.md.

    bench/link.py ONNXMEM [--ranks 2,4] [--rates 100mbit,1gbit] [--net gpt] [--batch 16] [--overlap 4] [--bucket 64K] [--steps 20] [--repeat 3]

Each rank is in a network namespace of its own, with an interface whose both ends a token bucket limits (tc tbf), on a bridge in another namespace
where mpirun is.  mpirun starts the ranks by `ip netns exec`, and not by ssh; they exchange data by TCP alone.  It takes root, ip, tc and Open
MPI, and says so where one is missing.  The nets are those of tests/dist/nets.test."""
import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = os.path.join(HERE, "..", "tests", "dist", "nets.py")
NETWORK, HUB = "10.77.0.", "onnxmem-hub"
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp",
       "OMPI_MCA_btl_tcp_if_include": NETWORK + "0/24", "OMPI_MCA_oob_tcp_if_include": NETWORK + "0/24",
       "PMIX_MCA_ptl_tcp_if_include": NETWORK + "0/24", "PMIX_MCA_ptl_tcp_remote_connections": "1"}


def space(rank):
    return f"onnxmem-rank{rank}"


def do(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Network:
    """Namespaces of so many ranks, which are there while the object is entered."""

    def __init__(self, ranks, rate):
        self.ranks, self.rate, self.made = ranks, rate, []

    def __enter__(self):
        try:
            self.add(HUB, "br0", "type", "bridge", address=254)
            for k in range(self.ranks):
                self.add(space(k), "eth0", "type", "veth", "peer", "name", f"v{k}", "netns", HUB, address=k + 1)
                do("ip", "-n", HUB, "link", "set", f"v{k}", "master", "br0", "up")
                for where, end in (HUB, f"v{k}"), (space(k), "eth0"):
                    do("tc", "-n", where, "qdisc", "add", "dev", end, "root", "tbf", "rate", self.rate, "burst", "64kb", "latency", "100ms")
        except subprocess.CalledProcessError:
            self.__exit__()
            raise
        return self

    def add(self, name, link, *kind, address):
        do("ip", "netns", "add", name)
        self.made.append(name)
        do("ip", "-n", name, "link", "set", "lo", "up")
        do("ip", "-n", name, "link", "add", link, *kind)
        do("ip", "-n", name, "addr", "add", f"{NETWORK}{address}/24", "dev", link)
        do("ip", "-n", name, "link", "set", link, "up")

    def __exit__(self, *_):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def run(self, *command):
        each = 'exec ip netns exec onnxmem-rank"$OMPI_COMM_WORLD_RANK" "$@"'
        r = subprocess.run(["ip", "netns", "exec", HUB, "mpirun", "-n", str(self.ranks), "sh", "-c", each, "sh", *command],
                           env=dict(os.environ, LC_ALL="C", ONNXMEM_THREADS="1", **MPI), capture_output=True, text=True)
        if r.returncode:
            sys.exit((r.stderr.strip().splitlines() or ["mpirun failed"])[-1])
        return r.stdout

    def sent(self):
        """Bytes that the ranks have sent by their interfaces."""
        path = "/sys/class/net/eth0/statistics/tx_bytes"
        return sum(int(subprocess.check_output(["ip", "netns", "exec", space(k), "cat", path])) for k in range(self.ranks))


def why_not():
    for tool in "ip", "tc", "mpirun":
        if not shutil.which(tool):
            return f"there is no {tool}"
    return None if os.geteuid() == 0 else "network namespaces are made by root"


def measure(a, folder, ranks, rate):
    shares, times, waits, steps, sent = [], [], [], [], 0
    with Network(ranks, rate) as net:
        for _ in range(a.repeat):
            before = net.sent()
            said = net.run(a.onnxmem, "train", f"{folder}/{a.net}.onnx", "--data", f"{folder}/{a.net}.npz", "--batch", str(a.batch), "--lr", "0.001",
                           "--epochs", str(a.steps), "--bucket", a.bucket, "--overlap", str(a.overlap), "--schedule", "original")
            sent = net.sent() - before
            whole, waited = map(float, re.search(r"communication ([\d.]+) s, of which the step waited for ([\d.]+) s", said).groups())
            shares.append(max(0.0, 1 - waited / whole) * 100)
            times.append(whole * 1000 / a.steps)
            waits.append(waited * 1000 / a.steps)
            steps.append(float(re.search(r"([\d.]+) ms$", said, re.M).group(1)) / a.steps)
    m = statistics.median
    print(f"| {a.net} | {ranks} | {rate} | {sent / a.steps / ranks / 1e3:,.0f} | {m(steps):.1f} | {m(times):.1f} | {m(waits):.1f} | {m(shares):.0f} "
          f"({min(shares):.0f} to {max(shares):.0f}) |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("onnxmem")
    p.add_argument("--ranks", default="2,4")
    p.add_argument("--rates", default="100mbit,1gbit")
    p.add_argument("--net", default="gpt")
    p.add_argument("--large", action="store_true", help="the nets of NETS=large")
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--overlap", type=int, default=4)
    p.add_argument("--bucket", default="64K")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--repeat", type=int, default=3)
    a = p.parse_args()
    a.onnxmem = os.path.abspath(a.onnxmem)
    if why_not():
        print("not measured:", why_not())
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))   # namespaces must not stay
    with tempfile.TemporaryDirectory() as folder:
        digits = os.path.join(HERE, "..", "models", "digits.onnx")
        subprocess.run([sys.executable, NETS, "make", folder, digits, *(["large"] if a.large else [])], check=True,
                       env=dict(os.environ, ONNXMEM=a.onnxmem))
        print("load of the last minute:", os.getloadavg()[0], "on", os.cpu_count(), "cores")
        print("| net | ranks | rate | KB sent by a rank in a step | step, ms | communication, ms | of which it waited, ms | hidden, % |\n"
              "|---|---:|---|---:|---:|---:|---:|---:|")
        for ranks in map(int, a.ranks.split(",")):
            for rate in a.rates.split(","):
                try:
                    measure(a, folder, ranks, rate)
                except subprocess.CalledProcessError as e:
                    sys.exit("not measured: this system refuses " + " ".join(e.cmd))
        print("load of the last minute:", os.getloadavg()[0])


main()
