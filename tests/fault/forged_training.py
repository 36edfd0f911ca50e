"""ForgedTraining: cases of forged_test.py: training that was not what the record says, with hashes that all fit.

Only steps that are done again show it, and they say how. A temporary checkpoint, which the chain does not name, is one of them.
"""

import json
import shutil
import signal

import forger
from forged_runs import EVERY, LAST, MIDDLE, ForgedRuns
from harness import check, wait_for


class ForgedTraining(ForgedRuns):
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

    def beginning_in_checkpoints(self):
        """Trained with the weights of another run, and said to begin with drawn ones: no checkpoint stands for the beginning."""
        config = self.w.config("begun", 5, EVERY, data__cache_dir="cache-good", trainer__initialize_from="runs/good")
        self.w.train(config)
        run = self.w.root / "runs" / "begun"
        place = run / "checkpoints/step-00000000"
        shutil.move(run / "initial/step-00000000", place)
        (run / "initial").rmdir()
        lines = [json.loads(line) for line in (run / "chain.jsonl").read_text().splitlines()]
        check(lines[0]["initial"] is not None, f"the run begins with drawn weights: {lines[0]}")
        lines[0]["initial"] = None
        lines.insert(1, {"kind": "checkpoint", "step": 0, "name": forger.read_manifest(place)["name"], "h": ""})
        (run / "chain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        forger.rewrite_chain(run / "chain.jsonl", lambda e: e)
        genesis = json.loads((run / "chain.jsonl").read_text().splitlines()[0])["h"]
        forger.seal(place, chain_head=genesis, config=forger.read_manifest(run / "checkpoints/step-00000005")["config"])
        self.reseal(run / "checkpoints")
        for words in ((), ("--no_replay",)):
            self.w.verdict("differs", "runs/begun", *words, says=["chain.jsonl", "line 2", "a checkpoint entry after step 0, before any step"])
        # Without the entry, the steps do not follow from drawn weights.
        shutil.rmtree(place)
        forger.rewrite_chain(run / "chain.jsonl", lambda e: None if e.get("step") == 0 else e)
        self.reseal(run / "checkpoints")
        self.w.verdict("equal", "runs/begun", "--no_replay")
        self.w.verdict("differs", "runs/begun", says=["at step 1: "])

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
