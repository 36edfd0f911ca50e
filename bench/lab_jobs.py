"""How long a lab takes whose eight trainings are done two at a time with one thread each (`ostro lab run -j 2`), beside one after another
with two threads. The two take turns, each in a new copy of a lab whose texts are tokenized already; only `ostro lab run` is timed. Both
must come to the same lab hash.
"""
import json, random, shutil, statistics, subprocess, time

from report import spread

WORDS = "the sun and moon of a star in winds that rain for if return to be or not so it goes on by day night".split()
TRAININGS = 8
# name: sequences of how many tokens, width, layers, batch, steps
SIZES = {"small": (64, 64, 2, 8, 80), "middle": (128, 128, 4, 8, 30)}
LEAST = 1.1


class Labs:
    def __init__(self, bench):
        self.b, self.ostro = bench, bench.benches.parent / "ostro" / "cli" / "ostro"
        self.folder = bench.folder / "lab_jobs"

    def prepare(self, size):
        """The lab with all that trainings need, in the folder `size`."""
        top = self.folder / size
        (top / "texts").mkdir(parents=True)
        (top / "held").mkdir()
        rng = random.Random(7)
        for name, count in (("texts/a.txt", 60_000), ("held/a.txt", 2_000)):
            (top / name).write_text(" ".join(rng.choice(WORDS) + (rng.choice("abcdefgh") if rng.random() < 0.3 else "") for _ in range(count)))
        seq, width, layers, batch, steps = SIZES[size]
        (top / "config.yaml").write_text(json.dumps({
            "model": {"seq_len": seq, "hidden_dim": width, "intermediate_dim": 3 * width, "num_layers": layers, "num_heads": 4, "num_kv_heads": 4},
            "trainer": {"mp": "f32", "train_batch_size": batch, "num_train_steps": steps, "steps_per_eval": steps},
            "numerics": {"leaf_examples": 4}}))
        before = {"texts": {"source": {"files": ["texts"], "licence": "CC0-1.0"}}, "held": {"source": {"files": ["held"], "licence": "CC0-1.0"}},
                  "words": {"tokenizer": {"from": "$texts", "vocab_size": 300}},
                  "rows": {"tokens": {"from": "$texts", "held_out": "$held", "tokenizer": "$words"}}}
        base = {"sweep": {"seed": list(range(1, TRAININGS + 1))}, "train": {"data": "$rows", "config": "config.yaml", "set": {"trainer.seed": "$seed"}}}
        for steps in (before, before | {"base": base}):  # the first is done here, the second is what is timed
            (top / "plan.yaml").write_text(json.dumps({"lab": "eight", "question": "How long?", "steps": steps}))
            if "base" not in steps:
                self.run(top)

    def run(self, top, *words):
        """Seconds, and the last line."""
        begin = time.monotonic()
        done = subprocess.run([str(self.ostro), "lab", "run", "plan.yaml", *words], cwd=top, env=dict(self.b.env, OSTRO_THREADS="2"),
                              capture_output=True, text=True, check=True)
        return time.monotonic() - begin, done.stdout.splitlines()[-1]

    def timed(self, size, *words):
        top = self.folder / "turn"
        shutil.copytree(self.folder / size, top)
        try:
            return self.run(top, *words)
        finally:
            shutil.rmtree(top)


def report(bench):
    labs = Labs(bench)
    with bench.section("Labs: trainings side by side"):
        for size, (seq, width, layers, batch, steps) in SIZES.items():
            labs.prepare(size)
            labs.timed(size, "-j", "2")  # engines compile what they run, once
            labs.timed(size)
            seconds, hashes = {"two": [], "one": []}, set()
            for turn in range(3 if bench.quick else 7):
                order = [("two", ("-j", "2")), ("one", ())]
                for name, words in order if turn % 2 == 0 else order[::-1]:
                    took, lab_hash = labs.timed(size, *words)
                    seconds[name].append(took)
                    hashes.add(lab_hash)
            if len(hashes) != 1 or not next(iter(hashes)).startswith("lab hash: "):
                bench.failed.append(f"{TRAININGS} trainings, {size}: {hashes}")
            ratios = [one / two for one, two in zip(seconds["one"], seconds["two"])]
            bench.goal(f"{TRAININGS} trainings one after another with 2 threads / -j 2 with one thread each, {size}", f">= {LEAST}x", spread(ratios, 2) + "x",
                       statistics.median(ratios) >= LEAST,
                       f"{len(ratios)} pairs; {spread(seconds['one'], 1)} and {spread(seconds['two'], 1)} s for all, of {steps} steps of {batch} x {seq} tokens, "
                       f"{layers} layers of width {width}, f32; the same lab hash")
        bench.table(["case", "goal", "seen", "held", "settings"], bench.goals)
