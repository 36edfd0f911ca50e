"""Several processes of this machine, each with one thread: our steps beside one process of our own, and beside PyTorch's
DistributedDataParallel and FSDP2 over Gloo with the same model, batch and weights; an all-reduce beside Gloo's own ring.

All of it in turns, as elsewhere. The batch is two leaves of 8 rows, one for each worker; one process runs both. Losses must be
PyTorch's to 4 digits in f32, and those of our own runs equal in every digit.
"""
import json, statistics, subprocess, sys

from peers.stepper import Stepper, pairs
from prices import sized
from report import HERE, spread
from training import close

WORKERS = 2
SIZE = sized("small58", batch=16)


class Distributed:
    def __init__(self, bench, size=SIZE):
        self.b, self.size, self.turns = bench, size, 3 if bench.quick else 7

    def ours(self, workers, *more):
        rows = int(self.size.split("batch=")[1]) // WORKERS
        return Stepper([self.b.benches / "workers_bench", "--start", self.b.start_file(self.size), "--workers", workers,
                        "--threads", 1, "--leaf_examples", rows, *more], self.b.env)

    def theirs(self, how, *more):
        return Stepper([sys.executable, HERE / "peers/torch_workers.py", "--size", self.size, "--workers", WORKERS,
                        "--threads", 1, "--how", how, *more], self.b.shim_env)

    def beside(self, case, a, b, least, digits):
        """`a` must take at most 1 / least of b's time; its losses must be b's to so many digits."""
        a.step(), b.step()
        x, y = pairs(a, b, self.turns)
        a.finish(), b.finish()
        r = [q["s"] / p["s"] for p, q in zip(x, y)]
        if not close(a.losses, b.losses, digits):
            self.b.failed.append(f"{case}: losses {a.losses} and {b.losses}")
        self.b.goal(case, f">= {least}x", spread(r, 2) + "x", statistics.median(r) >= least,
                    f"{len(r)} pairs; {statistics.median(p['s'] for p in x):.2f} and "
                    f"{statistics.median(q['s'] for q in y):.2f} s a step; {b.first['peer']}")

    def own(self):
        for exchange, least in (("step", 1.7), ("layer", 1.5)):
            self.beside(f"{WORKERS} one-thread processes, exchange {exchange} / one one-thread process, small58 f32, 16 x 512",
                        self.ours(WORKERS, "--exchange", exchange), self.ours(1), least, 6)

    def torch(self):
        for how, exchange in (("ddp", "step"), ("fsdp", "layer")):
            self.beside(f"{WORKERS} one-thread processes, exchange {exchange} / PyTorch {how}, small58 f32, 16 x 512",
                        self.ours(WORKERS, "--exchange", exchange), self.theirs(how), 1.3, 4)

    def collectives(self):
        for workers in (2, 4):
            done = subprocess.run([str(self.b.benches / "collective_bench"), "--workers", str(workers), "--mib", "64",
                                   "--turns", str(self.turns)], capture_output=True, text=True, check=True, env=self.b.env)
            r = json.loads(done.stdout.strip().splitlines()[-1])
            self.b.goal(f"all-reduce of 64 MiB in our tree, {workers} workers / Gloo's ring", ">= 0.8x",
                        f"{r['ratio']:.2f} ({r['ratio_min']:.2f}-{r['ratio_max']:.2f})x", r["ratio"] >= 0.8,
                        f"{self.turns} pairs; {r['s'] * 1e3:.0f} and {r['ring_s'] * 1e3:.0f} ms; an exchange of 8 bytes "
                        f"with all takes {r['small_exchange_us']:.0f} us")


def report(bench):
    d = Distributed(bench)
    for title, measure in (("collectives", d.collectives), ("processes", d.own), ("PyTorch", d.torch)):
        with bench.section(f"Workers: {title}"):
            measure()
            bench.table(["case", "goal", "seen", "held", "settings"], bench.goals)
