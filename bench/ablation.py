"""What the parts of a step that have a switch give: a step without one of them beside a whole step, in turns.

Parts without a switch are in docs/notes/experiments.md, measured when they were made.
"""
import statistics

from prices import Prices, sized
from report import spread

# What is left out, words of train_bench, environment, turns that it may take at most, size.
WITHOUT = [("fusion: a kernel for every op", ["--fuse", "off"], {}, 7, "nano"),
           ("generated code: built-in loops, one op each", ["--generated", "off"], {}, 7, "nano"),
           ("making cheap values again: everything kept", ["--remat", "keep"], {}, 7, "nano"),
           ("tiles of the head, 32,000 tokens: all logits at once", ["--head_tile", "-1"], {}, 5,
            sized("nano", V=32000, batch=4)),
           ("vector instructions: `OSTRO_ISA=generic`", [], {"OSTRO_ISA": "generic"}, 1, "nano")]


def report(bench):
    prices = Prices(bench)
    with bench.section("Ablation"):
        for dtype in ("f32", "bf16"):
            rows = []
            for what, words, env, most, size in WITHOUT:
                whole, less = prices.open(size, dtype=dtype), prices.open(size, *words, dtype=dtype, env={**bench.env, **env})
                time, x, y, p, q = prices.ratio(whole, less, min(prices.turns, most))
                cpu = statistics.median(b["cpu_s"] / a["cpu_s"] for a, b in zip(x, y))
                if whole.losses != less.losses:
                    bench.failed.append(f"nano {dtype} without {what}: losses {less.losses}, with it {whole.losses}")
                rows.append([what, spread(time, 2), f"{cpu:.2f}", q["peak_rss_MiB"] - p["peak_rss_MiB"]])
            bench.say(f"### A nano {dtype} step of {bench.threads} threads without")
            bench.say()
            bench.table(["", "time, x", "CPU time, x", "peak memory, MiB more"], rows)
