"""BundleUses: cases of bundle_test.py: what begins with a bundle, and bundles of other models: means, mixtures, adapters."""

import json
import shutil

import forger
from bundles import EVERY, STEPS, Bundles, fit_provenance, reseal, write_manifest
from harness import check


class BundleUses(Bundles):
    def going_on(self):
        """Replays, trainings and imports that begin with a bundle."""
        record = self.root / "continued/good"
        shutil.copytree(self.root / "B/record", record)
        more = ("--amend", "--trainer.num_train_steps", str(STEPS + 2))
        self.w.good("train", "--config", "continued/good/config.yaml", "--trainer.log_dir", "continued", *more)
        shutil.copytree(self.root / "runs/good", self.root / "runs2/good")
        self.w.good("train", "--config", "runs2/good/config.yaml", "--trainer.log_dir", "runs2", *more)
        check((record / "chain.jsonl").read_bytes() == (self.root / "runs2/good/chain.jsonl").read_bytes(),
              "the run that goes on with the bundle's record has another chain")
        self.w.verdict("equal", "B", "--sample", "3", "--challenge", "lottery", says=["3 drawn steps"])
        self.w.bad("verify", "B", "--sample", "3", "--challenge", "lottery", "--key", "key.pub", says=["--key", "whole bundle"])
        self.w.good("import", "--from", "hf", "B", "--out", "imported")
        for source in ("B", "B/record"):
            name = "from-" + source.replace("/", "-")
            self.w.train(self.w.config(name, EVERY, EVERY, trainer__initialize_from=source, data__cache_dir="cache"))
            for words in (("--checkpoints", "1"), ("--parameters_only",)):
                self.publish(name, f"{name}{len(words)}", *words)
                self.w.verdict("equal", f"{name}{len(words)}")
        lineage = json.loads((self.root / "from-B2/bundle.json").read_text())["lineage"]
        check(lineage["maker"]["state"] == json.loads((self.root / "B/bundle.json").read_text())["state"], lineage)
        for name, source in (("from-B1", "from-B"), ("from-B-record1", "from-B-record")):
            text = self.w.verdict("equal", name)
            check("the run began with the published state" in text and "its manifest" in text, text)
        self._altered()
        # A bundle is forked by its record, and a stranger's files in the checkpoint stay there.
        strays = self.copy("strays") / f"record/checkpoints/step-{STEPS:08}"
        for folder in ("", "model", "model/norm/weight"):
            (strays / folder / "stray").write_text("x")
        (strays / "loop").symlink_to(".")
        self.w.good("fork", "strays", "--step", str(STEPS), "--out", "runs/fork", "--trainer.log_dir", "runs",
                    "--trainer.num_train_steps", str(STEPS + EVERY))
        initial = self.root / f"runs/fork/initial/step-{STEPS:08}"
        check([p.name for p in initial.parent.rglob("*") if p.name in ("stray", "loop")] == [], "a stranger's file was copied")
        check((initial / "manifest.json").read_bytes() == (strays / "manifest.json").read_bytes(), "another manifest than the parent's")
        self.w.train("runs/fork/config.yaml")
        self.publish("fork", "forked")
        self.w.verdict("equal", "forked")
        shutil.rmtree(self.root / "runs/fork/parent")
        text = self.publish("fork", "orphan")
        check("orphan/record/parent/chain.jsonl is missing" in text and "publishing" not in text, text)

    def words_of_commands(self):
        """Words of a command may have a secret. A bundle has none, also of a run that was killed behind the entry of an amend, and with
        a checkpoint into which an earlier version wrote the whole configuration."""
        config = self.w.config("words", EVERY, EVERY, data__cache_dir="cache", trainer__alert_command=["true", "https://hooks/SECRET"])
        self.w.train(config)
        run = self.root / "runs/words"
        forger.seal(run / f"checkpoints/step-{EVERY:08}", config=(run / "config.yaml").read_text())
        status, out, err = self.w.run("train", "--config", config, "--amend", "--trainer.num_train_steps", str(2 * EVERY),
                                      env={"OSTRO_FAILPOINT": "amend:2"})
        check(status == -9, f"the amend was not killed: {status}\n{out}{err}")
        with_words = {p.name for p in run.rglob("*") if p.is_file() and b"SECRET" in p.read_bytes()}
        check({"config.yaml", "config.amended.yaml", "manifest.json"} <= with_words, f"nothing to leave out: {with_words}")
        self.publish("words", "W")
        found = [str(p) for p in (self.root / "W").rglob("*") if p.is_file() and b"SECRET" in p.read_bytes()]
        check(not found, f"words of a command were published: {found}")
        text = (self.root / "W/record/config.yaml").read_text()
        check(f"num_train_steps: {2 * EVERY}" in text and "alert_command: []" in text, f"not the configuration in force:\n{text}")
        check(not (self.root / "W/record/config.amended.yaml").exists(), "the configuration is there twice")
        self.w.verdict("incomplete", "W", says=[f"ends at step {EVERY} of {2 * EVERY}"])

    def licenses(self):
        for folder in ("one", "two"):
            (self.root / folder).mkdir()
            (self.root / folder / "LICENSE").write_text(folder)
        words = ("publish", "runs/good", "--out", "none", "--license_file")
        self.w.bad(*words, "one/LICENSE", "corpus/00.txt", "two/LICENSE", says=["one/LICENSE", "two/LICENSE", "another name"])
        self.w.bad(*words, "one", says=["--license_file one", "is a directory"])
        check(not (self.root / "none").exists(), "a refused publication left a directory")

    def names(self):
        """Components whose names have parts, and names that no component has."""
        def urls(numbers):
            return {"train_urls": [f"corpus/{i:02}.txt" for i in numbers], "validation_fraction": 0.2}

        self.w.train(self.w.config("mixed", EVERY, EVERY, data__train_urls=[], data__mixture_block_size=16,
                                   data__components={"web/en": urls(range(5)), "web/de": urls(range(5, 7)), "code": urls((7, 8))},
                                   data__train_weights={"web/en": 0.5, "web/de": 0.25, "code": 0.25}))
        self.publish("mixed", "M")
        self.w.verdict("equal", "M")
        check((self.root / "M/ledger/web/en.rows").exists(), "no file of the component web/en")
        self.other_program("M", "equal")
        for name in self.rng.sample(["../../x", "/abs", "s3://b/k", "a\0b", "a\\b", "a//b", "../web/en", "."], 2):
            def edit(entry, name=name):
                if entry["kind"] == "genesis":
                    entry["data_roots"][name] = entry["data_roots"].pop("web/en")
                return entry

            for of, to in (("runs/mixed", "runs/strange"), ("M", "S")):
                copy = self.copy(to, of)
                chain = copy / "record/chain.jsonl" if to == "S" else copy / "chain.jsonl"
                forger.rewrite_chain(chain, edit)
            self.w.bad("publish", "runs/strange", "--out", "none", says=["data_roots", "no component"])
            reseal(self.root / "S")
            self.found("differs", "S", says=["data_roots", "no component"])
            self.other_program("S", "differs", "data_roots")
            manifest = json.loads((self.root / "M/bundle.json").read_text())
            manifest["ledger"][name] = manifest["ledger"].pop("web/en")
            write_manifest(self.copy("S", "M"), manifest)
            self.found("differs", "S", says=["ledger", "no component"])
            self.other_program("S", "differs", "ledger: it has")

    def means(self):
        """A model that is made of means of the weights, published without moments."""
        name, rule = self.rng.choice([("ema", {"type": "adam", "ema_beta": 0.9}), ("free", {"type": "schedule_free"})])
        self.w.train(self.w.config(name, STEPS, EVERY, data__cache_dir="cache", optimizer=rule | {"learning_rate": 0.003}))
        text = self.publish(name, "means", "--parameters_only", "--checkpoints", "1", "--dtype", "bf16")
        check("incomplete" not in text and "missing" not in text, text)
        self.w.verdict("equal", "means")
        self.other_program("means", "equal")
        kept = {p.name for p in (self.root / f"means/record/checkpoints/step-{STEPS:08}/optimizer").iterdir()}
        check(kept == {"average"}, kept)
        self.publish(name, "whole", "--dtype", "bf16")
        for file in ("model.safetensors", "provenance.json"):
            check((self.root / "means" / file).read_bytes() == (self.root / "whole" / file).read_bytes(), file)
        forger.change_value(self.root / f"means/record/checkpoints/step-{STEPS:08}", "optimizer/average/norm/weight")
        reseal(self.root / "means")
        self.found("differs", "means", says=["optimizer/average/norm/weight"])
        self.other_program("means", "differs", "optimizer/average/norm/weight")

    def adapters(self):
        self.w.train(self.w.config("tuned", EVERY, EVERY, data__cache_dir="cache", adapter={"type": "lora", "rank": 2},
                                   trainer__initialize_from="runs/good"))
        self.w.bad("publish", "runs/tuned", "--out", "none", says=["--merge_lora"])
        self.publish("tuned", "merged-lora", "--merge_lora", "--dtype", "bf16")
        self.w.verdict("equal", "merged-lora", says=["files, the record, the weights and the ledger"])
        self.other_program("merged-lora", "cannot check", "plain export")
        self.w.good("export", "--checkpoint", "runs/tuned", "--to", "hf", "--merge_lora", "--dtype", "bf16", "--out", "exported")
        for path in (self.root / "exported").iterdir():
            check(path.read_bytes() == (self.root / "merged-lora" / path.name).read_bytes(), f"{path.name} is another one")
        self.publish("tuned", "few", "--merge_lora", "--parameters_only")
        self.w.verdict("equal", "few")

    def _altered(self):
        """Nothing begins with a bundle that is not what it says."""
        altered = self.copy("altered")
        data = bytearray((altered / "model.safetensors").read_bytes())
        data[-2] ^= 1
        (altered / "model.safetensors").write_bytes(data)
        fit_provenance(altered)
        for make_fit in (lambda: None, lambda: reseal(altered)):
            make_fit()
            for source in ("altered", "altered/record"):
                config = self.w.config("none", EVERY, EVERY, trainer__initialize_from=source, data__cache_dir="cache")
                self.w.bad("train", "--config", config, says=["altered", "not what it says", "model.safetensors"])
                check(not (self.root / "runs/none/chain.jsonl").exists(), "a run began with an altered bundle")
            self.w.bad("import", "--from", "hf", "altered", "--out", "none", says=["altered", "not what it says"])
            check(not (self.root / "none").exists(), "an altered bundle was imported")
        # A genesis that contradicts itself is not published.
        lie = self.root / "runs/lie"
        shutil.copytree(self.root / "runs/from-B", lie)
        forger.rewrite_chain(lie / "chain.jsonl", lambda e: e | {"maker": e["maker"] | {"state": "0" * 64}} if e["kind"] == "genesis" else e)
        forger.refit(lie)
        self.w.bad("publish", "runs/lie", "--out", "none", says=["nothing was published", "contradicts itself"])
