"""Training steps beside PyTorch (eager and compiled), JAX and Levanter, step by step in turns.

A peer takes 7 turns of a step with ours. One that no goal names takes the first two alone when they show it NEAR times
slower than a peer before it. Ratios are those within pairs, and the best peer is the one with the least of them. f32 losses of PyTorch and JAX
must be ours to 4 digits (all start from the same weights and see the same batches); bf16 rounds at other places. PyTorch's
bf16 without bf16 instructions is tens of times slower than its f32: there only nano is measured beside it, with one turn.
Steps on integers (int8) stand beside the peers in every type that is fast on the machine; the losses agree to 2 digits.

"Start" is what a process takes besides steps: from its start to the end of its first step, less the median of its later
steps, for ours and for the peers alike (they compile in their first step). It holds loading the program and the weights,
tracing, compiling, and the kernel's first touch of all memory, and not the first step's arithmetic.

The calibrated peak is a burst of the type's best instruction on all threads beside each step (train_bench.cc); shares are of
the burst beside the same step, the peak said is the median.
"""
import dataclasses, random, statistics, sys

from peers import common
from peers.stepper import Stepper, pairs
from report import HERE, has_bf16, has_vnni, spread

# By case: at least so many times the tokens/s of the best peer.
GOALS = {("nano", "f32"): 1.3, ("small58", "f32"): 1.15, ("base125", "f32"): 1.2,
         ("nano", "bf16"): 1.7, ("small58", "bf16"): 1.7, ("base125", "bf16"): 1.5}
INT8_GOAL = 2.2 if has_vnni() else 1.4  # the best peer of any type
LEAN = "save:qkv,attention"  # the rematerialisation policy of the row about memory
NEAR = 1.25  # a peer whose steps take so many times another's is not the best one
DRAWN_SHARE = 0.8  # of the smallest goal of the type, for sizes drawn at run time


def close(a, b, digits):
    return all(abs(x - y) <= 10.0 ** -digits * abs(y) for x, y in zip(a, b))


def drawn_sizes(seed, count=3):
    """Sizes that nobody tuned for: 0.05 to 0.4 TFLOP a step."""
    draw = random.Random(seed)
    sizes = []
    while len(sizes) < count:
        head = draw.choice([32, 64, 64, 128])
        kv = draw.choice([1, 2, 3, 4])
        heads = kv * draw.choice([1, 2, 3])
        c = dict(L=draw.randint(2, 9), H=head * heads, heads=heads, kv=kv, ffn=8 * draw.randint(40, 200),
                 V=draw.randint(1000, 24000), seq=draw.choice([96, 200, 256, 384, 640, 768]), batch=draw.randint(1, 8))
        step = common.flops_per_token(c, c["seq"]) * c["seq"] * c["batch"]
        if 192 <= c["H"] <= 1024 and 5e10 <= step <= 4e11:
            sizes.append(",".join(f"{k}={v}" for k, v in c.items()))
    return sizes


def start_time(stepper, later):
    """Seconds from a process's start to the end of its first step, less the median of `later` steps' lines."""
    return stepper.first["start_to_first_step_s"] - statistics.median(x["s"] for x in later)


def ratios(a, b):
    """By pair: how many times ours the other's seconds are."""
    return [y["s"] / x["s"] for x, y in zip(a, b)]


