#!/usr/bin/env python3
"""Gives the program what it must refuse or survive: each case must end with one clear error line (or a loud
warning where it can go on), a status that is not 0, and nothing lost: the good command works afterwards.

    bad_input_test.py --ostro BINARY [CASE...]
"""

import contextlib
import hashlib
import pathlib
import resource
import shutil
import subprocess
import sys

from harness import check, mounted, run_cases, wait_for, write_corpus

STEPS, EVERY = 20, 5


LAB = """
lab: full
question: What does a full disk leave?
steps:
  texts: {source: {files: [texts], licence: MIT}}
  held: {source: {files: [held], licence: MIT}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
  copy: {run: {program: [sh, -c, "cat in/t/texts/* > out/all.txt"], inputs: {t: $texts}, outputs: [all.txt]}}
  base: {train: {data: $rows, config: tiny.yaml}}
  score: {eval: {of: $base}}
  model: {export: {of: $base}}
"""
LAB_CONFIG = """
model: {seq_len: 16, hidden_dim: 64, intermediate_dim: 128, num_layers: 2, num_heads: 2, num_kv_heads: 1}
trainer: {mp: f32, train_batch_size: 4, num_train_steps: 6, steps_per_eval: 0, checkpointer: {keep: [{every: 2}]}}
numerics: {leaf_examples: 2}
"""


