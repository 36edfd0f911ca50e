"""ForgedChains: cases of forged_test.py: chains that are broken, cut, or rewritten with hashes that fit."""

import json
import shutil

import forger
from forged_runs import LAST, MIDDLE, ForgedRuns
from harness import check


class ForgedChains(ForgedRuns):
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
