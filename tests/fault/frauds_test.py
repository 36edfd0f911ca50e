#!/usr/bin/env python3
"""Twenty frauds, each by a forger who computes again every hash that can be computed, and the cheapest check that finds it.

The tables RECORD and BUNDLE name them: what is forged, the check, its verdict and words that its finding must have. The forger has no key of the
maker, so a bundle that was changed is not signed any more, or its signature does not fit. Honest records and bundles, made and checked with
other numbers of workers and threads and on other instruction sets, are *equal*. tools/verify_chain.py, which has no code of Ostro, is asked
about each of them, too: it must say `differs`, or the word that CLEAN_ROOM has for what it cannot see.

    scripts/venv_python.sh tests/fault/frauds_test.py --ostro BINARY [--log FILE] [--bundles] [FRAUD...]

Frauds of records and models are among the drawn ones (4; OSTRO_TEST_SIZE=full takes all). With --bundles those of bundles are, too, for a
program that has `ostro publish`.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import forger
from harness import Failure, Workspace, check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed

STEPS, EVERY = 20, 5
SAMPLE = 4
CODES = {"equal": 0, "differs": 1, "incomplete": 3, "cannot check": 4}


def step_folder(run, step):
    return run / "checkpoints" / f"step-{step:08}"


class Frauds:
    """Every method forges something and gives (words of the check, verdict, words that its output must have)."""

    def __init__(self, ostro):
        self.w = Workspace(ostro)
        self.root = self.w.root
        self.made = set()
        self.config = self.w.config("good", STEPS, EVERY)
        self.w.train(self.config)
        self.run_hash = self.w.good("hash", "runs/good").strip()

    # What several frauds need, made once.

    def once(self, name, make):
        if name not in self.made:
            make()
            self.made.add(name)
        return self.root / name

    def keys(self):
        def make():
            for words in (["genpkey", "-algorithm", "ed25519", "-out", "key.pem"], ["pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem"]):
                subprocess.run(["openssl", *words], cwd=self.root, check=True, capture_output=True)
        return self.once("key.pem", make)

    def bundle(self):
        self.keys()
        words = ["--sign", "key.pem", "--checkpoints", "3", "--license", "apache-2.0", "--cache", "cache-good"]
        return self.once("bundle", lambda: self.w.good("publish", "runs/good", "--out", "bundle", *words))

    def other_run(self):
        """A run like the good one, from another seed."""
        return self.once("runs/other", lambda: self.w.train(self.w.config("other", STEPS, EVERY, data__cache_dir="cache-good", trainer__seed=1)))

    def model(self, run="good", *words):
        """An exported model."""
        name = "-".join(["model", run, *(w.strip("-") for w in words)])
        return self.once(name, lambda: self.w.good("export", "--checkpoint", f"runs/{run}", "--to", "hf", "--out", name, *words))

    def copy(self, source, name):
        target = self.root / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        return target

    def run_copy(self, name, source="good"):
        return self.copy(self.root / "runs" / source, f"runs/{name}")

    def bundle_copy(self, name):
        return self.copy(self.bundle(), name)

    # The weights.

    def one_weight(self):
        """One weight changed in the published file."""
        bundle = self.bundle_copy("weight")
        forger.change_tensor(bundle / "model.safetensors", "model.layers.1.mlp.down_proj.weight", 5)
        forger.reseal(bundle)
        return ["verify", "--bundle", "weight"], "differs", ["model.layers.1.mlp.down_proj.weight"]

    def other_rounding(self):
        """Weights cut off to bf16 instead of rounded to nearest."""
        model = self.copy(self.model("good", "--dtype", "bf16"), "cut-off")
        exact = forger.tensors(self.model() / "model.safetensors")
        path = model / "model.safetensors"
        for name, (_, _, data) in exact.items():
            forger.replace_tensor(path, name, b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4)))
        forger.reseal_provenance(model)
        return ["verify", "runs/good", "--model", "cut-off"], "differs", ["model.embed_tokens.weight", "cutting off bits"]

    def merged_twice(self):
        """An adapter added twice to the weights that it was made for."""
        config = self.w.config("tuned", 5, 5, data__cache_dir="cache-good", adapter__type="lora", adapter__rank=2,
                               trainer__mp="f32", trainer__initialize_from="runs/good")
        self.once("runs/tuned", lambda: self.w.train(config))
        model = self.copy(self.model("tuned", "--merge_lora"), "merged-twice")
        base, once = (forger.tensors(folder / "model.safetensors") for folder in (self.model(), model))
        for name, (_, _, data) in once.items():
            if data != base[name][2]:
                forger.replace_tensor(model / "model.safetensors", name, forger.twice(base[name][2], data))
        forger.reseal_provenance(model)
        return ["verify", "runs/tuned", "--model", "merged-twice"], "differs", ["proj.weight", "added 2 times"]

    def quantised_other(self):
        """Integers (int8 with scales) of another model beside the record of this one."""
        model = {"type": "grok", "seq_len": 16, "hidden_dim": 16, "intermediate_dim": 24, "num_layers": 2, "num_heads": 2, "num_kv_heads": 1}
        for name, number in (("grok", 0), ("grok-other", 1)):
            config = self.w.config(name, 2, 2, data__cache_dir="cache-good", trainer__seed=number, model=model)
            self.once(f"runs/{name}", lambda: self.w.train(config))
            self.once(f"int8-{name}", lambda: self.w.good("export", "--checkpoint", f"runs/{name}", "--to", "grok", "--out", f"int8-{name}"))
        forged = self.copy(self.root / "int8-grok-other", "quantised")
        shutil.copy(self.root / "int8-grok/provenance.json", forged)
        forger.reseal_provenance(forged)
        return ["verify", "runs/grok", "--model", "quantised"], "differs", ["language_model/", "of another model"]

    def copied_provenance(self):
        """provenance.json of another export."""
        model = self.copy(self.model("good", "--dtype", "bf16"), "copied")
        shutil.copy(self.model() / "provenance.json", model)
        return ["verify", "copied"], "differs", ["model.safetensors", "provenance is of another one"]

    # Which record a model belongs to.

    def foreign_chain(self):
        """A chain of another run under an honest model."""
        self.other_run()
        bundle = self.bundle_copy("foreign-chain")
        shutil.rmtree(bundle / "record")
        shutil.copytree(self.root / "runs/other", bundle / "record")
        forger.reseal(bundle)
        return ["verify", "--bundle", "foreign-chain"], "differs", ["provenance.json", "of another model"]

    def foreign_model(self):
        """An honest chain under a model of another run."""
        self.other_run()
        model = self.model("other")
        return ["verify", "runs/good", "--model", model.name], "differs", ["provenance.json", "of another run"]

    def merged_bundles(self):
        """A bundle put together from two: the ledger is that of another corpus."""
        config = self.w.config("elsewhere", STEPS, EVERY, data__validation_fraction=0.1)
        self.once("runs/elsewhere", lambda: self.w.train(config))
        words = ["--checkpoints", "3", "--cache", "cache-elsewhere"]
        other = self.once("bundle-elsewhere", lambda: self.w.good("publish", "runs/elsewhere", "--out", "bundle-elsewhere", *words))
        bundle = self.bundle_copy("merged")
        shutil.rmtree(bundle / "ledger")
        shutil.copytree(other / "ledger", bundle / "ledger")
        forger.reseal(bundle)
        return ["verify", "--bundle", "merged"], "differs", ["the ledger is of other data than the run's"]

    # Checkpoints, tokenizer, data.

    def swapped_checkpoint(self):
        """An honest state in the place of a later one, its manifest made to fit."""
        bundle = self.bundle_copy("swapped")
        record = bundle / "record"
        steps = sorted(int(p.name[5:]) for p in (record / "checkpoints").iterdir())
        last, before = step_folder(record, steps[-1]), step_folder(record, steps[-2])
        head, measured = (forger.read_manifest(last)[key] for key in ("chain_head", "measured"))
        shutil.rmtree(last)
        shutil.copytree(before, last)
        forger.seal(last, step=steps[-1], chain_head=head, measured=measured)
        forger.reseal(bundle)
        return ["verify", "--bundle", "swapped"], "differs", [f"{last.name} is forged"]

    def changed_merge(self):
        """A tokenizer with one merge changed."""
        bundle = self.bundle_copy("merge")
        for folder in (bundle, bundle / "record"):
            value = json.loads((folder / "tokenizer.json").read_text())
            merges = value["model"]["merges"]
            merges[3], merges[4] = merges[4], merges[3]
            (folder / "tokenizer.json").write_text(json.dumps(value))
        forger.reseal(bundle)
        return ["verify", "--bundle", "merge"], "differs", ["tokenizer.json is another tokenizer than the chain's"]

    def removed_document(self):
        """A document removed from the ledger: its rows and the line with its name. The store's list of files has its hash."""
        bundle = self.bundle_copy("removed")
        gone = forger.remove_document(bundle / "ledger", 2, content_too=False)
        forger.reseal(bundle)
        return ["verify", "--bundle", "removed"], "differs", [f"train rows 1 to 1 of source file 3 (SHA-256 {gone['sha256']})"]

    def forgotten_document(self):
        """A document removed from the ledger, and from the list of the store's files."""
        bundle = self.bundle_copy("forgotten")
        forger.remove_document(bundle / "ledger", 2, content_too=True)
        forger.reseal(bundle)
        return ["verify", "--bundle", "forgotten"], "differs", ["the ledger is of other data than the run's"]

    # The chain. Everything of it was hashed again; what remains is what follows from data and seed.

    def edited_loss(self):
        """A loss edited in the chain of a bundle, and all of it hashed again."""
        bundle = self.bundle_copy("loss")
        record = bundle / "record"
        forger.rewrite_chain(record / "chain.jsonl", lambda e: e | {"loss": "0x1p+1"} if e["kind"] == "step" and e["step"] == 13 else e)
        forger.refit(record)
        forger.refit_provenance(bundle)
        forger.reseal(bundle)
        return ["verify", "loss/record", "--from_step", "12", "--to_step", "13", "--cache", "cache-good"], "differs", [
            "step 13", "only this loss was written otherwise; `--from_step 13` replays what follows"]

    def skipped_step(self):
        """A step left out."""
        run = self.run_copy("skipped")
        forger.rewrite_chain(run / "chain.jsonl", lambda e: None if e["kind"] == "step" and e["step"] == 3 else e)
        forger.refit(run)
        return ["verify", "runs/skipped", "--no_replay"], "differs", ["chain.jsonl", "step 4 follows step 2"]

    def swapped_steps(self):
        """Two steps swapped and renumbered."""
        run = self.run_copy("two")
        chain = run / "chain.jsonl"
        entries = {e["step"]: e for e in map(json.loads, chain.read_text().splitlines()) if e["kind"] == "step"}

        def edit(e):
            if e["kind"] != "step" or e["step"] not in (7, 8):
                return e
            return {k: v for k, v in entries[15 - e["step"]].items() if k != "h"} | {"step": e["step"]}

        forger.rewrite_chain(chain, edit)
        forger.refit(run)
        return ["verify", "runs/two", "--from_step", "5", "--to_step", "8"], "differs", ["step 7", "batch", "the two steps were swapped"]

    def other_rate(self):
        """A learning rate that was changed on the way, without the amendment that says so."""
        run = self.root / "runs/rate"
        shutil.rmtree(run, ignore_errors=True)
        first = self.w.config("rate", 10, EVERY, data__cache_dir="cache-good", optimizer__lr_schedule="constant")
        self.w.train(first)
        second = self.w.config("rate", STEPS, EVERY, data__cache_dir="cache-good", optimizer__lr_schedule="constant", optimizer__learning_rate=0.004)
        self.w.train(second, "--amend")
        honest = self.w.config("rate", STEPS, EVERY, data__cache_dir="cache-good", optimizer__lr_schedule="constant")
        self.claim_config(run, honest)
        return ["verify", "runs/rate", "--from_step", "10", "--to_step", "11"], "differs", ["step 11", "state"]

    def backdated_config(self):
        """A configuration that claims another weight decay than the programs have."""
        run = self.run_copy("backdated")
        forger.claim(run, "optimizer", "weight_decay", "0.0")
        return ["verify", "runs/backdated", "--no_replay"], "differs", ["other programs than the chain names"]

    def cut_chain(self):
        """A chain that was cut behind a bad end and hashed again, under the signature of the whole one."""
        bundle = self.bundle_copy("cut")
        record = bundle / "record"
        signature = (bundle / "bundle.json.sig").read_bytes()
        forger.rewrite_chain(record / "chain.jsonl", lambda e: forger.shortened(e, 15))
        shutil.rmtree(step_folder(record, STEPS))
        forger.refit(record)
        forger.reseal(bundle)
        (bundle / "bundle.json.sig").write_bytes(signature)
        shutil.copy(self.bundle() / "bundle.json.pub", bundle)
        return ["verify", "--bundle", "cut", "--key", "pub.pem"], "differs", ["bundle.json.sig is not the signature of this bundle.json"]

    def reset_moments(self):
        """Moments set to zero at a restart, with the honest checkpoint put back afterwards."""
        run = self.run_copy("reset")
        honest = step_folder(run, 10)
        kept, name = self.copy(honest, "kept-checkpoint"), forger.read_manifest(honest)["name"]
        forger.zero_moments(honest)
        forged = forger.seal(honest)
        swap = {name: forged, forged: name}

        def renamed(e):
            return e | {"name": swap.get(e["name"], e["name"])} if e["kind"] == "checkpoint" else e

        forger.rewrite_chain(run / "chain.jsonl", lambda e: renamed(e) if e["kind"] == "genesis" or e["step"] <= 10 else None)
        for step in (15, 20):
            shutil.rmtree(step_folder(run, step))
        self.w.train(self.w.config("reset", STEPS, EVERY, data__cache_dir="cache-good"))
        shutil.rmtree(honest)
        shutil.copytree(kept, honest)
        forger.rewrite_chain(run / "chain.jsonl", renamed)
        forger.refit(run)
        return ["verify", "runs/reset", "--from_step", "10", "--to_step", "11"], "differs", ["step 11", "state", "reset after step 10"]

    def other_data(self):
        """A batch of other texts than those that the genesis names."""
        texts, run = self.root / "texts", self.root / "runs/data"
        shutil.rmtree(texts, ignore_errors=True)
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self.root / "corpus", texts)
        for path in sorted(texts.iterdir())[4:]:
            path.write_text(" ".join(reversed(path.read_text().split())) + "\n")
        self.w.train(self.w.config("data", STEPS, EVERY, data__train_urls=["texts/*.txt"]))
        honest, own = ([json.loads(line) for line in self.w.chain(name).splitlines()] for name in ("good", "data"))
        step = next(a["step"] for a, b in zip(honest, own) if a["kind"] == "step" and a["batch"] != b["batch"])
        genesis = {key: honest[0][key] for key in ("data", "data_roots")}
        forger.rewrite_chain(run / "chain.jsonl", lambda e: e | genesis if e["kind"] == "genesis" else e)
        forger.refit(run)
        return (["verify", "runs/data", "--cache", "cache-good", "--from_step", str(step - 1), "--to_step", str(step)], "differs",
                [f"step {step}", "batch"])

    def hidden_fork(self):
        """A run that went on from another one's state, presented as one from scratch."""
        run = self.run_copy("scratch")
        config = self.w.config("branch", 10, EVERY, data__cache_dir="cache-good", trainer__initialize_from="runs/good")
        self.once("runs/branch", lambda: self.w.train(config))
        shutil.rmtree(run)
        shutil.copytree(self.root / "runs/branch", run)
        forger.rewrite_chain(run / "chain.jsonl", lambda e: e | {"initial": None} if e["kind"] == "genesis" else e)
        shutil.rmtree(run / "initial")
        self.claim_config(run, self.w.config("scratch", 10, EVERY, data__cache_dir="cache-good"))
        return ["verify", "runs/scratch", "--to_step", "1"], "differs", ["step 1"]

    def claim_config(self, run, config):
        """The record says that `config` was trained from the beginning to the end: no amends, its genesis, its config.yaml."""
        name = f"claimed-{run.name}"
        settings = json.loads((self.root / config).read_text())
        settings["trainer"]["id"] = name
        (self.root / f"{name}.yaml").write_text(json.dumps(settings))
        shutil.rmtree(self.root / "runs" / name, ignore_errors=True)
        self.w.train(f"{name}.yaml")
        honest = self.root / "runs" / name
        genesis = json.loads((honest / "chain.jsonl").read_text().splitlines()[0])

        def edit(e):
            if e["kind"] == "genesis":
                return {k: v for k, v in genesis.items() if k != "h"}
            return None if e["kind"] == "amend" else e

        forger.rewrite_chain(run / "chain.jsonl", edit)
        text = (honest / "config.yaml").read_text().replace(name, run.name)
        (run / "config.yaml").write_text(text)
        shutil.copy(honest / "program.ir", run)
        last = max((honest / "checkpoints").iterdir())
        forger.refit(run, config=forger.read_manifest(last)["config"])


