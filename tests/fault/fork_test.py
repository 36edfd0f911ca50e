#!/usr/bin/env python3
"""Forks: a run with an import, three amends and two forks, killed on the way, ends with the head of the undisturbed one;
`ostro log` prints where it comes from, and `ostro verify` accepts it. Forks that are not what they say are found.

    fork_test.py --ostro BINARY [--seed N]
"""

import argparse
import json
import pathlib
import random
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import forger
import seed
from harness import Workspace, check, in_order, killed

EVERY = 5
# Places of a kill, and the highest count that fires for these small runs: of `ostro fork`, and of `ostro train`.
IN_FORK = {"fork": 3}
IN_TRAIN = {"step": 4, "snapshot": 1, "array_write": 20, "manifest": 1, "chain_append": 5}
IN_AMEND = IN_TRAIN | {"amend": 2, "resume": 20}


class ForkTest:
    def __init__(self, workspace, rng):
        self.w, self.rng = workspace, rng
        self.kills = 0

    def close(self):
        self.w.close()

    def config(self, name, steps, **changes):
        return self.w.config(name, steps, EVERY, data__cache_dir="cache", **changes)

    def source(self):
        """A published model: the export of a run, which says of which run it is."""
        self.w.train(self.config("source", 5))
        self.w.good("export", "--checkpoint", "runs/source", "--to", "hf", "--out", "model")

    def done(self, places, *words, env=None):
        """Runs a command until it is done, with kills on the way where `places` has some; what it says."""
        for _ in range(2 if places else 0):
            name = self.rng.choice(sorted(places))
            point = f"{name}:{self.rng.randint(1, places[name])}"
            status, out, err = self.w.run(*words, env={"OSTRO_FAILPOINT": point} | (env or {}))
            check(killed(status) or status == 0, f"{words} killed at {point}: exit status {status}\n{out}{err}")
            if status == 0:  # it was done before the place was reached
                return out + err
            print(f"    {' '.join(words[:2])} killed at {point}")
            self.kills += 1
        return self.w.good(*words, env=env)

    def lineage(self, prefix, kills):
        """The whole history as runs PREFIX-a, -b and -c: c is a fork of b, which is a fork of a, which began with an
        import. Each is amended."""
        fork, train, amend = (IN_FORK, IN_TRAIN, IN_AMEND) if kills else ({}, {}, {})
        a, b, c = (f"{prefix}-{x}" for x in "abc")
        begin = {"trainer__initialize_from": "model"}
        self.done(train, "train", "--config", self.config(a, 10, **begin))
        self.done(amend, "train", "--amend", "--config", self.config(a, 15, optimizer__learning_rate=0.001, **begin))
        self.done(fork, "fork", f"runs/{a}", "--step", "10", "--out", f"runs/{b}", "--optimizer.learning_rate", "0.002",
                  "--trainer.num_train_steps", "20")
        self.done(train, "train", "--config", f"runs/{b}/config.yaml")
        self.done(amend, "train", "--amend", "--config", f"runs/{b}/config.yaml", "--optimizer.beta2", "0.99",
                  "--trainer.num_train_steps", "25")
        self.done(fork, "fork", f"runs/{b}", "--step", "25", "--out", f"runs/{c}", "--trainer.num_train_steps", "30",
                  "--trainer.train_batch_size", "12")
        self.done(train, "train", "--config", f"runs/{c}/config.yaml", env={"OSTRO_SIM_WORKERS": "2"} if kills else None)
        self.done(amend, "train", "--amend", "--config", f"runs/{c}/config.yaml", "--optimizer.learning_rate", "0.0005",
                  "--trainer.num_train_steps", "33")

    def killed_on_the_way(self):
        self.lineage("whole", kills=False)
        self.lineage("cut", kills=True)
        check(self.kills >= 4, f"only {self.kills} kills")
        for run in "abc":
            whole, cut = f"whole-{run}", f"cut-{run}"
            check(self.w.chain(whole) == self.w.chain(cut), f"{cut}: another chain than that of the undisturbed run")
            check(self.w.checkpoints(whole) == self.w.checkpoints(cut), f"{cut}: other checkpoints")

    def accepted(self):
        self.w.verdict("equal", "runs/cut-c", says=["steps 26 to 33 replayed"])
        text = self.w.verdict("equal", "runs/cut-c", "--no_replay", "--parent", "runs/cut-b")
        check("began with: a fork of " in text and "after step 25: runs/cut-b/chain.jsonl names its state" in text, text)
        self.w.verdict("equal", "runs/cut-b", "--from_step", "20", says=["steps 21 to 25 replayed", "10 of 15 steps"])
        self.w.verdict("equal", "runs/cut-a", says=["steps 1 to 15 replayed"])
        for run in "bc":
            text = self.w.good("inspect", f"runs/cut-{run}")
            check("fork of " in text and "forged" not in text, text)
        self.w.good("status", "runs/cut-c")
        self.w.good("export", "--checkpoint", "runs/cut-c", "--to", "hf", "--out", "exported")
        self.w.good("inspect", "runs/cut-c", "--html", "page.html")
        self.w.bad("verify", "runs/cut-c", "--from_step", "7", says=["has steps 26 to 33"])
        self.w.bad("verify", "runs/cut-a", "--parent", "runs/cut-b", says=["--parent", "no fork"])
        self.w.good("fork", "runs/cut-b", "--step", "25", "--out", "runs/cut-c", "--trainer.num_train_steps", "30",
                    "--trainer.train_batch_size", "12")  # it is there already

    def history(self):
        text = self.w.good("log", "runs/cut-c")
        heads = {run: self.w.good("hash", f"runs/cut-{run}").strip() for run in "abc"}
        at = [text.find(words) for words in
              ("begins with the published state" if self.made() else "begins with an imported model", "1 to 10", "forked", "fork of ", "changed: optimizer.learning_rate",
               "11 to 20", "amended: optimizer.beta2 from 0.95 to 0.99", "21 to 25",
               f"runs/cut-c  {heads['c']}", "trainer.train_batch_size", "26 to 30", "amended: optimizer.learning_rate from 0.002 to 0.0005",
               "31 to 33", "  end")]
        check(at == sorted(at) and at[0] >= 0, f"not in this order ({at}):\n{text}")
        log = json.loads(self.w.good("log", "runs/cut-c", "--json"))
        check(log["head"] == heads["c"] and log["steps"] == log["length"] == 33, log)
        parent, first = log["parent"], log["parent"]["parent"]
        check([parent["steps"], first["steps"]] == [25, 10] and first["parent"] is None, log)
        check(log["beginning"]["fork"] == {"head": parent["head"], "step": 25}, log)
        check(log["beginning"]["difference"]["trainer.train_batch_size"] == {"from": 6, "to": [[0, 6], [25, 12]]}, log)
        check([p["difference"] is None for p in parent["phases"]] == [True, False], log)
        origin = first["beginning"]["origin"]
        check(origin["format"] == "hf" and "model.safetensors" in origin["files"], origin)
        check(first["beginning"]["maker"] == self.made(), first["beginning"])
        # What a run is the parent of lies beside it.
        forks = json.loads(self.w.good("log", "runs/cut-a", "--json"))["forks"]
        check([f["path"] for f in forks] == ["runs/cut-b", "runs/whole-b"], forks)
        check("fork: runs/cut-c" in self.w.good("log", "runs/cut-b"), "a fork is not listed")
        # The parent's chain may be there whole; the fork goes on where it says.
        runs = self.w.root / "runs"
        shutil.copytree(runs / "cut-b", self.w.root / "long")
        shutil.copy(runs / "cut-a/chain.jsonl", self.w.root / "long/parent/chain.jsonl")
        text = self.w.good("log", "long")
        check(f"  {10:>15}  forked: long goes on here\n" in text and "11 to 15" not in text, text)
        check(json.loads(self.w.good("log", "long", "--json"))["parent"]["steps"] == 10, text)
        # A run that names the entry of a step, which is no state, is no fork; and a name of a file is no line.
        steps = [json.loads(line)["h"] for line in self.w.chain("cut-a").splitlines()]
        shutil.copytree(runs / "cut-b", runs / "no")
        forger.rewrite_chain(runs / "no/chain.jsonl", lambda e: e | {"fork": {"head": steps[7], "step": 10}} if e["kind"] == "genesis" else e)
        check("runs/no" not in self.w.good("log", "runs/cut-a"), "a run that contradicts the chain is called a fork")
        shutil.rmtree(runs / "no")
        shutil.copytree(runs / "cut-a", runs / "named")
        name = "x\x1b[2K\nruns/named  0\u009b8m\u202e"
        forger.rewrite_chain(runs / "named/chain.jsonl", lambda e: e | {"origin": e["origin"] | {"files": {name: "0" * 64}}} if e["kind"] == "genesis" else e)
        text = self.w.good("log", "runs/named")
        check(not set("\x1b\u009b\u202e") & set(text) and "\nruns/named  0" not in text and "from x" in text, repr(text))
        shutil.rmtree(runs / "named")
        self.w.bad("log", "model", says=["no run directory"])

    def made(self):
        """The maker that a run beginning with `model` has: what the export's provenance says."""
        file = self.w.root / "model" / "provenance.json"
        if not file.exists():
            return None
        source = json.loads(file.read_text())["sources"][0]
        return {"head": source["head"], "state": source["state"]}

    def published(self):
        """A run that begins with a bundle's record names the maker, and its history crosses into the bundle."""
        self.w.good("publish", "runs/cut-b", "--out", "bundle")
        self.w.train(self.config("next", 5, trainer__initialize_from="bundle/record"))
        verdict = self.w.verdict("equal", "runs/next", says=["steps 1 to 5 replayed"])
        log = json.loads(self.w.good("log", "runs/next", "--json"))
        entries = [json.loads(line) for line in self.w.chain("cut-b").splitlines()]
        head = next(e["h"] for e in entries if e["kind"] == "step" and e["step"] == 25)
        state = next(e["name"] for e in entries if e["kind"] == "checkpoint" and e["step"] == 25)
        check(log["beginning"]["maker"] == {"head": head, "state": state}, log["beginning"])
        maker = log["maker"]
        check(maker["steps"] == 25 and maker["parent"]["steps"] == 10 and maker["head"] == entries[-1]["h"], maker)
        text = self.w.good("log", "runs/next")
        check(f"its genesis says: begins with the published state {state} of {head}\n" in text and "runs/next/maker/parent" in text, text)
        check(f"began with: the published state {state} of the run {head}: its manifest" in verdict and "not shown" not in verdict, verdict)
        check("fork of" in self.w.good("log", "bundle"), "a bundle has no history")
        self.w.good("fork", "runs/next", "--step", "5", "--out", "runs/after", "--trainer.num_train_steps", "6")
        check("runs/after/parent/maker/parent" in self.w.good("log", "runs/after"), "the history ends too early")
        # A run that is in no bundle was not published.
        self.w.train(self.config("own", 5, trainer__initialize_from="runs/cut-b"))
        check(json.loads(self.w.good("log", "runs/own", "--json"))["beginning"]["maker"] is None, "a maker of its own")
        self.strange_makers(head, state)
        chain = self.w.root / "runs/next/maker/chain.jsonl"
        forger.rewrite_chain(chain, lambda e: e | {"name": "0" * 64} if e["kind"] == "checkpoint" and e["step"] == 25 else e)
        self.w.verdict("differs", "runs/next", "--no_replay", says=["published state", state, "0" * 64])

    def strange_makers(self, head, state):
        """Runs that say of a published model that they began with it, and did not, or do not show it."""
        runs = self.w.root / "runs"

        def planted(run, says, edit=None, word="differs", **genesis):
            """`genesis`: other fields of the run's genesis."""
            shutil.copytree(runs / run, runs / "lie")
            changes = genesis | ((edit and edit(runs / "lie")) or {})
            forger.rewrite_chain(runs / "lie/chain.jsonl", lambda e: e | changes if e["kind"] == "genesis" else e)
            reseal(runs / "lie")
            text = self.w.verdict(word, "runs/lie", "--no_replay", says=says)
            if genesis:
                self.w.bad("log", "runs/lie", says=says)
            shutil.rmtree(runs / "lie")
            return text

        def other_weights(run):
            forger.change_value(run / "initial/step-00000000", "model/norm/weight")
            return {"initial": forger.seal(run / "initial/step-00000000")}

        maker = {"head": head, "state": state}
        origin = json.loads(self.w.chain("cut-a").splitlines()[0])["origin"]
        planted("source", ["a maker and no initial state"], maker=maker)
        planted("cut-a", ["contradicts itself", head, origin["from"]["head"]], maker=maker)
        planted("cut-a", ["contradicts itself", "no state of Ostro"], maker=maker, origin={k: v for k, v in origin.items() if k != "from"})
        planted("cut-b", ["a fork and a maker"], maker=maker)
        planted("next", ["did not begin with the published state", "model/norm/weight"], other_weights)
        text = planted("next", [], lambda run: shutil.rmtree(run / "maker/checkpoints"), "equal")
        check("began with: the parameters in initial/; its genesis says that they are of the published state" in text, text)
        check("not shown: that the run began with the published state" in text, text)
        text = self.w.verdict("equal", "runs/cut-a", "--no_replay")
        check("its genesis says" in text and "maker/chain.jsonl is not there" in text, text)

    def refused(self):
        fork = ["fork", "runs/cut-a", "--out", "runs/none"]
        self.w.bad(*fork, "--step", "12", says=["of steps 10 and 15", "after 2 steps", "[{every: 12}]"])
        self.w.bad(*fork, "--step", "20", says=["ends at step 15", "15"])
        self.w.bad(*fork, "--step", "10", "--model.hidden_dim", "32", says=["model.hidden_dim", "no fork can change"])
        self.w.bad(*fork, "--step", "10", "--trainer.initialize_from", "model", says=["begins with the state of runs/cut-a"])
        self.w.bad(*fork, "--step", "15", says=["trainer.num_train_steps", "16 or more"])
        self.w.bad("fork", "runs/cut-a", "--step", "10", "--out", "runs/cut-b",
                   "--trainer.num_train_steps", "11", says=["holds another run"])
        self.w.bad("fork", "model", "--step", "5", "--out", "runs/none", says=["no run directory"])
        self.w.bad("train", "--config", "runs/cut-b/config.yaml", "--trainer.initialize_from", "model",
                   says=["is a fork", "leave it out"])
        check(not (self.w.root / "runs/none").exists(), "a refused fork left a directory")
        # One whose making was cut off is no run that could begin from scratch.
        half = ["fork", "runs/cut-a", "--step", "10", "--out", "runs/half", "--trainer.num_train_steps", "11"]
        status, out, err = self.w.run(*half, env={"OSTRO_FAILPOINT": "fork:3"})
        check(killed(status), f"fork:3 did not fire: exit status {status}\n{out}{err}")
        self.w.bad("train", "--config", "runs/half/config.yaml", says=["runs/half", "cut off", "ostro fork"])
        self.w.good(*half)
        self.w.train("runs/half/config.yaml")

    def other_data(self):
        """A fork may take other texts and longer sequences; it begins with the moments of its parent all the same."""
        folder = self.w.root / "other"
        folder.mkdir()
        for file in sorted((self.w.root / "corpus").iterdir())[:4]:
            shutil.copy(file, folder)
        self.w.good("fork", "runs/cut-a", "--step", "10", "--out", "runs/else", "--data.train_urls", "[other/*.txt]",
                    "--data.cache_dir", "cache-else", "--model.seq_len", "24", "--trainer.num_train_steps", "13")
        self.w.train("runs/else/config.yaml")
        self.w.verdict("equal", "runs/else", says=["steps 11 to 13 replayed"])
        check("changed: model.seq_len from 16 to 24" in self.w.good("log", "runs/else"), "the change is not told")

    def forged(self):
        """Forks that do not say what they are, each found without a replay."""
        runs = self.w.root / "runs"

        def planted(name, edit, says, word="differs", fork="cut-b"):
            shutil.copytree(runs / fork, runs / name)
            edit(runs / name)
            self.w.verdict(word, f"runs/{name}", "--no_replay", says=says)
            shutil.rmtree(runs / name)

        def genesis(change):
            return lambda run: forger.rewrite_chain(
                run / "chain.jsonl", lambda e: e | change(e) if e["kind"] == "genesis" else e)

        planted("scratch", genesis(lambda e: {"fork": None}), ["the first step is 11", "\"fork\" in its genesis"])
        planted("renumbered", renumber, ["initial/step-00000000", "has been trained before"])
        planted("foreign", genesis(lambda e: {"fork": e["fork"] | {"head": "0" * 64}}), ["parent/chain.jsonl", "0" * 64])
        planted("moments", zero_moments, ["the fork began with the state", "after step 10"])
        planted("activation", genesis(lambda e: {"config": other_activation(e["config"])}), ["activation_function"])
        planted("alone", lambda run: shutil.rmtree(run / "parent"), ["parent/chain.jsonl is missing", "--parent"], "incomplete")
        planted("stateless", lambda run: shutil.rmtree(run / "initial"), ["initial/step-00000010"], "incomplete")
        planted("changed", lambda run: forger.change_value(run / "initial/step-00000010", "model/norm/weight"), ["initial/step-00000010"])
        # The parent's chain was written anew together with the fork's: only the parent itself shows it.
        planted("both", both_rewritten, [], "equal")
        shutil.copytree(runs / "cut-b", runs / "both")
        both_rewritten(runs / "both")
        self.w.verdict("differs", "runs/both", "--no_replay", "--parent", "runs/cut-a", says=["runs/cut-a/chain.jsonl has no entry"])


