"""Our own steps against our own steps: what threads bring, what leaves, the chain and rematerialisation cost, what products in
bf16 and on integers bring, what a deeper model costs to compile, and how near the update comes to a stream through its memory."""
import json, statistics, subprocess, time

from peers import common
from peers.stepper import Stepper, pairs
from report import has_vnni, spread


def sized(name, **changes):
    return ",".join(f"{k}={v}" for k, v in dict(common.size(name), **changes).items())


class Prices:
    def __init__(self, bench):
        self.b, self.turns = bench, 3 if bench.quick else 7

    def open(self, size, *more, threads=None, dtype="f32", env=None):
        start = self.b.start_file(size)
        return Stepper([self.b.benches / "train_bench", "--start", start, "--dtype", dtype, "--threads",
                        threads or self.b.threads, *more], env or self.b.env)

    def settings(self, pairs, text=""):
        """Of a row: steps of one leaf and the default rematerialisation, where the case does not name others."""
        return f"{pairs} pairs; {text or 'one leaf, the default rematerialisation'}"

    def ratio(self, a, b, turns=None):
        """Steps of a and b in turns: (seconds of b / seconds of a within pairs, a's and b's lines, their ends)."""
        a.step(), b.step()
        x, y = pairs(a, b, turns or self.turns)
        return [q["s"] / p["s"] for p, q in zip(x, y)], x, y, a.finish(), b.finish()

    def threads(self):
        if self.b.threads < 2:
            return
        for size, dtype in (("small58", "f32"), ("small58", "bf16")):
            r, *_ = self.ratio(self.open(size, dtype=dtype), self.open(size, threads=1, dtype=dtype))
            self.b.goal(f"{self.b.threads} threads / one, {size} {dtype}", ">= 1.85x", spread(r, 2) + "x",
                        statistics.median(r) >= 1.85, self.settings(len(r)))

    def leaves(self):
        for name, changes in (("nano", dict(batch=64)), ("small58", dict(batch=32))):
            if self.b.quick and name != "nano":
                continue
            size, c = sized(name, **changes), common.size(sized(name, **changes))
            one, many = self.open(size, "--leaf_examples", c["batch"]), self.open(size, "--leaf_examples", c["batch"] // 8)
            r, x, y, p, q = self.ratio(one, many)
            self.b.goal(f"{name} f32, {c['batch']} x {c['seq']} tokens: 8 leaves / one leaf", "<= 1.03x time",
                        spread(r, 3) + "x", statistics.median(r) <= 1.03,
                        self.settings(len(r), "the default rematerialisation; peak memory "
                                      f"{q['peak_rss_MiB']} and {p['peak_rss_MiB']} MiB"))

    def chain(self):
        for size, dtype in (("nano", "f32"), ("small58", "f32"), ("small58", "bf16")):
            r, *_ = self.ratio(self.open(size, "--chain", "off", dtype=dtype), self.open(size, dtype=dtype))
            self.b.goal(f"{size} {dtype}: chain on / off", "<= 1.015x time", spread(r, 3) + "x",
                        statistics.median(r) <= 1.015, self.settings(len(r)))

    def rematerialised(self):
        """A 12-layer step with a leaf of 4 times the tokens of which less is kept, beside one that keeps everything and
        beside the default, which already makes again what is cheap."""
        small, large = sized("base125", V=4096, seq=512, batch=1), sized("base125", V=4096, seq=512, batch=4)
        for plain, least in (("keep", "save:qkv,attention"), ("none", "all")):
            r, x, y, p, q = self.ratio(self.open(small, "--remat", plain), self.open(large, "--remat", least))
            r = [t / 4 for t in r]
            memory = q["peak_rss_MiB"] / p["peak_rss_MiB"]
            case = f"12 layers, {least} with 4 x the tokens in a leaf / {plain}"
            self.b.goal(f"{case}: time per token", "<= 1.15x", spread(r, 2) + "x", statistics.median(r) <= 1.15,
                        self.settings(len(r), "one leaf each"))
            self.b.goal(f"{case}: peak memory", "<= 1x", f"{memory:.2f}x", memory <= 1,
                        f"{q['peak_rss_MiB']} and {p['peak_rss_MiB']} MiB")

    def depth(self):
        """The first step with nothing compiled, of 2 and of 32 layers, less what a step costs."""
        times = {2: [], 32: []}
        for i in range(self.turns):
            for layers in (2, 32) if i % 2 == 0 else (32, 2):
                env = dict(self.b.env, OSTRO_CACHE_DIR=str(self.b.folder / f"depth_{i}_{layers}"))
                run = self.open(sized("micro", L=layers), env=env)
                first = run.first["start_to_first_step_s"]
                step = run.step()["s"]
                run.finish()
                times[layers].append(first - step)
        r = [b / a for a, b in zip(times[2], times[32])]
        self.b.goal("cold first step, 32 layers / 2 layers", "<= 1.2x", spread(r, 2) + "x", statistics.median(r) <= 1.2,
                    f"{statistics.median(times[32]):.2f} s and {statistics.median(times[2]):.2f} s, without the step itself")

    def optimizers(self):
        """Steps of Muon beside steps of AdamW, 4 x 512 tokens and 16 x 512: Newton-Schulz costs the same whatever the
        number of tokens."""
        for dtype, optimizer, batch in (("f32", "muon_bf16", 4), ("f32", "muon", 4), ("bf16", "muon_bf16", 4), ("f32", "muon", 16)):
            size = sized("small58", batch=batch)
            r, x, y, *_ = self.ratio(self.open(size, dtype=dtype), self.open(size, "--optimizer", optimizer, dtype=dtype))
            products = "bf16" if optimizer == "muon_bf16" else "f32"
            self.b.goal(f"Muon, Newton-Schulz in {products} / AdamW: small58 {dtype}, {batch * 512} tokens", "<= 1.25x time",
                        spread(r, 2) + "x", statistics.median(r) <= 1.25, self.settings(
                            len(r), f"{statistics.median(b['s'] for b in y):.2f} and {statistics.median(a['s'] for a in x):.2f} s; "
                            "one leaf, the default rematerialisation"))

    def precisions(self):
        """A step with products in f32, in bf16 and on integers (docs/spec/numerics.md, N20), int8a with attention on integers, too
        (N21), all in turns. Ratios are those of CPU time, which other work on the machine changes little; those of the clock stand
        beside them."""
        dtypes, rows = ("f32", "bf16", "int8", "int8a"), []
        for size, threads in [("small58", n) for n in sorted({1, self.b.threads})] + [("base125", self.b.threads)]:
            leaf = ("--leaf_examples", common.size(size)["batch"])
            running = {dtype: self.open(size, *leaf, threads=threads, dtype=dtype) for dtype in dtypes}
            seen = {dtype: [] for dtype in dtypes}
            for stepper in running.values():
                stepper.step()
            for turn in range(self.turns):
                for i in range(len(dtypes)):
                    dtype = dtypes[(turn + i) % len(dtypes)]
                    time.sleep(0.02)  # the side before may keep its threads spinning for a moment
                    seen[dtype].append(running[dtype].step())
            memory = {dtype: stepper.finish()["peak_rss_MiB"] for dtype, stepper in running.items()}

            def times(key, dtype, base, seen=seen):
                return [b[key] / x[key] for b, x in zip(seen[base], seen[dtype])]

            for dtype in dtypes:
                rows.append([size, threads, dtype, *(spread([x[key] for x in seen[dtype]], 2) for key in ("cpu_s", "s")),
                             *(spread(times("cpu_s", dtype, base), 2) + "; " + spread(times("s", dtype, base), 2)
                               if base != dtype else "" for base in ("f32", "bf16")), memory[dtype],
                             f"{statistics.median(x['peak_gflops'] for x in seen[dtype]):.0f}"])
            r = times("cpu_s", "int8a", "f32")
            goal = 2.5 if has_vnni() else 1.4
            self.b.goal(f"{size}, products and attention int8 / f32, {threads} threads", f">= {goal}x", spread(r, 2) + "x",
                        statistics.median(r) >= goal, self.settings(len(r), "CPU time; one leaf, the default rematerialisation"))
            self.b.goal(f"{size}, peak memory int8 / bf16, {threads} threads", "<= 1.05x", f"{memory['int8'] / memory['bf16']:.2f}x",
                        memory["int8"] <= 1.05 * memory["bf16"], "one leaf, the default rematerialisation")
        self.b.table(["model", "threads", "products", "CPU s a step", "clock s a step", "times f32's speed: CPU; clock",
                      "times bf16's: CPU; clock", "peak memory, MiB", "peak of f32 or bf16, GFLOP/s"], rows)

    def update(self):
        done = subprocess.run([str(self.b.benches / "update_bench"), "--start", str(self.b.start_file("small58")),
                               "--threads", str(self.b.threads)], capture_output=True, text=True, check=True, env=self.b.env)
        r = json.loads(done.stdout.strip().splitlines()[-1])
        self.b.goal("AdamW + clip + fingerprint / in-place stream of the same arrays", ">= 95 %",
                    f"{r['share_counting_norm']:.0%}", r["share_counting_norm"] >= 0.95,
                    f"with the norm's pass over the gradients counted as 4 bytes; {r['share_of_stream']:.0%} without; "
                    f"{r['update_ms']:.0f} and {r['stream_ms']:.0f} ms for {r['parameters_M']:.0f} M parameters")


SECTIONS = {"threads": Prices.threads, "leaves": Prices.leaves, "chain": Prices.chain,
            "rematerialisation": Prices.rematerialised, "precisions": Prices.precisions, "depth": Prices.depth, "update": Prices.update,
            "optimizers": Prices.optimizers}


def report(bench, sections=tuple(SECTIONS)):
    p = Prices(bench)
    for title in sections:
        with bench.section(f"Prices: {title}"):
            SECTIONS[title](p)
            bench.table(["case", "goal", "seen", "held", "settings"], bench.goals)