RECORD = ["other_data", "skipped_step", "swapped_steps", "other_rate", "backdated_config", "reset_moments", "hidden_fork",
          "other_rounding", "foreign_model", "merged_twice", "quantised_other", "copied_provenance"]
BUNDLE = ["one_weight", "swapped_checkpoint", "edited_loss", "removed_document", "forgotten_document", "cut_chain", "changed_merge",
          "foreign_chain", "merged_bundles"]
# What verify_chain.py says of those that only a replay or the programs show, and of weights that it does not know.
CLEAN_ROOM = {name: "equal" for name in ("other_data", "swapped_steps", "other_rate", "backdated_config", "reset_moments", "hidden_fork",
                                         "edited_loss")} | {"merged_twice": "cannot check", "quantised_other": "cannot check"}
TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/verify_chain.py"


def check_clean_room(root, words, expected):
    """verify_chain.py on what `ostro verify` with these words is about."""
    options = {name: words[words.index(name) + 1] for name in ("--model", "--key") if name in words}
    top = next(word for word in words[1:] if not word.startswith("--")).removesuffix("/record")
    if (root / top / "provenance.json").exists() and not (root / top / "record").is_dir():
        options["--model"], top = top, "runs/good"  # a model alone says nothing without a record
    command = [sys.executable, str(TOOL), top, *(word for pair in options.items() for word in pair)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    fits = done.returncode == CODES[expected] and done.stdout.startswith(expected)
    check(fits, f"{' '.join(command[1:])}: exit status {done.returncode}, not {expected}: {done.stdout}{done.stderr}")


def check_fraud(frauds, name):
    """Plants a fraud and runs its check; the line for the table."""
    words, verdict, says = getattr(frauds, name)()
    begin = time.monotonic()
    status, out, err = frauds.w.run(*words)
    seconds, first = time.monotonic() - begin, out.split("\n", 1)[0]
    shown = f"{' '.join(words)}\n{out}{err}"
    check(status == CODES[verdict] and first.startswith(verdict), f"exit status {status}, not {verdict}: {shown}")
    missing = [word for word in says if word not in out]
    check(not missing, f"nothing says {missing}: {shown}")
    clean = CLEAN_ROOM.get(name, "differs")
    check_clean_room(frauds.root, words, clean)
    return (f"{getattr(Frauds, name).__doc__.rstrip('.')} -> ostro {' '.join(words)} ({seconds:.1f} s) -> {first[:300]}"
            f" -> verify_chain.py: {clean}")


def honest(frauds, bundles):
    """Records and bundles of other workers, threads and instruction sets are the same, and are checked by others."""
    w = frauds.w
    settings = [{"OSTRO_SIM_WORKERS": "2"}, {"OSTRO_THREADS": "3"}, {"OSTRO_ISA": "generic"}]
    drawn = seed.draw("settings of an honest run", settings, 2)
    for number, (env, checker) in enumerate(zip(drawn, reversed(drawn))):
        name = f"honest-{number}"
        w.train(w.config(name, STEPS, EVERY, data__cache_dir="cache-good"), env=env)
        check(w.good("hash", f"runs/{name}").strip() == frauds.run_hash, f"{env}: another run hash")
        if not bundles:
            w.verdict("equal", f"runs/{name}", env=checker)
            continue
        w.good("publish", f"runs/{name}", "--out", f"bundle-{number}", "--sign", str(frauds.keys()), "--checkpoints", "3", "--cache", "cache-good", env=env)
        for words in (["--bundle", f"bundle-{number}", "--key", "pub.pem"], [f"bundle-{number}/record", "--cache", "cache-good"]):
            w.verdict("equal", *words, env=checker)
        check_clean_room(w.root, ["verify", f"bundle-{number}", "--key", "pub.pem"], "equal")
    words = ["runs/good", "--model", str(frauds.model("good", "--dtype", "bf16"))]
    w.verdict("equal", *words)
    check_clean_room(w.root, ["verify", *words], "equal")
    return "Honest ones, with other workers, threads and instruction sets -> equal"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--log", type=pathlib.Path, help="write the table to this file, too")
    parser.add_argument("--bundles", action="store_true", help="take those of bundles, too")
    parser.add_argument("frauds", nargs="*", metavar="FRAUD")
    args = parser.parse_args()
    check(len({*RECORD, *BUNDLE}) >= 20, "the tables have not twenty frauds")
    names = args.frauds or seed.draw("frauds", [*RECORD, *(BUNDLE if args.bundles else [])], SAMPLE)
    frauds, lines, failed = Frauds(args.ostro), [], []
    version = frauds.w.good("--version").splitlines()[0]
    try:
        for name in [*names, *([] if args.frauds else ["honest"])]:
            try:
                line = honest(frauds, args.bundles) if name == "honest" else check_fraud(frauds, name)
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                failed.append(name)
                line = f"FAILED {name}: {failure}"
            lines.append(line)
            print(line, flush=True)
    finally:
        if os.environ.get("OSTRO_KEEP"):
            print(frauds.root)
        else:
            frauds.w.close()
    if args.log:
        args.log.write_text("\n".join([version, *lines]) + "\n")
    print(f"result: {len(lines) - len(failed)} found, {len(failed)} failed {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
