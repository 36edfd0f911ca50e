#!/usr/bin/env python3
"""Bundles: an honest one passes every check, is signed and stamped so that OpenSSL's own tool agrees, and can be gone on
with. What was changed in one is found and named, however many of its hashes were made to fit again.

    bundle_test.py --ostro BINARY [--positions N] [--kill_times N] [--seed N] [CASE...]
"""

import argparse
import fcntl
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/suite"))
import forger
import seed
from harness import Failure, Skip, Workspace, check, killed, mounted

STEPS, EVERY = 12, 4
HELPERS = ("altered", "openssl", "publish", "copy", "found", "stamp", "options_of_b", "same_as_b", "other_program")
TSA = """
[req]
distinguished_name = name
[name]
[tsa]
extendedKeyUsage = critical,timeStamping
[ca]
basicConstraints = critical,CA:true
[service]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
"""


def reseal(bundle):
    """bundle.json and SHA256SUMS of what lies there, as publish writes them; the signature goes."""
    manifest = json.loads((bundle / "bundle.json").read_text())
    files = {}
    for path in sorted(p for p in bundle.rglob("*") if p.is_file()):
        name = path.relative_to(bundle).as_posix()
        if not name.startswith("bundle.json") and name != "SHA256SUMS":
            files[name] = {"bytes": path.stat().st_size, "sha256": forger.sha(path.read_bytes())}
    manifest["files"] = files
    write_manifest(bundle, manifest)


def write_manifest(bundle, manifest):
    for end in (".sig", ".pub", ".tsq", ".tsr"):
        (bundle / f"bundle.json{end}").unlink(missing_ok=True)
    text = (forger.canonical(manifest) + "\n").encode()
    (bundle / "bundle.json").write_bytes(text)
    sums = {"bundle.json": forger.sha(text)} | {name: file["sha256"] for name, file in manifest["files"].items()}
    (bundle / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))


def fit_provenance(bundle):
    """The hashes in provenance.json of what lies there."""
    path = bundle / "provenance.json"
    made = json.loads(path.read_text())
    for name in made["files"]:
        data = (bundle / name).read_bytes()
        made["files"][name] = {"bytes": len(data), "sha256": forger.sha(data)}
    path.write_text(forger.canonical(made) + "\n")


