"""Steps of every family of decoders beside Llama's, of the whole model and of LoRA, and LoRA beside PEFT.

A family has Llama's width, layers, heads and vocabulary. Its MLP is as wide as gives about as many operations for a token:
half as wide again without a gate, divided by the number of a token's experts in a mixture, shared ones included. What difference is left is
counted: a ratio is that of seconds for an operation, operations as the model's definition has them. The steps of a family and
of a Llama take turns; each pair gives a ratio. A mixture's update goes over the parameters of all its experts, which no
operation counts: its whole step has no goal beside Llama's.

PEFT is on transformers' Llama, eager and compiled (peers/torch_lora.py), from the same weights and batches. Adapters are
drawn, and their second factors begin with zeros: f32 losses of the first step must be ours to 4 digits, those of later steps
to 2.
"""
import pathlib, re, statistics, sys

from peers.stepper import Stepper, pairs
from report import HERE, spread
from training import close, ratios

SIZE = "L=4,H=512,heads=8,kv=4,ffn=1376,V=8192,seq=256,batch=4"
QUICK_SIZE = "nano"
RANK = 16
WITHIN = 1.10
LORA_GOAL = 1.3
MIXTURES = {"mixtral", "qwen3_moe", "olmoe", "qwen2_moe", "deepseek_v2", "deepseek_v3", "grok"}


def names():
    """All families but Llama itself and the name for any decoder, of the page that follows from the declarations."""
    page = (pathlib.Path(HERE).parent / "docs/reference/config.md").read_text()
    types = re.search(r"^\| `model\.type` \| ((?:[^|\\]|\\.)*) \|", page, re.M)[1]
    return [name for name in types.split(r" \| ") if name not in ("llama", "decoder")]


class Families:
    def __init__(self, bench):
        self.b, self.turns = bench, 3 if bench.quick else 7
        self.size = QUICK_SIZE if bench.quick else SIZE

    def open(self, family, rank, size=None):
        more = ["--rank", rank] if rank else []
        return Stepper([self.b.benches / "train_bench", "--start", self.b.start_file(size or self.size), "--threads",
                        self.b.threads, "--family", family, *more], self.b.env)

    def beside_llama(self, rank):
        """A table of seconds for an operation, and a goal for each family."""
        what = f"LoRA of rank {RANK}" if rank else "whole model"
        rows = []
        for family in names():
            mine, llama = self.open(family, rank), self.open("llama", rank)
            mine.step(), llama.step()
            x, y = pairs(mine, llama, self.turns)
            work = mine.first["gflop"] / llama.first["gflop"]
            r = [1 / t / work for t in ratios(x, y)]
            peak = mine.finish()["peak_rss_MiB"], llama.finish()["peak_rss_MiB"]
            rows.append([family, f"{work:.2f}", spread([a["s"] for a in x], 3), spread([a["s"] for a in y], 3), spread(r, 2),
                         f"{peak[0]} and {peak[1]}"])
            if rank or family not in MIXTURES:
                self.b.goal(f"{family}, {what} / Llama", f"<= {WITHIN:.2f}x time for an operation", spread(r, 2) + "x",
                            statistics.median(r) <= WITHIN, f"{len(r)} pairs; {self.size}")
        self.b.table(["family", "operations / Llama's", "step, s", "Llama's step, s", "time for an operation / Llama's",
                      "peak memory, MiB"], rows)

    def beside_peft(self):
        """At the families' size, where nearly all time is that of products, and at a smaller one. On AMD beside PyTorch as it
        is installed, and beside one whose MKL is told that the processor is Intel's, which makes its products faster."""
        told = self.b.shim_env != self.b.peer_env
        envs = {"as installed": self.b.peer_env, **({"MKL told Intel": self.b.shim_env} if told else {})}
        rows = []
        for size in dict.fromkeys((self.size, QUICK_SIZE)):
            for kind, env in envs.items():
                seen = {label: self.peft(size, env, words, f"{label}, {kind}", rows)
                        for label, words in (("eager", []), ("compiled", ["--compile"]))}
                best = min(seen, key=lambda label: statistics.median(seen[label]))
                r = seen[best]
                self.b.goal(f"LoRA of rank {RANK} / PEFT {best}, {kind}: {size}", f">= {LORA_GOAL}x", spread(r, 2) + "x",
                            statistics.median(r) >= LORA_GOAL, f"{len(r)} pairs; f32, the faster of two")
        self.b.table(["size", "peer", "our step, s", "its step, s", "its time / ours", "peak memory, MiB"], rows)

    def peft(self, size, env, words, label, rows):
        """Ratios of one kind of PEFT's steps to ours."""
        mine = self.open("llama", RANK, size)
        theirs = Stepper([sys.executable, HERE / "peers/torch_lora.py", "--size", size, "--threads", self.b.threads,
                          "--rank", RANK, *words], env)
        mine.step(), theirs.step()
        x, y = pairs(mine, theirs, self.turns)
        peaks = mine.finish()["peak_rss_MiB"], theirs.finish()["peak_rss_MiB"]
        if not (close(theirs.losses[:1], mine.losses[:1], 4) and close(theirs.losses, mine.losses, 2)):
            self.b.failed.append(f"losses {mine.losses} and PEFT's {theirs.losses}")
        r = ratios(x, y)
        rows.append([size, f"{theirs.first['peer']}: {label}", spread([a["s"] for a in x], 3), spread([a["s"] for a in y], 3),
                     spread(r, 2), f"{peaks[0]} and {peaks[1]}"])
        return r


def report(bench):
    f = Families(bench)
    with bench.section("Families: whole model"):
        f.beside_llama(0)
    with bench.section("Families: LoRA"):
        f.beside_llama(RANK)
    with bench.section("Families: PEFT"):
        f.beside_peft()
