"""Training steps beside PyTorch (eager and compiled), JAX and Levanter, step by step in turns.

Every peer takes a few turns with ours (one that is far behind another a single one); the fastest of them, opened again,
takes the rest. f32 losses of PyTorch and JAX must be ours to 4 digits (all start from the same weights and see the same
batches); bf16 rounds at other places.

"Start" is what a process takes besides steps: from its start to the end of its first step, less the median of its later
steps, for ours and for the peers alike (they compile in their first step). It holds loading the program and the weights,
tracing, compiling, and the kernel's first touch of all memory, and not the first step's arithmetic.
"""
import math, random, statistics, sys

from peers import common
from peers.stepper import Stepper, pairs
from report import HERE, spread

# By case: at least so many times the tokens/s of the best peer.
GOALS = {("nano", "f32"): 1.3, ("small58", "f32"): 1.15, ("base125", "f32"): 1.2,
         ("nano", "bf16"): 1.7, ("small58", "bf16"): 1.7, ("base125", "bf16"): 1.5}
LEAN = "save:qkv,attention"  # the rematerialisation policy of the row about memory
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


class Case:
    def __init__(self, bench, size, dtype, peers, warm=2, screen=2, turns=7):
        self.b, self.size, self.dtype, self.c = bench, size, dtype, common.size(size)
        self.peers, self.warm, self.screen, self.turns = peers, warm, screen, turns
        self.tokens = self.c["seq"] * self.c["batch"]

    def ours(self, env, *more):
        command = [self.b.benches / "train_bench", "--start", self.b.start_file(self.size), "--dtype", self.dtype,
                   "--threads", self.b.threads, "--leaf_examples", self.c["batch"], *more]
        return Stepper(command, env)

    def lean(self, mine):
        """What keeping less gives: (peak MiB, the time of a step beside `mine`)."""
        run = self.ours(self.b.env, "--remat", LEAN)
        run.step()
        a, b = pairs(mine, run, 3)
        return run.finish()["peak_rss_MiB"], statistics.median(y["s"] / x["s"] for x, y in zip(a, b))

    def open(self, peer):
        words, python, env = self.peers[peer]
        command = [python, HERE / "peers" / words[0], "--size", self.size, "--dtype", self.dtype, "--threads",
                   self.b.threads, *words[1:]]
        return Stepper(command, env)

    def take_turns(self, mine, peer, turns, best=math.inf):
        """Opens a peer, warms it up, and gives (our lines, its lines, its first line, its last line). One turn is enough
        for a peer that takes more than 1.5 times the `best` seconds a step of another."""
        theirs = self.open(peer)
        for _ in range(self.warm - 1):
            theirs.step()
        a, b = pairs(mine, theirs, 1)
        if b[0]["s"] < 1.5 * best:
            more = pairs(mine, theirs, turns - 1)
            a, b = a + more[0], b + more[1]
        last = theirs.finish()
        digits = {"f32": 4, "bf16": 2}[self.dtype] if not peer.startswith("Levanter") else 1
        if not close(theirs.losses, mine.losses, digits):
            self.b.failed.append(f"{self.size} {self.dtype}: losses {mine.losses} and {peer}'s {theirs.losses}")
        return a, b, theirs, last

    def run(self):
        cold_env = dict(self.b.env, OSTRO_CACHE_DIR=str(self.b.folder / f"cold_{self.size}_{self.dtype}"))
        starts = []
        for env in (cold_env, *[self.b.env] * 3):
            run = self.ours(env)
            starts.append(start_time(run, [run.step() for _ in range(3)]))
            run.finish()
        cold, starts = starts[0], starts[1:]
        mine = self.ours(self.b.env)
        for _ in range(self.warm - 1):
            mine.step()
        rows, speed, firsts = [], {}, {}
        for peer in self.peers:
            try:
                a, b, theirs, last = self.take_turns(mine, peer, self.screen, min(speed.values(), default=math.inf))
            except RuntimeError as error:
                self.b.failed.append(f"{self.size} {self.dtype}: {peer} did not run: {str(error)[-600:]}")
                continue
            ratio = [y["s"] / x["s"] for x, y in zip(a, b)]
            speed[peer] = statistics.median(y["s"] for y in b)
            firsts[peer] = (start_time(theirs, b), last["peak_rss_MiB"])
            rows.append([f"{theirs.first['peer']}, {len(b)} turns", spread([self.tokens / y["s"] for y in b], 0),
                         spread(ratio, 2), last["peak_rss_MiB"], f"{firsts[peer][0]:.1f}"])
        best = min(speed, key=speed.get)
        a, b, theirs, last = self.take_turns(mine, best, self.turns)
        lean = self.lean(mine) if self.size == "small58" else None
        end = mine.finish()
        ratio = [y["s"] / x["s"] for x, y in zip(a, b)]
        flops = common.flops_per_token(self.c, self.c["seq"]) * self.tokens
        used = [flops / x["s"] / (end["peak_gflops"] * 1e9) for x in a]
        self.b.say(f"### {self.size} {self.dtype}: {statistics.median(ratio):.2f} x {theirs.first['peer']} "
                   f"({self.turns} pairs of steps)")
        self.b.say()
        self.b.say(f"{mine.first['peer']}; {self.c['batch']} x {self.c['seq']} tokens in {mine.first['leaves']} leaf, "
                   f"cheap values made again (the default); {100 * statistics.median(used):.0f} % of the calibrated peak of "
                   f"{end['peak_gflops']:.0f} GFLOP/s; loss of step {len(theirs.losses)}: "
                   f"{mine.losses[len(theirs.losses) - 1]:.4f} and {theirs.losses[-1]:.4f}")
        self.b.say()
        self.b.table(["median (lowest-highest)", "tokens/s", "ours / theirs", "peak memory, MiB", "start, s"], [
            ["**ostro**", spread([self.tokens / x["s"] for x in a], 0), "", end["peak_rss_MiB"],
             f"{spread(starts, 2)}; {cold:.2f} with nothing compiled"],
            [f"**{theirs.first['peer']}**", spread([self.tokens / y["s"] for y in b], 0), f"**{spread(ratio, 2)}**",
             last["peak_rss_MiB"], f"{start_time(theirs, b):.1f}"], *rows])
        return dict(ratio=statistics.median(ratio), best=theirs.first["peer"], memory=end["peak_rss_MiB"],
                    peers=firsts, used=statistics.median(used), warm=statistics.median(starts),
                    cold=cold, lean=lean,
                    speed={p: speed[p] / statistics.median(x["s"] for x in a) for p in speed})