class Cases:
    def __init__(self, workspace, rng, positions, kill_times):
        self.w, self.rng, self.positions, self.kill_times = workspace, rng, positions, kill_times
        self.root = workspace.root
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", "key.pem")
        self.openssl("pkey", "-in", "key.pem", "-pubout", "-out", "key.pub")
        workspace.train(workspace.config("good", STEPS, EVERY, data__cache_dir="cache"))
        workspace.train(workspace.config("other", STEPS, EVERY, data__cache_dir="cache", trainer__seed=5))
        self.publish("good", "B", "--sign", "key.pem", "--checkpoints", "1", "--time_request", "--license", "mit",
                     "--license_file", "corpus/00.txt")
        self.publish("other", "O", "--checkpoints", "1")

    def options_of_b(self, out):
        """The command that makes the bundle B, under another name."""
        return ("publish", "runs/good", "--out", out, "--sign", "key.pem", "--checkpoints", "1", "--time_request", "--license",
                "mit", "--license_file", "corpus/00.txt")

    def same_as_b(self, out):
        subprocess.run(["diff", "-r", "B", out], cwd=self.root, check=True)

    def other_program(self, bundle, word, says=""):
        """The verdict of tools/verify_chain.py, which needs NumPy."""
        if not (ROOT / ".venv/installed.sha256").exists():
            return print("    not compared with tools/verify_chain.py: .venv is not set up (scripts/setup.sh --python)")
        done = subprocess.run([ROOT / "scripts/venv_python.sh", ROOT / "tools/verify_chain.py", self.root / bundle],
                              capture_output=True, text=True)
        code = {"equal": 0, "differs": 1, "incomplete": 3, "cannot check": 4}[word]
        check(done.returncode == code and says in done.stdout, f"verify_chain.py {bundle}: {done.stdout}{done.stderr}")
        return None

    def openssl(self, *words, good=True):
        done = subprocess.run(["openssl", *words], cwd=self.root, capture_output=True, text=True)
        check((done.returncode == 0) == good, f"openssl {words}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def publish(self, run, out, *words):
        text = self.w.good("publish", f"runs/{run}", "--out", out, *words)
        check(not list(self.root.glob("*.publishing")), "a directory was left beside the bundle")
        return text

    def copy(self, name, of="B"):
        shutil.rmtree(self.root / name, ignore_errors=True)
        shutil.copytree(self.root / of, self.root / name)
        return self.root / name

    def found(self, word, bundle, *words, says):
        """verify of the bundle ends with this verdict, and one of its findings has all of `says`."""
        out = self.w.verdict(word, bundle, *words)
        findings = out.split("shown:\n")[0].splitlines()
        check(any(all(part in line for part in says) for line in findings), f"{bundle}: no finding with {says}:\n{out}")

    def honest(self):
        text = self.w.verdict("equal", "B", "--key", "key.pub", says=["files, the record, the weights and the ledger"])
        for words in ("as given", "states after steps", "roots of rows", "every byte of", "not shown:", "--sample"):
            check(words in text, text)
        head = self.w.good("hash", "runs/good").strip()
        self.w.verdict("equal", "B", "--bundle", "--run_hash", head, env={"OSTRO_THREADS": "3"})
        self.found("differs", "B", "--run_hash", "0" * 64, says=["the run hash", head])
        result = json.loads(self.w.good("verify", "B", "--json"))
        check((result["verdict"], result["run_hash"], result["step"]) == ("equal", head, STEPS), result)
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=self.root / "B", check=True)
        self.openssl("pkeyutl", "-verify", "-pubin", "-inkey", "key.pub", "-rawin", "-in", "B/bundle.json", "-sigfile",
                     "B/bundle.json.sig")
        # A bundle is a function of the run and the options.
        self.w.good(*self.options_of_b("again"))
        self.same_as_b("again")
        record = (self.root / "B/record/run.json").read_text()
        check(str(self.root) not in record and "--config" not in record, record)
        card = (self.root / "B/README.md").read_text()
        check(card.startswith("---\nlicense: mit\n") and head in card and "No hash of the chain covers them" in card, card)

    def other_forms(self):
        self.publish("good", "small", "--parameters_only", "--checkpoints", "1", "--dtype", "bf16", "--shard_size", "30000")
        self.w.verdict("equal", "small", says=["files, the record"])
        self.w.bad("fork", "small/record", "--step", str(STEPS), "--out", "runs/none", "--trainer.log_dir", "runs",
                   "--trainer.num_train_steps", str(STEPS + 1), says=["moments were left out", "trainer.initialize_from"])
        shutil.rmtree(self.root / "small/record/checkpoints/step-00000012/model/embedding")
        reseal(self.root / "small")
        self.w.verdict("differs", "small")
        self.publish("good", "bare", "--without_ledger")
        self.found("incomplete", "bare", says=["no ledger"])
        shutil.move(self.root / "cache", self.root / "moved")
        self.w.bad("publish", "runs/good", "--out", "none", says=["token store", "--cache", "--without_ledger"])
        self.publish("good", "elsewhere", "--cache", "moved")
        shutil.move(self.root / "moved", self.root / "cache")
        self.w.bad("publish", "runs/good", "--out", "B", says=["B", "is there already"])
        self.w.bad("publish", "runs/good", "--out", "none", "--sign", "key.pub", says=["key.pub", "genpkey"])
        self.w.bad("publish", "runs/good", "--out", "none", "--license", "a b", says=["--license", "a b"])
        self.w.bad("publish", "runs/none", "--out", "none", says=["runs/none"])
        check(not (self.root / "none").exists(), "a refused publication left a directory")
        self.w.bad("verify", "B", "--to_step", "3", says=["--to_step", "B/record"])
        self.w.bad("verify", "runs/good", "--key", "key.pub", says=["--key", "runs/good"])

    def bytes(self):
        """Any byte of any file. Half of the draws are over files, half over bytes."""
        bundle = self.copy("bytes")
        self.stamp(bundle)
        with open(bundle / "SHA256SUMS", "a") as sums:
            sums.write(f"{forger.sha((bundle / 'bundle.json.tsr').read_bytes())}  bundle.json.tsr\n")
        files = sorted(p for p in bundle.rglob("*") if p.is_file() and p.stat().st_size)
        sizes = [p.stat().st_size for p in files]
        few = [p for p in files if "checkpoints" not in p.parts]
        for i in range(self.positions):
            path = self.rng.choice(few) if i % 2 else self.rng.choices(files, sizes)[0]
            data = path.read_bytes()
            at, bit = self.rng.randrange(len(data)), 1 << self.rng.randrange(8)
            path.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1:])
            status, out, err = self.w.run("verify", "bytes")
            path.write_bytes(data)
            check(status in (1, 3, 4) and not err, f"bit {bit} of byte {at} of {path}: exit status {status}\n{out}{err}")
        self.w.verdict("equal", "bytes")

    def files(self):
        bundle = self.copy("files")
        (bundle / "more.txt").write_text("x")
        self.found("differs", "files", says=["files/more.txt", "not listed"])
        (bundle / "more.txt").rename(bundle / "bundle.json.more")
        self.found("differs", "files", says=["files/bundle.json.more"])
        (bundle / "bundle.json.more").unlink()
        (bundle / "model.safetensors").unlink()
        self.found("incomplete", "files", says=["model.safetensors is missing"])
        (bundle / "bundle.json").unlink()
        self.found("incomplete", "files", "--bundle", says=["bundle.json", "No such file"])

    def strange(self):
        """Files that no bundle has, and lists that say what is not there: a verdict soon, and nothing else is hidden by it."""
        text = self.w.verdict("equal", "B")
        check("run hash" in text and "as given" not in text, text)
        check("made_by of bundle.json" in text, text)
        self.w.verdict("equal", "B", "--model", "B", says=["every byte of"])
        loops = self.copy("loops")
        for name in ("one", "two"):
            (loops / name).symlink_to(".")
        self.found("differs", "loops", says=["loops/one", "link to a directory"])
        broken = self.copy("broken")
        (broken / "README.md").unlink()
        (broken / "README.md").symlink_to("nowhere")
        (broken / "config.json").write_text("{}")
        self.found("differs", "broken", says=["README.md"])
        self.found("differs", "broken", says=["config.json", "bytes"])
        for name in ("SHA256SUMS", "bundle.json", "bundle.json.tsr", "ledger/train.sources"):
            large = self.copy("large")
            with open(large / name, "ab") as file:
                file.truncate(16 << 30)  # sparse
            self.found("differs", "large", says=[name, f"{16 << 30} bytes"])
        for key, value, says in (("checkpoints", [EVERY - 1, EVERY, STEPS], f"after step {EVERY - 1}"),
                                 ("licenses", {"files": ["LICENSE.none"], "id": "mit"}, "LICENSE.none")):
            lie = self.copy("lie")
            write_manifest(lie, json.loads((lie / "bundle.json").read_text()) | {key: value})
            self.found("differs", "lie", says=["bundle.json", says])
        for more in (40, 7):
            rows = self.copy("rows")
            with open(rows / "ledger/train.rows", "ab") as file:
                file.write(bytes(more))
            reseal(rows)
            self.found("differs", "rows", says=["train.rows", "rows"])
        # A run's directory with a model in it is both.
        both = self.root / "runs/both"
        shutil.copytree(self.root / "runs/good", both)
        for path in (self.root / "B").iterdir():
            if path.is_file() and not path.name.startswith("bundle") and not (both / path.name).exists():
                shutil.copy(path, both)
        text = self.w.verdict("equal", "runs/both", "--no_replay")
        check("every byte of" in text, text)
        data = bytearray((both / "model.safetensors").read_bytes())
        data[-2] ^= 1
        (both / "model.safetensors").write_bytes(data)
        self.found("differs", "runs/both", "--no_replay", says=["model.safetensors", "weight"])
        check(json.loads(self.w.run("verify", "runs/both", "--no_replay", "--json")[1])["verdict"] == "differs", "JSON")
        (both / "model.safetensors").unlink()
        self.found("incomplete", "runs/both", "--no_replay", says=["model.safetensors is missing"])
        adapter = self.root / "adapter"
        adapter.mkdir()
        (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": null}')
        text = self.w.run("verify", "runs/good", "--model", "adapter")[1]
        check(text.split(":")[0] in ("differs", "incomplete", "cannot check"), text)

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

    def stamp(self, bundle, folder="tsa"):
        """Answers the bundle's request as a service does, with certificates of its own."""
        place = self.root / folder
        if not place.exists():
            place.mkdir()
            (place / "conf").write_text(TSA.format(folder=place))
            (place / "serial").write_text("01\n")
            self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/ca.key", "-out",
                         f"{folder}/ca.pem", "-subj", "/CN=test authority", "-config", f"{folder}/conf", "-extensions", "ca")
            self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/key", "-out", f"{folder}/req",
                         "-subj", "/CN=test service", "-config", f"{folder}/conf")
            self.openssl("x509", "-req", "-in", f"{folder}/req", "-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key",
                         "-set_serial", "2", "-days", "3", "-out", f"{folder}/cert", "-extfile", f"{folder}/conf",
                         "-extensions", "tsa")
        self.openssl("ts", "-reply", "-queryfile", str(bundle / "bundle.json.tsq"), "-out", str(bundle / "bundle.json.tsr"),
                     "-config", f"{folder}/conf", "-section", "service", "-signer", f"{folder}/cert", "-inkey",
                     f"{folder}/key")

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
        self.altered()
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

    def leftovers(self):
        """What lies where a bundle is made, and is no publication's, stays as it is."""
        victim, left = self.root / "victim", self.root / "left.publishing"
        victim.mkdir()
        (victim / "file").write_text("ostro, process 1")

        def folder(*made):
            left.mkdir()
            for make in made:
                make()

        foreign = [lambda: folder((left / "mine.txt").touch), lambda: folder((left / "new").mkdir), left.touch,
                   lambda: left.symlink_to("victim"), lambda: left.symlink_to("nowhere"),
                   lambda: folder(lambda: (left / "ostro.lock").write_text("mine")),
                   lambda: folder(lambda: (left / "ostro.lock").symlink_to("../victim/file"))]
        for make in foreign:
            make()
            before = subprocess.run(["ls", "-lR", "left.publishing", "victim"], cwd=self.root, capture_output=True).stdout
            self.w.bad("publish", "runs/good", "--out", "left", says=["left.publishing", "is there already", "--out"])
            after = subprocess.run(["ls", "-lR", "left.publishing", "victim"], cwd=self.root, capture_output=True).stdout
            check(before == after and not (self.root / "left").exists(), f"{before}\n{after}")
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        self.root.joinpath("left.importing").mkdir()
        self.root.joinpath("left.importing/mine.txt").touch()
        self.w.bad("import", "--from", "hf", "B", "--out", "left", says=["left.importing", "mine.txt", "--out"])
        # Of another program that is at work, and of one that was killed.
        folder((left / "new").mkdir)
        with open(left / "ostro.lock", "w") as file:
            file.write("ostro, process 1")
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)
            self.w.bad("publish", "runs/good", "--out", "left", says=["another command makes left", "process 1"])
        for name, to in (("one", "../../victim"), ("two", "nowhere")):
            (left / "new" / name).symlink_to(to)
        self.w.good(*self.options_of_b("left"))
        self.same_as_b("left")
        check((victim / "file").exists() and not left.exists(), "a link was followed, or a folder left")

    def kills(self):
        """Killed at any place, a publication left nothing under its name, or all; the next one needs no help."""
        begin = time.monotonic()
        self.w.good(*self.options_of_b("killed"))
        seconds = time.monotonic() - begin
        shutil.rmtree(self.root / "killed")
        whole = 0
        for point in [*range(1, 6), *[None] * self.kill_times]:
            if point is not None:
                status, out, err = self.w.run(*self.options_of_b("killed"), env={"OSTRO_FAILPOINT": f"new_directory:{point}"})
                check(killed(status), f"new_directory:{point} did not fire: {out}{err}")
            else:
                process = self.w.start(*self.options_of_b("killed"))
                time.sleep(self.rng.uniform(0, seconds))
                process.kill()
                process.communicate()
            if (self.root / "killed").exists():
                whole += 1
                self.same_as_b("killed")
                shutil.rmtree(self.root / "killed")
            self.w.good(*self.options_of_b("killed"))
            self.same_as_b("killed")
            check(not (self.root / "killed.publishing").exists(), "a folder was left")
            shutil.rmtree(self.root / "killed")
        check(whole >= 2, f"{whole} of the kills came after the directory had got its name")

    def full_disk(self):
        size = sum(p.stat().st_size for p in (self.root / "B").rglob("*") if p.is_file()) >> 10
        with mounted(self.root / "full", "-t", "tmpfs", "-o", "size=4k", "tmpfs") as place:
            for part in (4, *(self.rng.randrange(8, size, 4) for _ in range(3))):
                subprocess.run(["mount", "-o", f"remount,size={part}k", place], check=True)
                self.w.bad(*self.options_of_b("full/B"), says=["full/B", "No space left on device"])
                check(not list(place.iterdir()), f"{list(place.iterdir())} was left on a full disk of {part} kB")
            subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)
            self.w.good(*self.options_of_b("full/B"))
            self.same_as_b("full/B")

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

    def altered(self):
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


def main():
    names = [n for n in vars(Cases) if not n.startswith("_") and n not in HELPERS]
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--positions", type=int, default=60)
    parser.add_argument("--kill_times", type=int, default=3)
    parser.add_argument("--seed", type=int, default=seed.seed())
    parser.add_argument("cases", nargs="*", default=names, metavar="CASE")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    w = Workspace(args.ostro)
    failed = []
    try:
        cases = Cases(w, rng, args.positions, args.kill_times)
        for name in args.cases:
            begin = time.monotonic()
            try:
                getattr(cases, name)()
            except Skip as reason:
                print(f"  skipped: {name}: {reason}")
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                failed.append(name)
                print(f"  FAILED: {name}: {failure}")
            print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
    finally:
        w.close()
    print(f"FAILED: {failed}" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())
