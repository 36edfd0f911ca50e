"""BundleFrauds: cases of bundle_test.py: keys, time stamps, forgers who make every hash fit, and checks of drawn steps."""

import json
import shutil
import time

import forger
from bundles import EVERY, STEPS, Bundles, fit_provenance, reseal, write_manifest
from harness import check


class BundleFrauds(Bundles):
    def keys(self):
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", "thief.pem")
        self.publish("good", "stolen", "--sign", "thief.pem")
        self.w.verdict("equal", "stolen")
        self.found("differs", "stolen", "--key", "key.pub", says=["not by", "as given"])
        self.found("differs", "O", "--key", "key.pub", says=["is not signed"])
        bundle = self.copy("keys")
        shutil.copy(self.root / "O/bundle.json", bundle)
        self.found("differs", "keys", "--key", "key.pub", says=["is not the signature of this bundle.json"])
        self.w.bad("verify", "B", "--key", "key.pem", says=["--key", "key.pem", "no public key"])

    def times(self):
        bundle = self.copy("times")
        self.w.bad("verify", "B", "--time_ca", "key.pub", says=["--time_ca", "no certificate"])
        self.stamp(bundle)
        self.found("incomplete", "B", "--time_ca", "tsa/ca.pem", says=["bundle.json.tsr is missing"])
        text = self.w.verdict("equal", "times", "--time_ca", "tsa/ca.pem")
        year = time.strftime("%Y-", time.gmtime())
        check("CN = test service says that this bundle.json existed at " + year in text, text)
        check("compared with none" not in text and "bundle.json.tsr that its own signature leaves out" in text, text)
        self.openssl("ts", "-verify", "-data", "times/bundle.json", "-in", "times/bundle.json.tsr", "-CAfile", "tsa/ca.pem")
        check("compared with none (--time_ca" in self.w.verdict("equal", "times"), "the service is not called unknown")
        self.stamp(self.copy("elsewhen"), "thief")
        self.found("differs", "elsewhen", "--time_ca", "tsa/ca.pem", says=["CN = test service", "vouches"])
        # An answer about another bundle.json.
        self.publish("other", "later", "--time_request")
        shutil.copy(bundle / "bundle.json.tsr", self.root / "later")
        self.found("differs", "later", says=["about another bundle.json"])

    def frauds(self):
        """A forger who can make every hash of the bundle fit again."""
        # Cut behind a signed head: the signed manifest is kept, or all is written anew.
        cut = self.copy("cut")
        chain = cut / "record/chain.jsonl"
        steps = [line for line in chain.read_text().splitlines()]
        chain.write_text("\n".join(steps[:-2]) + "\n")
        self.found("differs", "cut", says=["chain.jsonl", "cut, or written anew"])
        # A document less, in a ledger whose every sum fits: rows.
        less = self.copy("less")
        rows, sources = less / "ledger/train.rows", less / "ledger/train.sources"
        lines = [json.loads(line) for line in sources.read_text().splitlines()]
        gone = next(i for i, line in enumerate(lines) if line["rows"][0] == 1 and i > 1)
        at = 40 * lines[gone]["first_row"][0]
        rows.write_bytes(rows.read_bytes()[:at] + rows.read_bytes()[at + 40:])
        reseal(less)
        self.found("differs", "less", says=[f"{gone:02}.txt", "rows"])
        # And the source's line and its rows in the content, too.
        content = json.loads((less / "ledger/train.content.json").read_text())
        del content["files"][gone]
        content["splits"]["train"]["rows"] -= 1
        (less / "ledger/train.content.json").write_text(forger.canonical(content))
        for line in lines[gone + 1:]:
            line["first_row"][0] -= 1
        del lines[gone]
        sources.write_text("".join(forger.canonical(line) + "\n" for line in lines))
        manifest = json.loads((less / "bundle.json").read_text())
        manifest["ledger"]["train"]["train"] -= 1
        write_manifest(less, manifest)
        reseal(less)
        self.found("differs", "less", says=["ledger", "other data than the run's"])
        # A checkpoint of another run, under its own hashes.
        swapped = self.copy("swapped")
        state = f"record/checkpoints/step-{STEPS:08}"
        shutil.rmtree(swapped / state)
        shutil.copytree(self.root / "O" / state, swapped / state)
        reseal(swapped)
        self.found("differs", "swapped", says=[f"step-{STEPS:08}", "of another run"])
        # An honest model under a foreign chain, and the other way round.
        foreign = self.copy("foreign")
        shutil.rmtree(foreign / "record")
        shutil.copytree(self.root / "O/record", foreign / "record")
        theirs = json.loads((self.root / "O/bundle.json").read_text())
        manifest = json.loads((foreign / "bundle.json").read_text())
        for key in ("genesis", "head", "state", "checkpoints"):
            manifest[key] = theirs[key]
        write_manifest(foreign, manifest)
        reseal(foreign)
        self.found("differs", "foreign", says=["provenance.json", "of another model"])
        self.found("differs", "foreign", says=["of another run"])
        merged = self.copy("merged")
        for name in ("model.safetensors", "provenance.json"):
            shutil.copy(self.root / "O" / name, merged)
        self.found("differs", "merged", says=["merged/model.safetensors", "other bytes than bundle.json"])
        reseal(merged)
        self.found("differs", "merged", says=["of another model"])
        # One weight, with a provenance that fits.
        weight = self.copy("weight")
        data = bytearray((weight / "model.safetensors").read_bytes())
        data[-2] ^= 1
        (weight / "model.safetensors").write_bytes(data)
        fit_provenance(weight)
        reseal(weight)
        self.found("differs", "weight", says=["model.safetensors", "weight"])
        # A tokenizer with one merge less.
        for folder in ("", "record/"):
            merges = self.copy("merges")
            tokenizer = json.loads((merges / folder / "tokenizer.json").read_text())
            tokenizer["model"]["merges"].pop()
            (merges / folder / "tokenizer.json").write_text(json.dumps(tokenizer))
            fit_provenance(merges)
            reseal(merges)
            self.found("differs", "merges", says=["tokenizer.json"])
        # A model card with the run hash of another run.
        card = self.copy("card")
        text, head = (card / "README.md").read_text(), json.loads((card / "bundle.json").read_text())["head"]
        check(head in text, text)
        (card / "README.md").write_text(text.replace(head, theirs["head"]))
        reseal(card)
        self.found("differs", "card", says=["README.md", theirs["head"], head])
        # What bundle.json repeats of the chain.
        for key, value in (("numerics", "2"), ("step", EVERY), ("amends", [{"difference": {}, "step": 3}]),
                           ("lineage", {"fork": None, "maker": None, "origin": {}}), ("genesis", "0" * 64)):
            lie = self.copy("lie")
            manifest = json.loads((lie / "bundle.json").read_text())
            check(manifest[key] != value, key)
            write_manifest(lie, manifest | {key: value})
            self.found("differs", "lie", says=["bundle.json"])

    def spots(self):
        """Drawn steps and leaves are those of the run that is meant, from states that have what a step needs."""
        drawn = ("--sample", "2", "--challenge", "lottery")
        text = self.w.verdict("equal", "B", *drawn)
        check("as bundle.json has" in text, "the run hash is called given")
        # The record is whole with the states that bundle.json lists; of the model a replay says nothing.
        whole = self.w.verdict("equal", "B/record", says=[f"steps 1 to {STEPS} replayed"])
        for shown in (text, whole):
            check("not shown: that the bundle's files are those that were signed" in shown, shown)
        less = self.copy("less") / "record/checkpoints"
        shutil.rmtree(min(less.iterdir()))
        self.found("incomplete", "less/record", says=["step-0000000", "missing"])
        lie = self.copy("lie")
        write_manifest(lie, json.loads((lie / "bundle.json").read_text()) | {"head": "1" * 64})
        for words in (("--leaf", "3:0"), drawn, (*drawn, "--dry_run")):
            self.found("differs", "lie", *words, says=["the run hash is", "1" * 64, "as bundle.json has"])
            self.found("differs", "B", *words, "--run_hash", "0" * 64, says=["the run hash is", "as given"])
            self.w.bad("verify", "B", *words, "--run_hash", "0", says=["--run_hash 0:", "64 digits"])
        self.w.bad("verify", "B", "--leaf", "3:0", "--parent", "runs/other", says=["--parent", "--leaf"])
        # Without moments no step follows from a state, but from the first one: its moments are zero.
        self.publish("good", "light", "--parameters_only", "--checkpoints", "1")
        self.w.train(self.w.config("begun", STEPS, EVERY, trainer__initialize_from="runs/other", data__cache_dir="cache"))
        self.publish("begun", "begun", "--parameters_only", "--checkpoints", "1")
        for bundle in ("light", "begun"):
            price = json.loads(self.w.good("verify", bundle, *drawn, "--dry_run", "--json"))
            check([stretch[0] for stretch in price["stretches"]] == [0], price)
            self.w.verdict("equal", bundle, *drawn)
        self.w.good("fork", "runs/other", "--step", str(EVERY), "--out", "runs/branch", "--trainer.log_dir", "runs")
        self.w.train("runs/branch/config.yaml")
        text = self.w.verdict("equal", "runs/branch", *drawn)
        check(f"not shown: steps 1 to {EVERY}, which are of the run" in text, text)
        self.publish("branch", "branch", "--parameters_only")
        for words in (drawn, (*drawn, "--dry_run")):
            self.found("incomplete", "branch", *words, says=["no moments", "--parameters_only"])
