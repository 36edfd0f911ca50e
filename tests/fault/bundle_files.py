"""BundleFiles: cases of bundle_test.py: honest bundles of every form, and files that were changed, added or taken away."""

import json
import shutil
import subprocess

import forger
from bundles import EVERY, STEPS, Bundles, reseal, write_manifest
from harness import check


class BundleFiles(Bundles):
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