class Case:
    """One size and type. `peers`: name -> Peer (peers_of)."""

    def __init__(self, bench, size, dtype, peers, turns=7):
        self.b, self.size, self.dtype, self.c = bench, size, dtype, common.size(size)
        self.peers, self.turns = peers, turns
        self.tokens = self.c["seq"] * self.c["batch"]

    def ours(self, env, *more):
        command = [self.b.benches / "train_bench", "--start", self.b.start_file(self.size), "--dtype", self.dtype,
                   "--threads", self.b.threads, "--leaf_examples", self.c["batch"], *more]
        return Stepper(command, env)

    def starts(self):
        """Seconds of a start with nothing compiled, and of three with all kernels in the cache."""
        cold_env = dict(self.b.env, OSTRO_CACHE_DIR=str(self.b.folder / f"cold_{self.size}_{self.dtype}"))
        seen = []
        for env in (cold_env, *[self.b.env] * 4):  # the second one fills the other folder
            run = self.ours(env)
            seen.append(start_time(run, [run.step() for _ in range(3)]))
            run.finish()
        return seen[0], seen[2:]

    def lean(self, mine):
        """What keeping less gives: (peak MiB, the time of a step beside `mine`)."""
        run = self.ours(self.b.env, "--remat", LEAN)
        run.step()
        a, b = pairs(mine, run, self.turns)
        return run.finish()["peak_rss_MiB"], statistics.median(ratios(a, b))

    def take_turns(self, mine, name, best):
        """What a peer shows beside ours; `best` is the least ratio of those before it."""
        peer = self.peers[name]
        theirs = Stepper([peer.python, HERE / "peers" / peer.words[0], "--size", self.size, "--dtype", peer.dtype, "--threads",
                          self.b.threads, *peer.words[1:]], peer.env)
        if peer.turns > 1:
            theirs.step()
        a, b = pairs(mine, theirs, min(2, peer.turns))
        if peer.turns > 2 and (peer.named or best is None or statistics.median(ratios(a, b)) < NEAR * best):
            more = pairs(mine, theirs, peer.turns - 2)
            a, b = a + more[0], b + more[1]
        last = theirs.finish()
        digits = {"f32": 4, "bf16": 2, "int8": 2}[self.dtype] if not name.startswith("Levanter") else 1
        if not close(theirs.losses, mine.losses, digits):
            self.b.failed.append(f"{self.size} {self.dtype}: losses {mine.losses} and {name}'s {theirs.losses}")
        return dict(ratio=statistics.median(ratios(a, b)), a=a, b=b, label=theirs.first["peer"], memory=last["peak_rss_MiB"],
                    start=start_time(theirs, b), losses=theirs.losses)

    def run(self):
        """Everything that goals() judges; says the section's text and table."""
        cold, starts = self.starts()
        mine = self.ours(self.b.env)
        mine.step()
        seen = {}
        for name in self.peers:
            try:
                seen[name] = self.take_turns(mine, name, min((s["ratio"] for s in seen.values()), default=None))
            except RuntimeError as error:
                self.b.failed.append(f"{self.size} {self.dtype}: {name} did not run: {str(error)[-600:]}")
        lean = self.lean(mine) if self.size == "small58" else None
        end = mine.finish()
        best = min(seen, key=lambda name: seen[name]["ratio"])
        steps = [x for s in seen.values() for x in s["a"]]
        flops = common.flops_per_token(self.c, self.c["seq"]) * self.tokens
        used = statistics.median(flops / x["s"] / (x["peak_gflops"] * 1e9) for x in steps)
        peak = statistics.median(x["peak_gflops"] for x in steps)
        same_start = [name for name in seen if not name.startswith("Levanter")]  # which draws weights of its own
        losses = seen[best if best in same_start or not same_start else same_start[0]]["losses"]
        self.b.say(f"### {self.size} {self.dtype}: {seen[best]['ratio']:.2f} x {seen[best]['label']} "
                   f"({len(seen[best]['a'])} pairs of steps)")
        self.b.say()
        self.b.say(f"{mine.first['peer']}; {self.c['batch']} x {self.c['seq']} tokens in {mine.first['leaves']} leaf, "
                   f"cheap values made again (the default); {used:.0%} of the calibrated peak of {peak:.0f} GFLOP/s; loss of "
                   f"step {len(losses)}: {mine.losses[len(losses) - 1]:.4f} and {losses[-1]:.4f}")
        self.b.say()
        self.b.table(["median (lowest-highest)", "pairs", "tokens/s", "ours beside it", "ours / theirs", "peak memory, MiB",
                      "start, s"], [
            ["**ostro**", "", spread([self.tokens / x["s"] for x in steps], 0), "", "", end["peak_rss_MiB"],
             f"{spread(starts, 2)}; {cold:.2f} with nothing compiled"],
            *[["**" * (name == best) + s["label"] + "**" * (name == best), len(s["b"]),
               spread([self.tokens / y["s"] for y in s["b"]], 0), spread([self.tokens / x["s"] for x in s["a"]], 0),
               spread(ratios(s["a"], s["b"]), 2), s["memory"], f"{s['start']:.1f}"] for name, s in seen.items()]])
        return dict(seen=seen, best=best, memory=end["peak_rss_MiB"], used=used, warm=statistics.median(starts), cold=cold,
                    lean=lean)


@dataclasses.dataclass
class Peer:
    words: list  # script and options
    python: str
    env: dict
    turns: int
    named: bool  # a goal of its own
    dtype: str = ""


def peers_of(bench, size, dtype, levanter_python, turns):
    """Name -> Peer, the fastest first."""
    if dtype != "int8":
        peers = peers_in(bench, size, dtype, levanter_python, turns)
        return {name: dataclasses.replace(peer, dtype=dtype) for name, peer in peers.items()}
    return {f"{name}, {theirs}": dataclasses.replace(peer, dtype=theirs, named=False)
            for theirs in (["bf16", "f32"] if has_bf16() else ["f32"])
            for name, peer in peers_in(bench, size, theirs, levanter_python, turns).items()}


