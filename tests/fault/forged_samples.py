"""SampledRuns: cases of forged_test.py: drawn steps, single leaves and proofs of rows (docs/reference/verdicts.md, "A sample, a leaf")."""

import json
import shutil

import forger
from forged_runs import EVERY, STEPS, ForgedRuns
from harness import check


class SampledRuns(ForgedRuns):
    def sampled(self):
        """Drawn steps of an honest run are equal; a step that was rewritten is found if and only if it is replayed."""
        draw = ["--sample", "5", "--challenge", "lottery 7", "--json"]
        price = json.loads(self.w.good("verify", "runs/good", *draw, "--dry_run"))
        check(len(price["drawn"]) == 5 and "replayed" not in price and price["estimated_cpu_seconds"] > 0, f"price: {price}")
        report = json.loads(self.verify("runs/good", *draw, status=0, says=[]))["sample"]
        same = ("drawn", "stretches", "to_be_replayed", "chances")
        check(all(report[k] == price[k] for k in same), f"another plan than the price had:\n{price}\n{report}")
        check(report["replayed"] == sum(to - begin for begin, to in report["stretches"]), f"replayed: {report}")
        check(all(begin % EVERY == 0 and to in report["drawn"] for begin, to in report["stretches"]), f"stretches: {report}")
        check([c["false_steps"] for c in report["chances"]] == [1, 1, 2] and round(report["chances"][0]["chance"], 9) == 0.25, f"{report}")
        out = self.verify("runs/good", *draw[:-1], status=0, says=[["equal: 5 drawn steps"], ["not shown", "25.00 %"]])
        check("of CPU time was estimated" in out, f"no cost:\n{out}")
        covered = {step for begin, to in report["stretches"] for step in range(begin + 1, to + 1)}
        for place in (min(covered), min(set(range(1, STEPS + 1)) - covered)):
            config, _ = self.copy(f"sample{place}")
            chain = self.w.root / f"runs/sample{place}/chain.jsonl"
            forger.rewrite_chain(chain, lambda entry: entry | {"tokens": entry["tokens"] + 1}
                                 if entry["kind"] == "step" and entry["step"] == place else entry)
            drawn = json.loads(self.w.run("verify", f"runs/sample{place}", "--sample", str(STEPS), "--challenge", "all", "--json")[1])
            check(drawn["verdict"] == "differs", f"all steps drawn, step {place} forged: {drawn['verdict']}")
        for words, says in ((["--sample", "5"], "--challenge"), (["--challenge", "x"], "--sample"), (["--rows", "f"], "--leaf"),
                            (["--sample", "21", "--challenge", "x"], "1 to 20"), (["--dry_run"], "--sample"),
                            (["--sample", "2", "--challenge", "x", "--from_step", "3"], "--from_step"),
                            (["--leaf", "3"], "STEP:LEAF"), (["--leaf", "21:0"], "1 to 20"), (["--leaf", "3:2"], "2 leaves")):
            self.w.bad("verify", "runs/good", *words, says=[says])

    def one_leaf(self):
        """A leaf is replayed from the store or from a proof of its rows, and a changed record of it is found."""
        self.verify("runs/good", "--leaf", "6:1", status=3, says=[["incomplete", "without chain.leaf_gradients", "replays the step"]])
        config = self.w.config("leaves", 12, EVERY, chain__leaf_gradients=True, data__cache_dir="cache-good")
        self.w.train(config)
        kept = self.w.root / "runs/leaves/leaves.jsonl"
        check([json.loads(line)["step"] for line in kept.read_text().splitlines()] == list(range(1, 13)), "leaves.jsonl")
        for place in ("1:0", "6:1", "9:0"):  # from the seed, a checkpoint, and with steps before it
            self.verify("runs/leaves", "--leaf", place, status=0, says=[["equal: leaf", "gradient"], ["not shown: the other 1 leaf"]])
        price = self.w.good("verify", "runs/leaves", "--leaf", "6:1", "--dry_run")
        check("GFLOP" in price and "MiB" in price and "equal" not in price, f"price:\n{price}")
        # With a proof, neither store nor leaves.jsonl is needed.
        self.w.good("data", "prove", "--run", "runs/leaves", "--leaf", "6:1", "--out", "leaf.json")
        self.w.good("data", "prove", "--check", "leaf.json", "--run", "runs/leaves")
        line = kept.read_text()
        kept.unlink()
        away = self.w.root / "cache-good"
        away.rename(self.w.root / "cache-away")
        self.verify("runs/leaves", "--leaf", "6:1", "--rows", "leaf.json", status=0, says=[["equal: leaf 1 of 2"], ["that needs the token store"]])
        self.verify("runs/leaves", "--leaf", "6:0", "--rows", "leaf.json", status=3, says=[["incomplete"]])
        proof = json.loads((self.w.root / "leaf.json").read_text())
        proof["rows"][0]["ids"][0] ^= 1
        (self.w.root / "bad.json").write_text(json.dumps(proof))
        self.verify("runs/leaves", "--leaf", "6:1", "--rows", "bad.json", status=4, says=[["cannot check", "root"]])
        (self.w.root / "cache-away").rename(away)
        # One fingerprint changed, and the tree above it: the chain's root does not fit; with the chain rewritten, the replay.
        lines = [json.loads(text) for text in line.splitlines()]
        lines[5]["gradients"][1] = "0" * 64
        kept.write_text("".join(json.dumps(x, sort_keys=True, separators=(",", ":")) + "\n" for x in lines))
        self.verify("runs/leaves", "--leaf", "6:1", says=[["differs", "the leaves of step 6 have the root"]])
        kept.write_text(line)
        # A run that was cut off keeps the leaves of the steps that it keeps, and goes on to the same file.
        shutil.rmtree(self.w.root / "runs/leaves/checkpoints/step-00000012")
        self.w.train(config)
        check(kept.read_text() == line, "leaves.jsonl is another one after the run went on")

    def row_proofs(self):
        """Rows and documents are proven to a reader who has the root alone; documents that changed are named."""
        w = self.w
        genesis = json.loads(w.chain("good").splitlines()[0])
        root = genesis["data_roots"][""]
        for words in (["--row", "train:2"], ["--row", "validation:0"], ["--document", "03.txt:1"]):
            w.good("data", "prove", "--config", self.config, *words, "--out", "row.json")
            w.good("data", "prove", "--check", "row.json", "--root", root)
            w.good("data", "prove", "--check", "row.json", "--run", "runs/good")
        check("03.txt, document 1" in w.good("data", "prove", "--run", "runs/good", "--document", "03.txt:1", "--out", "row.json"), "document")
        status, out, _ = w.run("data", "prove", "--check", "row.json", "--root", "0" * 64)
        check(status == 1 and out.startswith("differs: the rows lead to the root " + root), f"another root: {status} {out}")
        w.good("data", "prove", "--run", "runs/good", "--step", "7", "--out", "step.json")
        check("6 of 6 sequences of step 7 are in the data" in w.good("data", "prove", "--check", "step.json", "--run", "runs/good"), "step")
        moved = json.loads((w.root / "step.json").read_text())
        moved["batch"]["step"] = 8
        (w.root / "moved.json").write_text(json.dumps(moved))
        status, out, _ = w.run("data", "prove", "--check", "moved.json", "--run", "runs/good")
        check(status == 1 and "step 8 has" in out, f"rows of another step: {status} {out}")
        out = w.good("data", "prove", "--check", "moved.json", "--root", root)  # a root says nothing of steps
        check(" rows are in the data" in out.splitlines()[0] and "step" not in out.splitlines()[0] and "not shown" in out, out)
        w.good("data", "prove", "--run", "runs/good", "--row", "validation:0", "--out", "row.json")
        row = json.loads((w.root / "row.json").read_text())["rows"][0]
        for name, change in (("spare", lambda p: p["rows"].append(row)), ("none", lambda p: p["batch"].update(sequences=[])),
                             ("empty", lambda p: p.pop("batch") and p["rows"].clear()),
                             ("long", lambda p: p["batch"].update(seq_len=1 << 20)),
                             ("text", lambda p: [r.update(component='x\nequal: all \x1b[2J \x9b2J') for r in p["rows"]])):
            forged = json.loads((w.root / "step.json").read_text())
            change(forged)
            (w.root / "forged.json").write_text(json.dumps(forged))
            status, out, _ = w.run("data", "prove", "--check", "forged.json", "--run", "runs/good")
            check(status == 1 and out.startswith("differs: ") and out.count("\n") == 1 and out[:-1].isprintable(), f"{name}: {status} {out}")
        status, out, _ = w.run("data", "prove", "--check", "step.json", "--run", "runs/absent")
        check(status == 4 and out.startswith("cannot check: "), f"no run: {status} {out}")
        for words in (["--row", "train:999"], ["--row", "x:1"], ["--document", "none:1"], ["--document", "03.txt:2"]):
            w.bad("data", "prove", "--config", self.config, *words, "--out", "row.json", says=[words[1].split(":")[0]])
        # A document that was removed, one that was changed, one that was added.
        (w.root / "lines").mkdir()
        texts = [json.dumps({"text": f"document number {i} of the file"}) for i in range(12)]
        for name, lines in (("a", texts), ("b", texts[:4] + texts[5:]), ("c", texts[:4] + ['{"text": "another one"}'] + texts[5:] + texts[:1])):
            (w.root / f"lines/{name}").mkdir()
            (w.root / f"lines/{name}/x.jsonl").write_text("\n".join(lines) + "\n")
            w.config(f"lines-{name}", data__train_urls=[f"lines/{name}/*.jsonl"], data__validation_fraction=0, trainer__train_batch_size=3)
            w.good("data", "build", "--config", f"lines-{name}.yaml")
        check("are equal" in w.good("data", "diff", "lines-a.yaml", "lines-a.yaml"), "no difference")
        status, out, _ = w.run("data", "diff", "lines-a.yaml", "lines-b.yaml")
        check(status == 1, f"data diff: {status}")
        check("1 documents only in A, 0 only in B, 0 changed" in out and "only in A: lines/a/x.jsonl, document 5" in out, out)
        status, out, _ = w.run("data", "diff", "lines-a.yaml", "lines-c.yaml")
        check(status == 1, f"data diff: {status}")
        check("0 documents only in A, 1 only in B, 1 changed" in out and "changed: lines/a/x.jsonl, document 5" in out, out)
        check("only in B: lines/c/x.jsonl, document 13" in out, out)
