"""Mixtures of experts: a block beside a dense one of the same active size, beside transformers' and beside one in which all
experts compute every token; and the training step of a mixture of 100 million parameters beside PyTorch's.

Blocks: forward and backward at 2048 tokens of width 768, 2048 active columns. Of transformers all three backends run; the fastest
counts. Parameters have the compute type on both sides. The step is training.py's, of the size mix100; PyTorch's experts are a loop
over experts (peers/torch_model.py), eager and compiled.
"""
import statistics, sys

import training
from peers.stepper import Stepper, pairs
from report import HERE, has_bf16, spread

BACKENDS = ("eager", "batched_mm", "grouped_mm")


class Blocks:
    def __init__(self, bench, dtype, experts, top_k):
        self.b, self.dtype, self.turns = bench, dtype, 3 if bench.quick else 7
        self.name = f"{experts} experts top-{top_k}, {dtype}"
        self.shape = ["--experts", experts, "--top_k", top_k, "--threads", bench.threads]

    def ours(self, block):
        return Stepper([self.b.benches / "moe_bench", "--drive", block, "--in", self.dtype, *self.shape], self.b.env)

    def theirs(self, backend):
        env = self.b.shim_env if self.dtype == "f32" else self.b.peer_env
        return Stepper([sys.executable, HERE / "peers/torch_experts.py", "--backend", backend, "--dtype", self.dtype,
                        *self.shape], env)

    def beside(self, mine, other, turns=None):
        """(the other's seconds / ours by pair, ours, the other's)."""
        other.step()
        x, y = pairs(mine, other, turns or self.turns)
        other.finish()
        return [q["s"] / p["s"] for p, q in zip(x, y)], x, y

    def run(self, naive_goal):
        mine = self.ours("experts")
        mine.step()
        r, x, y = self.beside(mine, self.ours("dense"))
        r = [1 / ratio for ratio in r]
        times = f"{1e3 * statistics.median(p['s'] for p in x):.0f} and {1e3 * statistics.median(p['s'] for p in y):.0f} ms"
        self.b.goal(f"block, {self.name} / dense", "<= 1.2x time", spread(r, 2) + "x", statistics.median(r) <= 1.2,
                    f"{len(r)} pairs; {times}")
        if self.dtype == "f32" or has_bf16():
            self.transformers(mine)
        r, *_ = self.beside(mine, self.ours("all"))
        self.b.goal(f"block, {self.name}: all experts for every token / ours", f">= {naive_goal}x time", spread(r, 2) + "x",
                    statistics.median(r) >= naive_goal, f"{len(r)} pairs")
        mine.finish()

    def transformers(self, mine):
        seen = {}
        for backend in BACKENDS:
            try:
                other = self.theirs(backend)
                r, *_ = self.beside(mine, other, 2)
                seen[backend] = statistics.median(r)
            except RuntimeError as error:
                self.b.say(f"{self.name}: {backend} did not run: {str(error).strip().splitlines()[-1]}")
                self.b.say()
        best = min(seen, key=seen.get)
        other = self.theirs(best)
        label = other.first["peer"]
        r, *_ = self.beside(mine, other)
        self.b.goal(f"block, {self.name} / {label}", ">= 2x", spread(r, 2) + "x", statistics.median(r) >= 2,
                    f"{len(r)} pairs; two pairs each: " + ", ".join(f"{n} {s:.2f}x" for n, s in seen.items()))


def report(bench, dtypes):
    with bench.section("Mixtures"):
        for dtype in dtypes:
            Blocks(bench, dtype, 8, 2).run(naive_goal=5)
            Blocks(bench, dtype, 64, 8).run(naive_goal=5)
        for dtype in dtypes:
            if dtype == "bf16" and not has_bf16():
                continue
            peers = {n: p for n, p in training.peers_of(bench, "mix100", dtype, None, 3 if bench.quick else 7).items()
                     if n.startswith("PyTorch")}
            seen = training.Case(bench, "mix100", dtype, peers, 3 if bench.quick else 7).run()
            best = seen["seen"][seen["best"]]
            bench.goal(f"train mix100 {dtype} / best of PyTorch", ">= 1.5x", f"{best['ratio']:.2f}x", best["ratio"] >= 1.5,
                       f"{best['label']}, {len(best['a'])} pairs")
