#!/usr/bin/env python3
"""Reads a publication of `ostro lab publish` with the packages that others read such files with: its RO-Crate by rocrate, its
Croissant by mlcroissant (both of PyPI). What they find there must be what publication.json says: files with their SHA-256, steps,
sources with licences. Changed files are the negative control.

    check_publication.py --ostro PROGRAM [--python FOLDER] [--log FILE]

By hand: the packages are 400 MB. FOLDER has a python3 with them (python3 -m venv V; V/bin/pip install rocrate==0.16.0
mlcroissant==1.1.1); without it, or where it lacks one, the test says SKIPPED. Nothing is fetched: the crate's context is in rocrate.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from lab_publish_test import make_lab  # noqa: E402
from program import Program, check  # noqa: E402

# Prints what the packages read, as JSON.
CRATE = """
import json, sys
from rocrate.rocrate import ROCrate
crate = ROCrate(sys.argv[1])
root = crate.root_dataset
entities = {e.id: {k: v for k, v in e.as_jsonld().items()} for e in crate.get_entities()}
print(json.dumps({"name": root.get("name"), "parts": [p.id for p in root.get("hasPart") or []], "entities": entities, "mentions": [m.id for m in root.get("mentions") or []]}))
"""
CROISSANT = """
import json, sys
import mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
issues = dataset.metadata.ctx.issues
files = {d.name: {"sha256": d.sha256, "url": d.content_url} for d in dataset.metadata.distribution}
print(json.dumps({"name": dataset.metadata.name, "files": files, "licences": dataset.metadata.license, "errors": [str(e) for e in issues.errors]}))
"""


def read(python, program, path):
    done = subprocess.run([python, "-c", program, str(path)], capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr.splitlines()[-1:]


def check_crate(python, published, manifest):
    found = read(python, CRATE, published)
    check(isinstance(found, dict), f"rocrate does not read it: {found}")
    entities = found["entities"]
    missing = [file for file in manifest["files"] if file not in entities and file not in ("ro-crate-metadata.json",)
               and file not in ("croissant.json", "provenance.json", "provenance.intoto.jsonl")]
    check(not missing, f"files that the crate lacks: {missing[:5]}")
    wrong = [file for file, sums in manifest["files"].items() if file in entities and "sha256" in entities[file]
             and entities[file]["sha256"] != sums["sha256"]]
    check(not wrong, f"other hashes in the crate: {wrong}")
    hashed = sum("sha256" in entities.get(file, {}) for file in manifest["files"])
    check(hashed > 10, f"only {hashed} files of the crate have a hash")
    actions = [e for e in entities.values() if e.get("@type") == "CreateAction"]
    check(len(actions) >= len([s for s in manifest["steps"].values() if s["kind"] != "source"]), f"{len(actions)} actions")
    return f"rocrate: {len(entities)} entities, {hashed} files with their SHA-256, {len(actions)} actions"


def check_croissant(python, published, manifest):
    found = read(python, CROISSANT, published / "croissant.json")
    check(isinstance(found, dict), f"mlcroissant does not read it: {found}")
    check(not found["errors"], found["errors"])
    wanted = {file["sha256"] for step in manifest["steps"].values() for file in step.get("files", [])}
    hashes = {file["sha256"] for file in found["files"].values()}
    check(hashes == wanted and wanted, f"files of sources: {sorted(hashes)}, published {sorted(wanted)}")
    return f"mlcroissant: {len(found['files'])} files of sources with their SHA-256"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--python", default=pathlib.Path(__file__).resolve().parents[2] / ".venv/bin")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    python = str(pathlib.Path(args.python) / "python3")
    versions = "import importlib.metadata as m; print('rocrate', m.version('rocrate'), 'mlcroissant', m.version('mlcroissant'))"
    there = pathlib.Path(python).exists() and subprocess.run([python, "-c", versions], capture_output=True, text=True, check=False)
    if not there or there.returncode != 0:
        print(f"SKIPPED: {python} lacks rocrate or mlcroissant: pip install rocrate==0.16.0 mlcroissant==1.1.1")
        return 77
    with tempfile.TemporaryDirectory(prefix="ostro-check-publication-") as folder:
        top = pathlib.Path(folder)
        make_lab(top / "lab")
        program = Program(args.ostro, top / "lab")
        program.run("lab", "register", "plan.yaml")
        program.run("lab", "run", "plan.yaml")
        published = top / "published"
        program.run("lab", "publish", "plan.yaml", "--out", str(published))
        manifest = json.loads((published / "publication.json").read_text())
        said = [there.stdout.strip(), check_crate(python, published, manifest), check_croissant(python, published, manifest)]
        # Controls: a crate that is none, and a file whose hash is no hash.
        crate = published / "ro-crate-metadata.json"
        good = crate.read_text()
        crate.write_text(good.replace("ro-crate-metadata.json", "other.json"))
        check(isinstance(read(python, CRATE, published), list), "control: rocrate reads what is no crate")
        crate.write_text(good)
        croissant = published / "croissant.json"
        croissant.write_text(croissant.read_text().replace("sha256", "sha265"))
        broken = read(python, CROISSANT, croissant)
        check(isinstance(broken, list) or broken["errors"], "control: mlcroissant reads files without hashes")
    for line in said:
        print(line)
    if args.log:
        with args.log.open("a") as file:
            file.write("\n".join(said) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
