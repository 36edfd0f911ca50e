#!/usr/bin/env python3
"""Tests that checkpoints that differ from what the run's chain says are found.

verify names each, the commands that read one refuse it, and training continues from an honest one, with a warning, to
the same chain. Forged ones have hashes that all fit each other: with --unchecked every command takes them, which shows
that only the chain reveals them.

    forged_test.py --ostro BINARY [CASE...]
"""

import json
import shutil
import signal
import sys

import forger
from harness import check, run_cases, wait_for

STEPS, EVERY = 20, 5
LAST, MIDDLE = "step-00000020", "step-00000010"


class Cases:
    def __init__(self, workspace):
        self.w = w = workspace
        self.config = w.config("good", STEPS, EVERY)
        w.train(self.config)
        self.hash = w.good("hash", "runs/good").strip()
        self.states = w.checkpoints("good")

    # Helpers.

    def copy(self, name):
        """A copy of the good run as run NAME; its configuration and its checkpoints' folder."""
        config = self.w.config(name, STEPS, EVERY, data__cache_dir="cache-good")
        shutil.copytree(self.w.root / "runs" / "good", self.w.root / "runs" / name)
        return config, self.w.root / "runs" / name / "checkpoints"

    def verify(self, run, *words, says, status=1, env=None):
        """verify of a run ends so, and has lines with all the words of each of `says`."""
        got, out, err = self.w.run("verify", run, *words, env=env)
        check(got == status, f"verify {run} {words}: exit status {got}, not {status}\n{out}{err}")
        for line_says in says:
            check(any(all(word in line for word in line_says) for line in out.splitlines()),
                  f"verify {run} {words}: no line with {line_says}:\n{out}{err}")
        return out

    def readers(self, config, checkpoint):
        """Every command that reads one checkpoint."""
        common = ["--checkpoint", checkpoint]
        return [
            ["sample", *common, "--prompt", "the", "--max_new_tokens", "4", "--json"],
            ["eval", *common, "--config", config, "--json"],
            ["export", *common, "--to", "hf", "--out", "exported"],
            ["grad", *common, "--config", config, "--step", "0", "--out", "gradients.safetensors"],
            *([["inspect", checkpoint]] if "step-" in checkpoint else []),
        ]

    def refused(self, config, checkpoint, says, sound=True):
        """Every reader refuses it; when it is `sound` in itself, takes it with --unchecked and warns."""
        for command in self.readers(config, checkpoint):
            self.w.bad(*command, says=[*says, "--unchecked"])
            if not sound:
                continue
            text = self.w.good(*command, "--unchecked")
            check("warning: " in text and "not checked against the chain" in text,
                  f"{command}: no warning that nothing was checked:\n{text}")
        check(not (self.w.root / "exported").exists() or sound, "a refused checkpoint was exported")
        shutil.rmtree(self.w.root / "exported", ignore_errors=True)

    def taken(self, config, checkpoint, warns=()):
        """Every reader takes it without a warning, but that with the words of `warns` when there are any."""
        for command in self.readers(config, checkpoint):
            text = self.w.good(*command)
            warnings = [line for line in text.splitlines() if line.startswith("warning: ")]
            check(len(warnings) == (1 if warns else 0) and all(word in warnings[0] for word in warns),
                  f"{command}: warnings {warnings}, not {warns}")

    def goes_on(self, name, config, step, *says):
        """Training falls back to `step`, says why, and ends with the good run's chain and checkpoints."""
        text = self.w.train(config)
        warnings = [line for line in text.splitlines() if line.startswith("warning: ")]
        check(f"resuming runs/{name} after step {step}" in text, f"not from step {step}:\n{text}")
        check(any(all(word in line for word in says) for line in warnings), f"no warning with {says}:\n{text}")
        check(self.w.chain(name) == self.w.chain("good"), f"{name}: the chain differs from the good run's")
        check(self.w.checkpoints(name) == self.states, f"{name}: other checkpoints than the good run's")
        self.verify(f"runs/{name}", "--no_replay", status=0, says=[["4 fine"]])

    # Nothing wrong.

    def honest(self):
        self.verify("runs/good", status=0, says=[["checkpoints: 4 fine (steps 5, 10, 15, 20)"], ["equal: steps 1 to 20"]])
        self.w.verdict("equal", "runs/good", says=["steps 1 to 20 replayed, 24 chain entries compared"])
        out = self.verify("runs/good", "--no_replay", status=0, says=[["4 fine"], ["no step was replayed"]])
        check("steps 1 to" not in out, f"--no_replay replayed:\n{out}")
        report = json.loads(self.verify("runs/good", "--json", status=0, says=[]))
        found = [(c["step"], c["verdict"]) for c in report["checkpoints"]]
        check(report["verdict"] == "equal" and report["equal"] and found == [(s, "fine") for s in (5, 10, 15, 20)], f"--json: {report}")
        self.taken(self.config, "runs/good")
        self.taken(self.config, f"runs/good/checkpoints/{MIDDLE}")

    def run_hash(self):
        self.verify("runs/good", "--no_replay", "--run_hash", self.hash, status=0, says=[["run hash", "as given"]])
        self.verify("runs/good", "--no_replay", "--run_hash", "0" * 64, says=[["run hash", self.hash, "0" * 64]])
        earlier = json.loads(self.w.chain("good").splitlines()[7])["h"]
        self.verify("runs/good", "--no_replay", "--run_hash", earlier, says=[["the run's hash after step 6", self.hash]])
        self.w.bad("verify", "runs/good", "--run_hash", "xyz", says=["--run_hash", "xyz", "64"])

    # Forged ones.

    def forged_last(self):
        config, checkpoints = self.copy("last")
        name, honest = forger.forge(checkpoints / LAST), self.states[LAST][1]
        self.verify("runs/last", says=[["3 fine (steps 5, 10, 15)"], [LAST, "forged", name, honest], ["equal"]])
        report = json.loads(self.verify("runs/last", "--json", says=[]))
        check([c["verdict"] for c in report["checkpoints"]] == ["fine"] * 3 + ["forged"], f"--json: {report}")
        self.refused(config, "runs/last", [LAST, "forged", name, honest])
        self.refused(config, f"runs/last/checkpoints/{LAST}", [LAST, "forged", name, honest])
        self.taken(config, "runs/last/checkpoints/step-00000015")
        status, listed, _ = self.w.run("inspect", "runs/last")
        check(status == 1, f"inspect: exit status {status}\n{listed}")
        named = [line for line in listed.splitlines() if "forged" in line]
        check(len(named) == 1 and f"{LAST}  forged" in named[0], f"inspect names it not:\n{listed}")
        self.goes_on("last", config, 15, LAST, "forged")

    def forged_middle(self):
        config, checkpoints = self.copy("middle")
        forger.forge(checkpoints / MIDDLE)
        out = self.verify("runs/middle", "--from_step", "12",
                          says=[["3 fine (steps 5, 15, 20)"], [MIDDLE, "forged"], ["equal: steps 6 to 20"]])
        check("steps 11 to" not in out, f"the replay began at the forged checkpoint:\n{out}")
        self.refused(config, f"runs/middle/checkpoints/{MIDDLE}", [MIDDLE, "forged"])
        self.taken(config, "runs/middle")

    def forged_moment(self):
        """Readers of parameters refuse it, too: its name is another."""
        config, checkpoints = self.copy("moment")
        forger.forge(checkpoints / LAST, "optimizer/second_moment/layers/mlp/down/weight")
        self.verify("runs/moment", "--no_replay", says=[[LAST, "forged"]])
        self.refused(config, "runs/moment", [LAST, "forged"])
        self.goes_on("moment", config, 15, LAST, "forged")

    def forged_config(self):
        """The tensors are those of the chain, but the model that sample and export would make of them is not."""
        config, checkpoints = self.copy("config")
        text = forger.read_manifest(checkpoints / LAST)["config"]
        forger.seal(checkpoints / LAST, config=text.replace("activation_function: silu", "activation_function: gelu"))
        check("gelu" in forger.read_manifest(checkpoints / LAST)["config"], f"nothing to forge in:\n{text}")
        self.verify("runs/config", "--no_replay", says=[[LAST, "forged", "activation_function"]])
        self.refused(config, "runs/config", [LAST, "forged", "activation_function"])
        self.goes_on("config", config, 15, LAST, "forged")

    def forged_head(self):
        config, checkpoints = self.copy("head")
        forger.seal(checkpoints / LAST, chain_head="0" * 64)
        self.verify("runs/head", "--no_replay", says=[[LAST, "forged", "0" * 64]])
        self.refused(config, "runs/head", [LAST, "forged"])

    def another_step(self):
        """An honest state in the place of a later one, with its own step or with the later one's."""
        config, checkpoints = self.copy("moved")
        for changes in ({}, {"step": 20}):
            shutil.rmtree(checkpoints / LAST)
            shutil.copytree(checkpoints / MIDDLE, checkpoints / LAST)
            forger.seal(checkpoints / LAST, **changes)
            self.verify("runs/moved", "--no_replay", says=[[LAST, "forged"]])
            self.refused(config, "runs/moved", [LAST, "forged"])
        self.goes_on("moved", config, 15, LAST, "forged")

    def another_run(self):
        """A checkpoint of a run with another seed, and one of a step that the run has not done."""
        self.w.train(self.w.config("seeded", STEPS, EVERY, data__cache_dir="cache-good", trainer__seed=1))
        config, checkpoints = self.copy("mixed")
        shutil.rmtree(checkpoints / LAST)
        shutil.copytree(self.w.root / "runs" / "seeded" / "checkpoints" / LAST, checkpoints / LAST)
        self.verify("runs/mixed", "--no_replay", says=[[LAST, "forged"]])
        self.refused(config, "runs/mixed", [LAST, "forged"])
        (checkpoints / LAST).rename(checkpoints / "step-00000025")
        forger.seal(checkpoints / "step-00000025", step=25)
        self.verify("runs/mixed", "--no_replay", says=[["step-00000025", "forged", "ends at step 20"], [LAST, "missing"]])
        self.refused(config, "runs/mixed", ["step-00000025", "forged"])

    def forged_tokenizer(self):
        """A sample or an export with other words would lie as well."""
        config, checkpoints = self.copy("words")
        file = checkpoints.parent / "tokenizer.json"
        value = json.loads(file.read_text())
        vocabulary = value["model"]["vocab"]
        first, second = [word for word, at in vocabulary.items() if at in (60, 61)]
        vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
        file.write_text(json.dumps(value))
        for words in ((), ("--no_replay",)):
            self.w.verdict("differs", "runs/words", *words, says=["tokenizer.json", "another tokenizer"])
        for command in self.readers(config, "runs/words")[::2][:2]:  # sample and export
            self.w.bad(*command, says=["runs/words/tokenizer.json", "another tokenizer", "--unchecked"])
            self.w.good(*command, "--unchecked")
        shutil.rmtree(self.w.root / "exported")

    # Damaged and missing ones.

    def damaged(self):
        config, checkpoints = self.copy("damaged")
        chunk = checkpoints / LAST / "model/layers/mlp/down/weight/c.0.0.0"
        manifest = checkpoints / LAST / "manifest.json"
        for file, harm in ((chunk, flipped), (chunk, truncated), (manifest, flipped), (manifest, truncated)):
            whole = file.read_bytes()
            file.write_bytes(harm(whole))
            self.verify("runs/damaged", "--no_replay", says=[["3 fine (steps 5, 10, 15)"], [LAST, "damaged"]])
            self.refused_damage(config, "runs/damaged", file)
            file.write_bytes(whole)
        self.taken(config, "runs/damaged")
        chunk.write_bytes(flipped(chunk.read_bytes()))
        # With --unchecked readers pass over a damaged one, as a run without a chain would have it.
        text = self.w.good(*self.readers(config, "runs/damaged")[0], "--unchecked")
        check("falling back to" in text and "step-00000015" in text, f"no fall back:\n{text}")
        self.goes_on("damaged", config, 15, LAST, "damaged")
        middle = checkpoints / MIDDLE / "model/layers/mlp/down/weight/c.0.0.0"
        middle.write_bytes(truncated(middle.read_bytes()))
        self.verify("runs/damaged", says=[["3 fine (steps 5, 15, 20)"], [MIDDLE, "damaged"], ["equal"]])
        self.taken(config, "runs/damaged")

    def refused_damage(self, config, run, file):
        for command in self.readers(config, run):
            self.w.bad(*command, says=[LAST])
        check(not (self.w.root / "exported").exists(), "a damaged checkpoint was exported")

    def missing(self):
        config, checkpoints = self.copy("missing")
        shutil.rmtree(checkpoints / MIDDLE)
        self.verify("runs/missing", status=3, says=[["3 fine (steps 5, 15, 20)"], ["incomplete: ", MIDDLE, "missing"], ["equal"]])
        self.taken(config, "runs/missing")
        shutil.rmtree(checkpoints / LAST)
        out = self.w.verdict("incomplete", "runs/missing", "--no_replay", says=[MIDDLE, "missing", "and 1 more like it"])
        check("2 fine (steps 5, 15)" in out, out)
        # The newest there is not the newest of the run: it must be asked for by its name.
        for command in self.readers(config, "runs/missing"):
            self.w.bad(*command, says=[LAST, "missing", "step-00000015", "--unchecked"])
        self.taken(config, "runs/missing/checkpoints/step-00000015")
        shutil.copytree(self.w.root / "runs" / "good" / "checkpoints" / MIDDLE, checkpoints / MIDDLE)
        self.goes_on("missing", config, 15, LAST, "missing")
        shutil.rmtree(checkpoints)
        for command in self.readers(config, "runs/missing"):
            self.w.bad(*command, says=["runs/missing"])

    def none_honest(self):
        config, checkpoints = self.copy("none")
        for folder in checkpoints.iterdir():
            forger.forge(folder)
        self.verify("runs/none", says=[["0 fine"], ["step-00000005", "forged", "and 3 more like it"], ["equal"]])
        self.w.bad("train", "--config", config, says=["none of the 4 checkpoints can be used", LAST, "forged", "copy"])
        check(self.w.chain("none") == self.w.chain("good"), "a run that cannot go on was changed")

    # Chains.

    def no_chain(self):
        """A checkpoint that was copied out of its run is read, and that nobody checked it is said."""
        _, checkpoints = self.copy("left")
        forger.forge(checkpoints / MIDDLE)
        away = self.w.root / "away"
        shutil.copytree(checkpoints / MIDDLE, away / MIDDLE)
        for command in self.readers(self.config, f"away/{MIDDLE}"):
            words = ["--tokenizer", "tokenizer.json"] if command[0] in ("sample", "export") else []
            text = self.w.good(*command, *words)
            check(text.count("no chain to check") == 1, f"{command}: not said that there is no chain:\n{text}")
            quiet = self.w.good(*command, *words, "--unchecked")
            check("no chain" not in quiet, f"{command} --unchecked:\n{quiet}")
        shutil.rmtree(self.w.root / "exported")

    def relative_paths(self):
        """Inside the run's folders the chain is found as well."""
        _, checkpoints = self.copy("relative")
        forger.forge(checkpoints / LAST)
        for cwd, path in ((checkpoints, LAST), (checkpoints / LAST, "."), (checkpoints.parent, "."),
                          (checkpoints / LAST / "model", f"../../../checkpoints/./{LAST}/")):
            self.w.bad("sample", "--checkpoint", path, "--prompt", "the", "--max_new_tokens", "4", cwd=cwd,
                       says=["forged", "--unchecked"])
        link = self.w.root / "link"
        link.symlink_to(checkpoints / LAST)
        self.w.bad("inspect", "link", says=["forged", "--unchecked"])

    def broken_chain(self):
        config, checkpoints = self.copy("broken")
        chain = checkpoints.parent / "chain.jsonl"
        chain.write_bytes(chain.read_bytes().replace(b'"tokens":96', b'"tokens":97', 1))
        self.refused(config, "runs/broken", ["chain.jsonl", "line 2", "was altered"])
        self.w.verdict("differs", "runs/broken", says=["chain.jsonl", "line 2", "was altered"])

    def forged_chain(self):
        """Who rewrites the chain as well is found by the replay and by the run hash, of moments only by these."""
        config, checkpoints = self.copy("rewritten")
        chain = checkpoints.parent / "chain.jsonl"
        name = forger.forge(checkpoints / LAST)
        forger.rewrite_chain(chain, lambda e: e | {"name": name} if e["kind"] == "checkpoint" and e["step"] == 20 else e)
        # The entry of the step still has the fingerprint of the honest parameters.
        self.w.verdict("differs", "runs/rewritten", "--no_replay", says=[LAST, "forged", "fingerprint of its parameters"])
        self.taken(config, "runs/rewritten")
        self.verify("runs/rewritten", "--no_replay", "--run_hash", self.hash, says=[["run hash", self.hash]])
        self.w.verdict("differs", "runs/rewritten", says=["at step 20: checkpoint", name])
        # Of the moments nothing but the name is in the chain.
        shutil.rmtree(checkpoints.parent)
        config, checkpoints = self.copy("rewritten")
        name = forger.forge(checkpoints / LAST, "optimizer/second_moment/layers/mlp/down/weight")
        forger.rewrite_chain(chain, lambda e: e | {"name": name} if e["kind"] == "checkpoint" and e["step"] == 20 else e)
        self.verify("runs/rewritten", "--no_replay", status=0, says=[["4 fine"]])
        self.verify("runs/rewritten", says=[["differs at step 20: checkpoint", name]])
        # Without the entry there is nothing that a checkpoint could contradict; but one is due.
        shutil.rmtree(checkpoints.parent)
        config, checkpoints = self.copy("rewritten")
        forger.forge(checkpoints / MIDDLE)
        forger.rewrite_chain(chain, lambda e: None if e["kind"] == "checkpoint" and e["step"] == 10 else e)
        self.verify("runs/rewritten", "--no_replay", says=[[MIDDLE, "forged"]])
        self.verify("runs/rewritten", says=[["differs at step 10: checkpoint", "none"]])

    def claimed_config(self):
        """Another configuration than the one that was trained, and all hashes fit: its programs are not the chain's."""
        for section, key, value in (("optimizer", "weight_decay", "0.0"), ("optimizer", "epsilon", "1e-06"),
                                    ("optimizer", "max_grad_norm", "2.0"), ("model", "activation_function", "relu"),
                                    ("model", "z_loss_weight", "0.25"), ("model", "layer_norm_epsilon", "0.001")):
            _, checkpoints = self.copy("claimed")
            forger.claim(checkpoints.parent, section, key, value)
            for words in ((), ("--no_replay",)):
                self.w.verdict("differs", "runs/claimed", *words, says=["other programs than the chain names"])
            # What run.json says of the program is in no hash: another version could trace other programs.
            record = checkpoints.parent / "run.json"
            record.unlink()
            self.w.verdict("cannot check", "runs/claimed", says=["other programs than the chain names", "version"])
            self.w.verdict("cannot check", "runs/claimed", "--stored_program", says=["steps 1 to 20 follow from program.ir"])
            shutil.rmtree(checkpoints.parent)

    def renamed_parameters(self):
        """Names are in no hash: those of program.ir must be the configuration's."""
        _, checkpoints = self.copy("renamed")
        program = checkpoints.parent / "program.ir"
        good = program.read_text()
        for old, new in (("mlp/down", "mlp/../../down"), ("mlp/down", "mlp/other"), ("model/norm/weight", "model/" + "n" * 3000)):
            check(old in good, f"no {old} in program.ir")
            program.write_text(good.replace(old, new))
            for words in ((), ("--no_replay",)):
                self.w.verdict("differs", "runs/renamed", *words, says=["program.ir"])

    def cut_chain(self):
        """The end of a chain is missing, with its checkpoints, or all of them are."""
        _, checkpoints = self.copy("cut")
        chain = checkpoints.parent / "chain.jsonl"
        whole = chain.read_text().splitlines(keepends=True)
        for folder in (LAST, "step-00000015"):
            shutil.rmtree(checkpoints / folder)
        chain.write_text("".join(line for line in whole if json.loads(line).get("step", 0) <= 12))
        out = self.w.verdict("incomplete", "runs/cut", says=["chain.jsonl ends at step 12 of 20"])
        check("replay is equal: steps 1 to 12 replayed" in out, out)
        status = self.w.good("status", "runs/cut")
        check("step 12 of 20" in status.split("\n", 1)[0] and "finished" not in status.split("\n", 1)[0], status)
        chain.write_text(whole[0])
        shutil.rmtree(checkpoints)
        self.w.verdict("cannot check", "runs/cut", says=["no step was replayed"])
        chain.write_text("".join(whole))
        out = self.w.verdict("incomplete", "runs/cut", says=["missing", "and 3 more like it"])
        check("replay is equal: steps 1 to 20 replayed" in out, out)

    def nothing_compared(self):
        for words in (("--from_step", "20"), ("--to_step", "0")):
            self.w.verdict("cannot check", "runs/good", *words, says=["no step was replayed"])
        self.w.bad("verify", "runs/good", "--from_step", "21", says=["the chain of runs/good has steps 1 to 20"])
        self.w.verdict("equal", "runs/good", "--from_step", "10", "--to_step", "15",
                       says=["steps 11 to 15 replayed", "15 of 20 steps were not replayed"])

    def changed_number(self):
        """One number in the chain, hashed again: that step is the finding, in decimals, not the honest checkpoints."""
        _, checkpoints = self.copy("number")
        chain = checkpoints.parent / "chain.jsonl"
        forger.rewrite_chain(chain, lambda e: e | {"loss": "0x1p+1"} if e["kind"] == "step" and e["step"] == 7 else e)
        out = self.w.verdict("differs", "runs/number", says=["at step 7: loss is 2 in the chain, "])
        check("forged" not in out and "0x" not in out and "and 2 more like it" in out, out)

    # Training that was not what the record says; every hash fits. Only steps that are done again show it, and they say
    # how.

    def reset_moments(self):
        """At a restart after step 10 the optimizer's arrays were set to zero."""
        config, checkpoints = self.copy("reset")
        for step in (15, 20):
            shutil.rmtree(checkpoints / f"step-{step:08}")
        chain = checkpoints.parent / "chain.jsonl"
        honest = self.w.root / "honest-10"
        shutil.copytree(checkpoints / MIDDLE, honest)
        for chunk in (checkpoints / MIDDLE / "optimizer").rglob("c.*"):
            chunk.write_bytes(bytes(chunk.stat().st_size))
        named = {MIDDLE: forger.seal(checkpoints / MIDDLE)}
        self.rename_states(chain, named)
        self.w.train(config)
        shutil.rmtree(checkpoints / MIDDLE)
        shutil.move(honest, checkpoints / MIDDLE)
        self.rename_states(chain, {MIDDLE: self.states[MIDDLE][1]})
        self.reseal(checkpoints)
        self.w.verdict("equal", "runs/reset", "--no_replay")
        self.w.verdict("differs", "runs/reset", "--from_step", "10", says=["at step 11: state is ", "reset after step 10"])
        self.w.verdict("equal", "runs/reset", "--to_step", "10")

    def skipped_and_swapped(self):
        """Steps that were left out, done twice, or taken in another order."""
        chain = self.w.root / "runs" / "skipped" / "chain.jsonl"

        def batch_of(step):
            return next(e["batch"] for e in map(json.loads, self.w.chain("good").splitlines()) if e.get("step") == step and e["kind"] == "step")

        def planted(edit, says, *words):
            _, checkpoints = self.copy("skipped")
            forger.rewrite_chain(chain, lambda e: edit(e) if e["kind"] == "step" else e)
            self.reseal(checkpoints)
            self.w.verdict("differs", "runs/skipped", *words, says=says)
            shutil.rmtree(chain.parent)

        planted(lambda e: None if e["step"] == 7 else e, ["step 8 follows step 6"], "--no_replay")
        planted(lambda e: e | {"batch": batch_of(min(e["step"] + 2, 20))} if e["step"] >= 7 else e,
                ["at step 7: batch is ", "the batch of step 9: steps 7 to 8 were skipped"])
        planted(lambda e: e | {"batch": batch_of({7: 9, 9: 7}.get(e["step"], e["step"]))},
                ["at step 7: batch is ", "the batch of step 9", "the two steps were swapped"])
        planted(lambda e: e | {"batch": batch_of(e["step"] - 3)} if e["step"] >= 7 else e,
                ["at step 7: batch is ", "the batch of step 4, which was taken again"])
        planted(lambda e: e | {"batch": "0" * 64} if e["step"] == 7 else e, ["at step 7: batch is ", "of other data"])

    def other_rate(self):
        """From step 11 on the learning rate was another one; the amend that says so was taken out."""
        config, checkpoints = self.copy("rate")
        for step in (15, 20):
            shutil.rmtree(checkpoints / f"step-{step:08}")
        self.w.train(config, "--amend", "--optimizer.learning_rate", "0.002")
        run = checkpoints.parent
        amended = self.w.root / "runs" / "amended-rate"
        shutil.copytree(run, amended)
        forger.rewrite_chain(run / "chain.jsonl", lambda e: None if e["kind"] == "amend" else e)
        self.reseal(checkpoints)
        self.w.verdict("differs", "runs/rate", "--no_replay", says=["config.yaml is not the config of the chain", "learning_rate"])
        shutil.copy(self.w.root / "runs/good/config.yaml", run / "config.yaml")
        self.w.verdict("differs", "runs/rate", "--no_replay", says=["step-00000015", "forged", "learning_rate"])
        for step in (15, 20):
            forger.seal(checkpoints / f"step-{step:08}", config=forger.read_manifest(checkpoints / MIDDLE)["config"])
        self.w.verdict("equal", "runs/rate", "--no_replay")
        self.w.verdict("differs", "runs/rate", "--from_step", "10",
                       says=["at step 11: state is ", "the update was another one", "learning rate"])

        # Backdated: the new rate is said to have been there from the beginning, or from an earlier step on.
        checkpoints = amended / "checkpoints"
        for early in (0, 6):
            run = self.w.root / "runs" / "backdated"
            shutil.copytree(amended, run)
            backdate(run / "chain.jsonl", early)
            self.reseal(run / "checkpoints")
            self.w.verdict("differs", "runs/backdated", "--no_replay", says=["step-000000", "forged", "learning_rate is 0.002 there and 0.003 here"])
            text = forger.read_manifest(run / "checkpoints" / LAST)["config"]
            for step in (5, 10) if early == 0 else (10,):
                forger.seal(run / "checkpoints" / f"step-{step:08}", config=text)
            self.w.verdict("equal", "runs/backdated", "--no_replay")
            self.w.verdict("differs", "runs/backdated", says=[f"at step {early + 1}: state is ", "the update was another one"])
            shutil.rmtree(run)

    def trained_before(self):
        """A run that begins with a checkpoint begins with its parameters, and with no moments."""
        config = self.w.config("child", 5, EVERY, data__cache_dir="cache-good", trainer__initialize_from="runs/good")
        self.w.train(config)
        self.w.verdict("equal", "runs/child", says=["steps 1 to 5 replayed"])
        run = self.w.root / "runs" / "child"
        forger.change_value(run / "initial/step-00000000", "optimizer/first_moment/norm/weight")
        self.w.verdict("differs", "runs/child", "--no_replay", says=["initial/step-00000000"])
        name = forger.seal(run / "initial/step-00000000")
        forger.rewrite_chain(run / "chain.jsonl", lambda e: e | {"initial": name} if e["kind"] == "genesis" else e)
        self.reseal(run / "checkpoints")
        self.w.verdict("differs", "runs/child", "--no_replay", says=["optimizer/first_moment/norm/weight is not zero", "trained before"])
        shutil.rmtree(run / "initial")
        self.w.verdict("incomplete", "runs/child", "--no_replay", says=["initial/step-00000000"])

    def rename_states(self, chain, names):
        """The checkpoint entries of these directories name other states."""
        of_step = {int(folder[5:]): name for folder, name in names.items()}
        forger.rewrite_chain(chain, lambda e: e | {"name": of_step.get(e["step"], e["name"])} if e["kind"] == "checkpoint" else e)

    def reseal(self, checkpoints):
        """The manifests name the heads of the chain as it is now."""
        entries = map(json.loads, (checkpoints.parent / "chain.jsonl").read_text().splitlines())
        heads = {e["step"]: e["h"] for e in entries if e["kind"] == "step"}
        for folder in checkpoints.iterdir():
            step = forger.read_manifest(folder)["step"]
            if step in heads:
                forger.seal(folder, chain_head=heads[step])

    # Checkpoints that the chain does not name.

    def temporary(self):
        """Saved because of a signal: parameters have the step's fingerprint in the chain, and a replay tells the rest."""
        config = self.w.config("stopped", 500, 300, data__cache_dir="cache-good")
        process = self.w.start("train", "--config", config, env={"OSTRO_EXECUTOR": "interpreter"})
        wait_for(lambda: self.w.chain_lines("stopped") > 3, 120, "step 3")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
        check(process.returncode == 75, f"SIGTERM: exit status {process.returncode}\n{out}{err}")
        (folder, (kind, name)), = self.w.checkpoints("stopped").items()
        check(kind == "temporary", f"{folder} is {kind}")
        step = int(folder[5:])
        checkpoints = self.w.root / "runs" / "stopped" / "checkpoints"
        self.taken(config, "runs/stopped")
        self.verify("runs/stopped", "--no_replay", status=3, says=[[folder, "temporary", "not replayed"]])
        self.verify("runs/stopped", status=3, says=[["incomplete: ", f"ends at step {step} of 500"], ["1 fine"], [folder, "temporary", "replayed"], ["equal"]])
        honest = self.w.root / "honest"
        shutil.copytree(checkpoints, honest)

        # Parameters: known at once.
        forger.forge(checkpoints / folder)
        self.verify("runs/stopped", "--no_replay", says=[[folder, "forged", "fingerprint"]])
        self.refused(config, "runs/stopped", [folder, "forged", "fingerprint"])
        self.w.bad("train", "--config", config, says=["none of the 1 checkpoints can be used", folder, "fingerprint"])

        # Moments: known by the replay.
        shutil.rmtree(checkpoints)
        shutil.copytree(honest, checkpoints)
        forged = forger.forge(checkpoints / folder, "optimizer/second_moment/layers/mlp/down/weight")
        self.verify("runs/stopped", "--no_replay", status=3, says=[[folder, "temporary", "not replayed"]])
        self.verify("runs/stopped", says=[["0 fine"], [folder, "forged", forged, name], ["equal"]])

        # What the fingerprint is over cannot be left out or made up.
        shutil.rmtree(checkpoints)
        shutil.copytree(honest, checkpoints)
        good = forger.read_manifest(checkpoints / folder)["measured"]
        for measured in ("", good.replace(good.split()[1], "0x1p+0")):
            forger.seal(checkpoints / folder, measured=measured)
            self.verify("runs/stopped", "--no_replay", says=[[folder, "forged", "fingerprint"]])

        # An honest one is gone on from.
        forger.seal(checkpoints / folder, measured=good)
        short = self.w.config("stopped", 500, 300, data__cache_dir="cache-good")
        text = self.w.train(short)
        check(f"after step {step}" in text and "warning" not in text, f"not from step {step}:\n{text}")

    # Samples, leaves and rows (docs/reference/verdicts.md, "A sample, a leaf").

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



def backdate(chain, step):
    """Moves the chain's only amend to an earlier step; to 0: into the genesis."""
    entries = [json.loads(line) for line in chain.read_text().splitlines()]
    amend = next(e for e in entries if e["kind"] == "amend")
    assert list(amend["difference"]) == ["optimizer.learning_rate"]
    entries.remove(amend)
    if step == 0:
        entries[0]["config"]["optimizer"]["learning_rate"] = amend["difference"]["optimizer.learning_rate"]["to"]
    else:
        at = max(i for i, e in enumerate(entries) if e.get("step") == step)
        entries.insert(at + 1, amend | {"step": step})
    chain.write_text("\n".join(json.dumps(e) for e in entries) + "\n")
    forger.rewrite_chain(chain, lambda e: e)


def flipped(data):
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]


def truncated(data):
    return data[: len(data) // 2]


if __name__ == "__main__":
    sys.exit(run_cases(Cases, helpers=("copy", "verify", "readers", "refused", "taken", "goes_on", "refused_damage", "rename_states", "reseal")))
