"""ForgedCheckpoints: cases of forged_test.py: the honest run, and checkpoints whose hashes fit each other, but not the chain."""

import json
import shutil

import forger
from forged_runs import EVERY, LAST, MIDDLE, STEPS, ForgedRuns
from harness import check


class ForgedCheckpoints(ForgedRuns):
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