class Cases:
    def __init__(self, workspace):
        self.w = w = workspace
        self.bad = w.bad
        self.config = w.config("good", STEPS, EVERY)
        w.train(self.config)
        self.run_dir = w.root / "runs" / "good"

    # Helpers.

    def warned(self, text, *says):
        lines = [line for line in text.splitlines() if line.startswith("warning: ")]
        found = [line for line in lines if all(word in line for word in says)]
        check(len(found) == 1, f"{len(found)} warnings with {says}:\n{text}")
        print(f"    {found[0][:260]}")

    def copy(self, name, every=EVERY, **changes):
        """A finished copy of the good run as run NAME, and its configuration."""
        config = self.w.config(name, STEPS, every, data__cache_dir="cache-good", **changes)
        shutil.copytree(self.run_dir, self.w.root / "runs" / name)
        return config, self.w.root / "runs" / name

    def equal(self, name):
        check(self.w.chain(name) == self.w.chain("good"), f"{name}: the chain differs from the good run's")

    def train_equal(self, name, config, env=None):
        text = self.w.train(config, env=env)
        self.equal(name)
        return text

    # Configuration.

    def config_typo(self):
        bad = self.w.config("typo", STEPS, EVERY, trainer__num_train_step=3)
        self.bad("train", "--config", bad, says=["num_train_step", "num_train_steps"])
        self.bad("train", "--config", self.config, "--model.hiden_dim", "8", says=["hiden_dim", "hidden_dim"])
        check(not (self.w.root / "runs" / "typo").exists(), "a run directory for a config that was refused")

    def config_type(self):
        bad = self.w.config("type", STEPS, EVERY, model__num_layers="two")
        self.bad("train", "--config", bad, says=["model.num_layers", "two"])
        bad = self.w.config("layers", STEPS, EVERY, model__num_layers=2000006)
        self.bad("train", "--config", bad, says=["model.num_layers", "2000006", "use 200000 layers"])
        bad = self.w.config("type2", STEPS, EVERY, data__train_urls={"a": 1})
        self.bad("train", "--config", bad, says=["data.train_urls"])

    def config_limit(self):
        self.bad("train", "--config", self.config, "--model.head_dim", "1026", "--trainer.id", "limit",
                 says=["model.head_dim", "1026", "1024"])

    def initialize_from_nothing(self):
        for words in (["--initialize_from", ""], ["--trainer.initialize_from", "''"]):
            self.bad("train", "--config", self.config, "--trainer.id", "nothing", *words,
                     says=["trainer.initialize_from", "empty", "Hugging Face directory"])
        check(not (self.w.root / "runs" / "nothing").exists(), "a run directory for a config that was refused")

    def small_vocabulary(self):
        """Every command that makes the model says that it has fewer rows than the tokenizer has tokens."""
        for words in (["train"], ["train", "--dry_run"], ["program"], ["eval", "--checkpoint", "init"],
                      ["grad", "--checkpoint", "init", "--step", "0", "--out", "none"]):
            self.bad(*words, "--config", self.config, "--trainer.id", "small", "--model.vocab_size", "299",
                     says=["model.vocab_size", "299", "300"])

    def config_file(self):
        self.bad("train", "--config", "absent.yaml", says=["absent.yaml"])
        (self.w.root / "broken.yaml").write_text("data: {tokenizer: [\n")
        self.bad("train", "--config", "broken.yaml", says=["broken.yaml"])

    def batch_not_divisible(self):
        bad = self.w.config("divide", STEPS, EVERY, numerics__leaf_examples=4)
        self.bad("train", "--config", bad, says=["trainer.train_batch_size", "6", "numerics.leaf_examples", "4"])

    def loss_not_finite(self):
        config = self.w.config("huge", STEPS, EVERY, data__cache_dir="cache-good", optimizer__learning_rate=1e30)
        line = self.bad("train", "--config", config, says=["not both finite", "optimizer.learning_rate", "is saved"])
        step = int(line.split("error: step ")[1].split(":")[0])
        check(self.w.chain_lines("huge") - 1 == step - 1 and self.w.newest_step("huge") == step - 1,
              f"step {step} failed: {self.w.chain_lines('huge') - 1} steps in the chain, "
              f"the newest checkpoint is of step {self.w.newest_step('huge')}")
        log = (self.w.root / "runs" / "huge" / "log.txt").read_text()
        check(f" error   step {step}: loss" in log, f"the error is not in the log:\n{log}")
        check(b"inf" not in self.w.chain("huge") and b"nan" not in self.w.chain("huge"), "not finite, in the chain")
        self.bad("train", "--config", config, says=[f"step {step}:"])  # again, from the saved state

    # Another config, tokenizer or data under an existing run.

    def resume_other_config(self):
        config, _ = self.copy("other", optimizer__learning_rate=0.004)
        self.bad("train", "--config", config, says=["optimizer.learning_rate", "0.003", "0.004", "trainer.id"])
        self.equal("other")
        config = self.w.config("other", STEPS, EVERY, data__cache_dir="cache-good", model__num_layers=3)
        self.bad("train", "--config", config, says=["model.num_layers", "2", "3"])
        self.train_equal("other", self.w.config("other", STEPS, EVERY, data__cache_dir="cache-good"))

    def other_tokenizer(self):
        self.w.good("tokenizer", "train", "--input", "corpus/*.txt", "--vocab_size", "290", "--out", "small.json")
        config = self.w.config("vocab", STEPS, EVERY, data__cache_dir="cache-good", data__tokenizer="small.json")
        self.bad("train", "--config", config, says=["cache-good", "tokenizer"])
        self.bad("data", "batch", "--step", "0", "--config", config, says=["cache-good", "tokenizer"])
        # With a store of its own, but under a run with the first tokenizer.
        self.copy("vocab2")
        config = self.w.config("vocab2", STEPS, EVERY, data__tokenizer="small.json")
        self.bad("train", "--config", config, says=["runs/vocab2", "tokenizer"])
        self.bad("eval", "--checkpoint", "runs/good/checkpoints/step-00000020", "--config", config,
                 says=["300", "290"])
        (self.w.root / "broken.json").write_text('{"version": "1.0"')
        config = self.w.config("vocab3", STEPS, EVERY, data__tokenizer="broken.json")
        self.bad("train", "--config", config, says=["broken.json"])

    def checkpoint_of_another_config(self):
        wide = self.w.config("wide", STEPS, EVERY, data__cache_dir="cache-good", model__hidden_dim=32)
        self.w.train(wide)
        where = "runs/wide/checkpoints/step-00000020"
        self.bad("eval", "--checkpoint", where, "--config", self.config, says=["step-00000020", "32", "16"])
        config, run = self.copy("foreign")
        shutil.rmtree(run / "checkpoints" / "step-00000020")
        shutil.copytree(self.w.root / where, run / "checkpoints" / "step-00000020")
        # It is another run's state: training goes on from the run's own, and says so.
        self.bad("export", "--checkpoint", "runs/foreign", "--to", "hf", "--out", "foreign-hf",
                 says=["step-00000020", "forged"])
        text = self.train_equal("foreign", config)
        check("step-00000020" in text and "forged" in text, f"nothing is said of the other run's state:\n{text}")

    # Verifying from wherever the user is.

    def verify_from_elsewhere(self):
        """Needs neither the directory of the start nor the texts; a moved store is found by --cache alone."""
        elsewhere = self.w.root / "elsewhere"
        elsewhere.mkdir()
        config = self.w.config("away", STEPS, EVERY)
        (self.w.root / "own.json").write_bytes((self.w.root / "tokenizer.json").read_bytes())
        shutil.copytree(self.w.root / "corpus", self.w.root / "own-corpus")
        self.w.train(config, "--data.tokenizer", "own.json", "--data.train_urls", "[own-corpus/*.txt]")
        (self.w.root / "own.json").unlink()
        shutil.rmtree(self.w.root / "own-corpus")
        run = str(self.w.root / "runs" / "away")
        check("equal" in self.w.good("verify", run, cwd=elsewhere), "does not verify from another directory")
        check("equal" in self.w.good("verify", "runs/away"), "does not verify from the directory it was started in")
        (self.w.root / "cache-away").rename(self.w.root / "moved")
        self.w.verdict("cannot check", run, cwd=elsewhere, says=[f"{self.w.root}/cache-away", "cache-away:", "--cache"])
        check(not (elsewhere / "cache-away").exists(), "verify made a folder")
        check("equal" in self.w.good("verify", run, "--cache", "../moved", cwd=elsewhere), "not with --cache")
        self.w.verdict("cannot check", run, "--cache", "../nowhere", cwd=elsewhere, says=["../nowhere"])
        # Another data set where the run's was: not taken for it.
        write_corpus(self.w.root / "corpus2", seed=8)
        other = self.w.config("away2", STEPS, EVERY, data__cache_dir="cache-away", data__train_urls=["corpus2/*.txt"])
        self.w.good("data", "build", "--config", other)
        self.w.verdict("cannot check", run, cwd=elsewhere, says=[
            "cache-away", "another data set", "--cache", "it lacks what the run read from own-corpus/",
            "it has what the run did not read, from corpus2/"])
        shutil.copytree(self.w.root / "moved", elsewhere / "cache-away")
        check("equal" in self.w.good("verify", run, cwd=elsewhere), "does not go on to the second place")
        # A run without a readable record, and without its copy of the tokenizer.
        (self.w.root / "runs" / "away" / "run.json").unlink()
        check("equal" in self.w.good("verify", run, cwd=elsewhere), "does not verify without run.json")
        (self.w.root / "runs" / "away" / "tokenizer.json").unlink()
        self.w.verdict("cannot check", run, cwd=elsewhere, says=["tokenizer.json", "own.json"])
        shutil.copy(self.w.root / "tokenizer.json", elsewhere / "own.json")
        check("equal" in self.w.good("verify", run, cwd=elsewhere), "does not take the config's tokenizer")

    # A run whose files are taken away while it writes to them.

    def lost_files(self):
        """A chain, or the whole folder, that is removed or moved: an error, and no run hash."""
        def removed(run):
            (run / "chain.jsonl").unlink()

        def replaced(run):
            text = (run / "chain.jsonl").read_bytes()
            (run / "chain.jsonl").unlink()
            (run / "chain.jsonl").write_bytes(text)

        for accident in (removed, replaced, shutil.rmtree, lambda run: run.rename(run.parent / "elsewhere")):
            config = self.w.config("lost", STEPS, EVERY, data__cache_dir="cache-good")
            run = self.w.root / "runs" / "lost"
            process = self.w.start("train", "--config", config, env={"OSTRO_EXECUTOR": "interpreter"})
            wait_for(lambda: self.w.chain_lines("lost") > 1, 120, "step 1")
            accident(run)
            out, err = process.communicate(timeout=120)
            check(process.returncode == 1 and "run hash" not in out, f"exit status {process.returncode}\n{out}{err}")
            check("chain.jsonl" in err and "removed, moved or replaced while" in err, err)
            for left in (run, run.parent / "elsewhere"):
                shutil.rmtree(left, ignore_errors=True)
        # Without its chain nothing says that a checkpoint is not forged.
        _, run = self.copy("unchained")
        (run / "chain.jsonl").unlink()
        self.bad("export", "--checkpoint", "runs/unchained", "--to", "hf", "--out", "unchained-hf",
                 says=["runs/unchained/chain.jsonl is gone", "--unchecked"])
        self.w.verdict("cannot check", "runs/unchained", says=["chain.jsonl"])

    # Damage.

    def damaged_checkpoint(self):
        """Every kind of file and of damage: the checkpoint before is taken, the chain ends up the same."""
        config, run = self.copy("damaged")
        newest = run / "checkpoints" / "step-00000020"
        array = next(newest.glob("model/layers/mlp/down/weight/c*"))
        files = [newest / "manifest.json", array, array.parent / "zarr.json"]
        for file in files:
            for name, damage in DAMAGES.items():
                if name == "absent" and file == files[0]:
                    continue  # a directory without a manifest is an unfinished save; removed below
                damage(file)
                self.warned(self.train_equal("damaged", config), "step-00000020", "damaged")
        for k in (15, 20):
            zero(run / "checkpoints" / f"step-{k:08}" / "manifest.json")
        text = self.train_equal("damaged", config)
        check("after step 10" in text and text.count("is damaged") == 2, f"not the checkpoint of step 10:\n{text}")
        for folder in (run / "checkpoints").iterdir():
            flip(folder / "manifest.json")
        self.bad("train", "--config", config, says=["none of the 4 checkpoints can be used"])
        self.equal("damaged")
        shutil.rmtree(run / "checkpoints")
        self.train_equal("damaged", config)

    def damaged_chain(self):
        config, run = self.copy("chain")
        chain, whole = run / "chain.jsonl", self.w.chain("good")
        chain.write_bytes(whole[:700] + b"X" + whole[701:])
        self.bad("train", "--config", config, says=["chain.jsonl"])
        chain.write_bytes(whole)
        self.train_equal("chain", config)

    def damaged_record(self):
        config, run = self.copy("record")
        flip(run / "run.json")
        self.warned(self.train_equal("record", config), "run.json")
        log = (run / "log.txt").read_text()
        check(log.count(" warning the record of earlier sessions is lost") == 1, f"the warning is not in the log:\n{log}")

    def damaged_store(self):
        config = self.w.config("store", STEPS, EVERY)
        self.w.good("data", "build", "--config", config)
        cache = self.w.root / "cache-store"
        shard = next(p for p in (cache / "train").rglob("*") if p.is_file() and "zarr.json" != p.name and
                     "data" in str(p.relative_to(cache)))
        for file in (shard, shard.parent.parent / "zarr.json", cache / "ledger.json"):
            if not file.exists():
                file = next(shard.parent.parent.rglob("zarr.json"))
            good = file.read_bytes()
            for damage in DAMAGES.values():
                damage(file)
                status, out, err = self.w.run("train", "--config", config)
                if file.exists() or status:
                    errors = [line for line in err.splitlines() if line.startswith("error: ")]
                    check(status in (1, 2) and len(errors) == 1, f"{file}: status {status}\n{out}{err}")
                    check("cache-store" in errors[0] and "delete" in errors[0], f"{file}: {errors[0]}")
                    print(f"    {errors[0][:200]}")
                    left = [n for n in ("run.json", "chain.jsonl") if (self.w.root / "runs" / "store" / n).exists()]
                    check(not left, f"{file}: no step was done, and the directory holds a run: {left}")
                file.write_bytes(good)
                shutil.rmtree(self.w.root / "runs" / "store", ignore_errors=True)
        self.train_equal("store", config)

    # Places.

    def full_disk(self):
        with mounted(self.w.root / "small", "-t", "tmpfs", "-o", "size=8m", "tmpfs") as place:
            config = self.w.config("full", STEPS, EVERY, data__cache_dir="cache-good", trainer__log_dir=str(place))
            ballast = place / "ballast"
            # A whole run takes about 4600 KiB; these leave room for three checkpoints, for one and for none.
            for kib in (4200, 6000, 7600):
                ballast.write_bytes(bytes(kib * 1024))
                self.bad("train", "--config", config, says=["No space left on device", str(place)])
                ballast.unlink()
                shutil.rmtree(place / "full", ignore_errors=True)
            # Full after the first checkpoint: what was saved is still good when there is room again.
            process = self.w.start("train", "--config", config, env={"OSTRO_FAILPOINT": "snapshot:2"})
            process.communicate()
            with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            self.bad("train", "--config", config, says=["No space left on device"])
            ballast.unlink()
            self.w.train(config)
            check((place / "full" / "chain.jsonl").read_bytes() == self.w.chain("good"), "the chain differs")
            check(not list((place / "full" / "checkpoints").glob("*.tmp")), "an unfinished save was left behind")

    def lab_full_disk(self):
        """A disk that is full in the middle of a lab: one clear error each, and with room again the same command ends with the hash of an undisturbed lab."""
        with mounted(self.w.root / "labdisk", "-t", "tmpfs", "-o", "size=16m", "tmpfs") as place:
            def lab(top):
                for folder in ("texts", "held"):
                    (top / folder).mkdir(parents=True)
                for number, file in enumerate(sorted((self.w.root / "corpus").glob("*.txt"))):
                    shutil.copy(file, top / ("texts" if number else "held") / file.name)
                (top / "plan.yaml").write_text(LAB)
                (top / "tiny.yaml").write_text(LAB_CONFIG)
                return ("lab", "run", str(top / "plan.yaml"))

            def size(top):
                return sum(4096 + path.stat().st_size // 4096 * 4096 + 4096 for path in top.rglob("*"))

            words = lab(self.w.root / "labhere")
            def hash_of(out):
                return next(line for line in out.splitlines() if line.startswith("lab hash: "))

            wanted = hash_of(self.w.good(*words))
            needs, words = size(self.w.root / "labhere" / "full.lab"), lab(place / "lab")
            ballast, failed = place / "ballast", 0
            for share in (0, 0.1, 0.2, 0.3, 0.4, 0.5):
                shutil.rmtree(place / "lab" / "full.lab", ignore_errors=True)
                ballast.write_bytes(b"")
                free = shutil.disk_usage(place).free
                ballast.write_bytes(bytes(max(0, free - int(share * needs))))
                status, out, err = self.w.run(*words)
                if status == 0:
                    break  # it had room for all
                errors = [line for line in err.splitlines() if line.startswith("error: ")]
                check(status == 1 and errors and all("No space left on device" in line for line in errors) and "another process" not in err,
                      f"room for {share} of the lab: status {status}\n{out}{err}")
                print(f"    {errors[0][:260]}")
                failed += any("plan.yaml:" in line and ": step " in line for line in errors)
            check(failed >= 2, f"a step failed in {failed} runs")
            ballast.unlink()
            out = self.w.good(*words)
            check(hash_of(out) == wanted, f"after full disks: {out}\nundisturbed: {wanted}")
            check("\nrun " not in self.w.good(*words, "--check", "full"), "what was done is not whole")
            check(not [path for path in (place / "lab").rglob("*.tmp")], "an unfinished file was left")

    def limit_of_a_file(self):
        """`ulimit -f` is an error that names the file, and no signal; without it the same command goes on."""
        config = self.w.config("limited", 20, 5)
        words = [self.w.ostro, "train", "--config", config]
        done = subprocess.run(words, cwd=self.w.root, env=self.w.env, capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        check(done.returncode == 1 and "File too large" in done.stderr, f"exit {done.returncode}: {done.stderr}")
        self.w.good(*words[1:])

    def models_for_records(self):
        """A published model where a run or checkpoint is wanted, and an export into a folder that holds something else."""
        self.w.good("export", "--checkpoint", "runs/good", "--to", "hf", "--out", "published")
        for words in (("inspect",), ("hash",), ("status",), ("inspect", "--plot")):
            self.w.bad(words[0], "published", *words[1:], says=["published is a model without a record", "ostro export --checkpoint RUN"])
        self.w.verdict("incomplete", "published", says=["the record is needed", "ostro verify RUN --model published"])
        (self.w.root / "published/provenance.json").unlink()
        self.w.verdict("cannot check", "published", says=["published has no provenance.json", "ostro verify RUN --model published"])
        self.w.bad("sample", "--checkpoint", "published", "--prompt", "a", "--max_new_tokens", "1", says=["ostro import makes a checkpoint"])
        (self.w.root / "mine").mkdir()
        (self.w.root / "mine/notes.txt").write_text("mine")
        self.w.bad("export", "--checkpoint", "runs/good", "--to", "hf", "--out", "mine", says=["--out mine: holds notes.txt"])

    def unwritable_run_directory(self):
        config = self.w.config("blocked", STEPS, EVERY, data__cache_dir="cache-good")
        (self.w.root / "runs" / "blocked").write_text("in the way")
        self.bad("train", "--config", config, says=["runs/blocked"])
        (self.w.root / "runs" / "blocked").unlink()
        self.train_equal("blocked", config)

    def read_only_run_directory(self):
        with mounted(self.w.root / "ro", "-t", "tmpfs", "-o", "size=64k,ro", "tmpfs") as place:
            config = self.w.config("ro", STEPS, EVERY, data__cache_dir="cache-good", trainer__log_dir=str(place))
            self.bad("train", "--config", config, says=[str(place), "Read-only"])

    def second_process(self):
        config = self.w.config("twice", 40, EVERY, data__cache_dir="cache-good")
        first = self.w.start("train", "--config", config, env={"OSTRO_EXECUTOR": "interpreter"})
        wait_for(lambda: self.w.chain_lines("twice") > 1, 60, "the first step")
        self.bad("train", "--config", config, says=["another process works on this run", f"process {first.pid}"])
        first.kill()
        first.communicate()
        self.w.train(config)  # the lock went with its owner

    # Corpora.

    def odd_texts(self):
        """Malformed UTF-8 and empty files are read and counted; the run is like any other."""
        write_corpus(self.w.root / "odd", files=6)
        (self.w.root / "odd" / "empty.txt").write_bytes(b"")
        (self.w.root / "odd" / "malformed.txt").write_bytes(b"good \xff\xfe\xc3( bad \xed\xa0\x80 end " * 40)
        config = self.w.config("odd", STEPS, EVERY, data__train_urls=["odd/*.txt"])
        text = self.w.good("data", "build", "--config", config)
        check("1 empty" in text and "1 documents with malformed UTF-8" in text, f"not told:\n{text}")
        self.w.train(config)
        (self.w.root / "odd.jsonl").write_text('{"text": "fine"}\n{"text": \n')
        config = self.w.config("json", STEPS, EVERY, data__train_urls=["odd.jsonl"])
        self.bad("train", "--config", config, says=["odd.jsonl", "2"])

    def small_corpus(self):
        (self.w.root / "tiny").mkdir()
        (self.w.root / "tiny" / "a.txt").write_text("too little")
        config = self.w.config("tiny", STEPS, EVERY, data__train_urls=["tiny/*.txt"], data__validation_fraction=0.0)
        self.bad("train", "--config", config, says=["6"])
        (self.w.root / "tiny" / "a.txt").write_text("")
        shutil.rmtree(self.w.root / "cache-tiny", ignore_errors=True)
        self.bad("train", "--config", config, says=["cache-tiny"])
        config = self.w.config("none", STEPS, EVERY, data__train_urls=["nowhere/*.txt"])
        self.bad("train", "--config", config, says=["data.train_urls", "nowhere/*.txt"])

    def workers_that_end_at_once(self):
        """Replaced a few times, and no step being done, no more; one that does steps is replaced as often as needed."""
        config = self.w.config("ends", STEPS, EVERY, data__cache_dir="cache-good")
        words = ["launch", "local", "--workers", "1", "--config", config]
        line = self.bad(*words, says=["was killed by signal 6", "5 workers were replaced already while no step was done",
                                      "giving up", "last words", "OSTRO_FAULT", "nonsense"],
                        env={"OSTRO_FAULT": "nonsense"})
        check("\n" not in line, line)
        self.train_equal("ends", config)

    def resources_of_workers(self):
        for text in ("{slot: 1}", "[1]", '{"slot": "one"}', '{"slot": -1}'):
            self.bad("launch", "ray", "--config", self.config, "--min_workers", "1", "--max_workers", "1",
                     "--resources_per_worker", text, says=["--resources_per_worker", text, "amounts"])

    # Kernels.

    def no_compiler(self):
        config = self.w.config("nocc", STEPS, EVERY, data__cache_dir="cache-good")
        (self.w.root / "empty-path").mkdir()
        env = {"PATH": str(self.w.root / "empty-path"), "OSTRO_CACHE_DIR": str(self.w.root / "kernels-nocc")}
        self.warned(self.train_equal("nocc", config, env=env), "built-in loops", "C compiler")
        config = self.w.config("badcc", STEPS, EVERY, data__cache_dir="cache-good")
        self.warned(self.train_equal("badcc", config, env=env | {"OSTRO_CC": "/nonexistent/cc"}),
                    "built-in loops", "/nonexistent/cc")
        config = self.w.config("othercc", STEPS, EVERY, data__cache_dir="cache-good")
        self.warned(self.train_equal("othercc", config, env={"OSTRO_CC_OPT": "-march=nonesuch"}),
                    "built-in loops", "nonesuch", "OSTRO_CC")

    def kernel_cache(self):
        """Damaged objects are compiled again; a cache that cannot be written does without."""
        kernels = self.w.root / "kernels" / "kernels"
        # The cache is emptied first: what the run then makes is what every such run needs.
        damages = [("absent", DAMAGES["absent"])] + [item for item in DAMAGES.items() if item[0] != "absent"]
        for name, damage in damages:
            for file in kernels.glob("*.so"):
                damage(file)
            damaged = set(kernels.glob("*.so"))
            check(not any(map(sealed, damaged)), f"{name}: no damage was done")
            config = self.w.config(f"kernels-{name}", STEPS, EVERY, data__cache_dir="cache-good")
            self.train_equal(f"kernels-{name}", config)
            if name == "absent":
                needed = set(kernels.glob("*.so"))
                check(needed, "no generated kernels: is there a C compiler?")
            check(damaged <= needed == set(kernels.glob("*.so")), f"{name}: other kernels than before")
            # An object that was loaded with its damage would not have been made again.
            left = [file.name for file in needed if not sealed(file)]
            check(not left, f"{name}: {len(left)} of {len(needed)} kernels were not made again: {left}")
        (self.w.root / "file").write_text("")
        config = self.w.config("nocache", STEPS, EVERY, data__cache_dir="cache-good")
        place = str(self.w.root / "file" / "cache")
        self.warned(self.train_equal("nocache", config, env={"OSTRO_CACHE_DIR": place}), "are not kept", place)

    def read_only_kernel_cache(self):
        with mounted(self.w.root / "rocache", "-t", "tmpfs", "-o", "size=4m", "tmpfs") as place:
            shutil.copytree(self.w.root / "kernels" / "kernels", place / "kernels")
            subprocess.run(["mount", "-o", "remount,ro", place], check=True)
            # Nothing can be compiled: the kernels are read, or a warning tells that they are missed.
            env = {"OSTRO_CACHE_DIR": str(place), "TMPDIR": str(self.w.root / "corpus" / "00.txt")}
            config = self.w.config("rocache", STEPS, EVERY, data__cache_dir="cache-good")
            text = self.train_equal("rocache", config, env=env)
            check("built-in loops" not in text, f"the cache is not read:\n{text}")
            config = self.w.config("rocache2", STEPS, EVERY, data__cache_dir="cache-good")
            self.warned(self.train_equal("rocache2", config, env=env | {"OSTRO_CC_OPT": "-O2"}), "built-in loops")

    def unfit_kernel_cache(self):
        """Folders that allow no execution, or have no space for kernels, are told and done without."""
        with mounted(self.w.root / "noexec", "-t", "tmpfs", "-o", "noexec", "tmpfs") as place:
            config = self.w.config("noexec", STEPS, EVERY, data__cache_dir="cache-good")
            self.warned(self.train_equal("noexec", config, env={"OSTRO_CACHE_DIR": str(place)}),
                        "are not kept", str(place), "does not load")
            left = list(place.rglob("tmp-*"))
            check(not left, f"unfinished work stays behind: {left}")
        with mounted(self.w.root / "full", "-t", "tmpfs", "-o", "size=32k", "tmpfs") as place:
            config = self.w.config("full", STEPS, EVERY, data__cache_dir="cache-good")
            env = {"OSTRO_CACHE_DIR": str(place), "TMPDIR": str(place)}
            self.warned(self.train_equal("full", config, env=env), "built-in loops", str(place), "No space left")
            left = [p for p in place.rglob("*") if p != place / "kernels"]
            check(not left, f"unfinished work stays behind: {left}")


def sealed(kernels):
    """Whether compiled kernels end with the hash of all before it, as ostro/base/object_cache.cc does it."""
    data = kernels.read_bytes()
    return hashlib.sha256(data[:-64]).hexdigest().encode() == data[-64:]


def truncate(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def zero(file):
    file.write_bytes(bytes(file.stat().st_size))


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


DAMAGES = {"truncated": truncate, "zeroed": zero, "flipped": flip, "absent": pathlib.Path.unlink}


if __name__ == "__main__":
    sys.exit(run_cases(Cases, helpers=("warned", "copy", "equal", "train_equal")))
