"""Bundles: what all cases of bundle_test.py share: two runs and their bundles, B (signed) and O, and what verify must say of one.

B and O stay as they are, each case changes a copy. The cases are methods of the classes in the bundle_*.py beside this
file; no method here is one. reseal and the functions beside it make hashes fit again, as a forger would.
"""

import json
import pathlib
import shutil
import subprocess

import forger
from harness import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS, EVERY = 12, 4
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


class Bundles:
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