def other_activation(config):
    return config | {"model": config["model"] | {"activation_function": "gelu"}}


def reseal(run):
    """The manifests name the heads of the chain as it is now."""
    heads = {e["step"]: e["h"] for e in map(json.loads, (run / "chain.jsonl").read_text().splitlines())
             if e["kind"] == "step"}
    for checkpoint in (run / "checkpoints").iterdir():
        forger.seal(checkpoint, chain_head=heads[forger.read_manifest(checkpoint)["step"]])


def renumber(run):
    """As if the run were one of its own: no fork, steps from 1."""
    def edit(entry):
        if entry["kind"] == "genesis":
            return entry | {"fork": None}
        return entry | {"step": entry["step"] - 10}

    forger.rewrite_chain(run / "chain.jsonl", edit)
    (run / "initial/step-00000010").rename(run / "initial/step-00000000")
    forger.seal(run / "initial/step-00000000", step=0, chain_head="")
    shutil.rmtree(run / "parent")
    for checkpoint in sorted((run / "checkpoints").iterdir()):
        step = int(checkpoint.name[5:]) - 10
        forger.seal(checkpoint, step=step)
        checkpoint.rename(checkpoint.parent / f"step-{step:08}")
    reseal(run)


def zero_moments(run):
    """The moments are reset at the fork, and every hash of the run fits that."""
    initial = run / "initial/step-00000010"
    for chunk in (initial / "optimizer").rglob("c.*"):
        chunk.write_bytes(bytes(chunk.stat().st_size))
    name = forger.seal(initial)
    forger.rewrite_chain(run / "chain.jsonl", lambda e: e | {"initial": name} if e["kind"] == "genesis" else e)
    reseal(run)


def both_rewritten(run):
    """Another loss in the parent's chain, and a fork that names its new head."""
    parent = run / "parent/chain.jsonl"
    forger.rewrite_chain(parent, lambda e: e | {"loss": "0x1p+1"} if e.get("step") == 7 and e["kind"] == "step" else e)
    entries = [json.loads(line) for line in parent.read_text().splitlines()]
    forger.rewrite_chain(run / "chain.jsonl", lambda e: e | {"fork": {"head": entries[-1]["h"], "step": 10}} if e["kind"] == "genesis" else e)
    heads = {e["step"]: e["h"] for e in entries if e["kind"] == "step"}
    forger.seal(run / "initial/step-00000010", chain_head=heads[10])
    reseal(run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--seed", type=int, default=seed.seed())
    args = parser.parse_args()
    print(f"seed {args.seed}")
    sys.exit(in_order(ForkTest(Workspace(args.ostro), random.Random(args.seed)),
                      ["source", "killed_on_the_way", "accepted", "history", "published", "refused", "other_data", "forged"]))