def peers_in(bench, size, dtype, levanter_python, turns):
    """Those of one type. Without the shim's kernels PyTorch would be an easy win in f32 on AMD."""
    torch_env = bench.shim_env if dtype == "f32" else bench.peer_env
    slow = dtype == "bf16" and not has_bf16()
    torch = {}
    if not slow or size == "nano":
        torch = {name: Peer(["torch_llama.py", *words], sys.executable, torch_env, 1 if slow else turns, False)
                 for name, words in (("PyTorch compiled", ["--compile"]), ("PyTorch eager", []))}
    jax = {"JAX": Peer(["jax_llama.py"], sys.executable, bench.peer_env, turns, True)}
    if levanter_python:
        jax["Levanter"] = Peer(["levanter_llama.py"], levanter_python, bench.peer_env, turns, True)
    return jax | torch if slow else torch | jax


def goals(bench, size, dtype, r):
    """The rows of a case in the table of goals."""
    if dtype == "int8":
        best = r["seen"][r["best"]]
        bench.goal(f"train {size} int8 / best peer of any type", f">= {INT8_GOAL:.2f}x", f"{best['ratio']:.2f}x", best["ratio"] >= INT8_GOAL,
                   f"{r['best']}: {best['label']}, {len(best['a'])} pairs; one leaf, the default rematerialisation")
        return
    least = min(g for (_, d), g in GOALS.items() if d == dtype)
    goal = GOALS.get((size, dtype), DRAWN_SHARE * least)
    best = r["seen"][r["best"]]
    bench.goal(f"train {size} {dtype} / best peer", f">= {goal:.2f}x", f"{best['ratio']:.2f}x", best["ratio"] >= goal,
               f"{best['label']}, {len(best['a'])} pairs; one leaf, the default rematerialisation")
    goal = {"f32": 2.0, "bf16": 4.0}[dtype]
    for peer in ("JAX", "Levanter"):
        if peer in r["seen"] and size in common.SIZES:
            s = r["seen"][peer]
            bench.goal(f"train {size} {dtype} / {peer}", f">= {goal:.0f}x", f"{s['ratio']:.2f}x", s["ratio"] >= goal,
                       f"{len(s['a'])} pairs; one leaf, the default rematerialisation")
    if size in ("small58", "base125"):
        goal = {"f32": 0.75, "bf16": 0.5}[dtype]
        bench.goal(f"model FLOPs utilisation {size} {dtype}", f">= {goal:.0%}", f"{r['used']:.0%}", r["used"] >= goal,
                   "of the calibrated peak of both cores, beside each step")
    if size == "small58":
        name = "PyTorch compiled" if "PyTorch compiled" in r["seen"] else r["best"]
        theirs = r["seen"][name]
        lean_memory, lean_time = r["lean"]
        for memory, settings in ((r["memory"], "the batch as one leaf, the default rematerialisation"),
                                 (lean_memory, f"the batch as one leaf, {LEAN}: {lean_time:.2f} times the default's time a step")):
            bench.goal(f"peak memory small58 {dtype} / {theirs['label']}", "<= 0.6x", f"{memory / theirs['memory']:.2f}x",
                       memory <= 0.6 * theirs["memory"], settings)
    if size in common.SIZES:
        bench.goal(f"start {size} {dtype}", "<= 0.5 s warm, <= 4 s cold", f"{r['warm']:.2f} s, {r['cold']:.2f} s",
                   r["warm"] <= 0.5 and r["cold"] <= 4,
                   "to the end of the first step, less a step; kernel cache warm, cold")


def report(bench, sizes, dtypes, levanter_python, seed):
    """All cases, a section each. Among the sizes "drawn" stands for three of the run's own, in one section."""
    turns = 3 if bench.quick else 7

    def case(size, dtype, levanter_python):
        peers = peers_of(bench, size, dtype, levanter_python, turns)
        goals(bench, size, dtype, Case(bench, size, dtype, peers, turns).run())

    for dtype in dtypes:
        for size in [s for s in sizes if s != "drawn"]:
            with bench.section(f"Training: {size} {dtype}"):
                case(size, dtype, levanter_python)
        if "drawn" in sizes:
            with bench.section(f"Training: drawn sizes {dtype}"):
                bench.say(f"Sizes drawn with seed {seed} (`--seed {seed}` draws them again).")
                bench.say()
                for size in drawn_sizes(seed, 1 if bench.quick else 3):
                    case(size, dtype, None)