def peers_of(bench, dtype, levanter_python):
    """Name -> (words, Python, environment). Without the shim's kernels PyTorch would be an easy win in f32 on AMD."""
    torch_env = bench.shim_env if dtype == "f32" else bench.peer_env
    peers = {"PyTorch eager": (["torch_llama.py"], sys.executable, torch_env),
             "PyTorch compiled": (["torch_llama.py", "--compile"], sys.executable, torch_env),
             "JAX": (["jax_llama.py"], sys.executable, bench.peer_env)}
    if levanter_python:
        peers["Levanter"] = (["levanter_llama.py"], levanter_python, bench.peer_env)
    return peers


def goals(bench, size, dtype, r, screen):
    """The rows of a case in the table of goals."""
    least = min(g for (_, d), g in GOALS.items() if d == dtype)
    goal = GOALS.get((size, dtype), DRAWN_SHARE * least)
    bench.goal(f"train {size} {dtype} / best peer", f">= {goal:.2f}x", f"{r['ratio']:.2f}x", r["ratio"] >= goal,
               f"{r['best']}; one leaf, the default rematerialisation")
    goal = {"f32": 2.0, "bf16": 4.0}[dtype]
    for peer in ("JAX", "Levanter"):
        if peer in r["speed"]:
            bench.goal(f"train {size} {dtype} / {peer}", f">= {goal:.0f}x", f"{r['speed'][peer]:.2f}x",
                       r["speed"][peer] >= goal, f"at most {screen} turns")
    if size in ("small58", "base125"):
        goal = {"f32": 0.75, "bf16": 0.5}[dtype]
        bench.goal(f"model FLOPs utilisation {size} {dtype}", f">= {goal:.0%}", f"{r['used']:.0%}", r["used"] >= goal,
                   "of the calibrated peak of both cores")
    if size == "small58" and "PyTorch compiled" in r["peers"]:
        theirs = r["peers"]["PyTorch compiled"][1]
        lean_memory, lean_time = r["lean"]
        for memory, settings in ((r["memory"], "the batch as one leaf, the default rematerialisation"),
                                 (lean_memory, f"the batch as one leaf, {LEAN}: {lean_time:.2f} times the default's time a step")):
            bench.goal(f"peak memory small58 {dtype} / torch.compile", "<= 0.6x", f"{memory / theirs:.2f}x",
                       memory <= 0.6 * theirs, settings)
        bench.goal(f"start small58 {dtype}", "<= 0.5 s warm, <= 4 s cold", f"{r['warm']:.2f} s, {r['cold']:.2f} s",
                   r["warm"] <= 0.5 and r["cold"] <= 4,
                   "to the end of the first step, less a step; kernel cache warm, cold")


def report(bench, sizes, dtypes, levanter_python, seed):
    """All cases, a section each. Among the sizes "drawn" stands for three of the run's own, in one section."""
    turns, screen = (3, 1) if bench.quick else (7, 2)

    def case(size, dtype, peers):
        goals(bench, size, dtype, Case(bench, size, dtype, peers, screen=screen, turns=turns).run(), screen)

    for dtype in dtypes:
        for size in [s for s in sizes if s != "drawn"]:
            with bench.section(f"Training: {size} {dtype}"):
                case(size, dtype, peers_of(bench, dtype, levanter_python))
        if "drawn" in sizes:
            with bench.section(f"Training: drawn sizes {dtype}"):
                bench.say(f"Sizes drawn with seed {seed} (`--seed {seed}` draws them again).")
                bench.say()
                for size in drawn_sizes(seed, 1 if bench.quick else 3):
                    case(size, dtype, {p: w for p, w in peers_of(bench, dtype, None).items() if p.startswith("PyTorch")})
