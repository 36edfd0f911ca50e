#!/usr/bin/env python3
"""Reads a publication of `ostro lab publish` with the packages that others read such files with: its RO-Crate by rocrate, its
Croissant by mlcroissant (both of PyPI). What they find there must be what publication.json says: files with their SHA-256, steps,
sources with licences. Files with a changed or removed hash, name or licence are the negative controls.

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
import urllib.parse

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


# Written after the manifest of files, so the crate has no hash of them.
OTHERS = ("ro-crate-metadata.json", "croissant.json", "provenance.json", "provenance.intoto.jsonl")


def as_list(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def crate_faults(found, manifest):
    """In what the crate that was read differs from publication.json."""
    faults = []
    for file, sums in manifest["files"].items():
        entity = found["entities"].get(file) or found["entities"].get(urllib.parse.quote(file), {})
        if file not in OTHERS and (entity.get("name"), entity.get("sha256")) != (file, sums["sha256"]):
            faults.append(f"{file}: has the name {entity.get('name')} and the SHA-256 {entity.get('sha256')}, and {sums['sha256']} was published")
    licences = {name: step["licence"] for name, step in manifest["steps"].items() if step.get("licence")}
    given = {e["name"].removeprefix("what ").removesuffix(" gave"): e["license"] for e in found["entities"].values()
             if "license" in e and str(e.get("name")).startswith("what ")}
    if given != licences:
        faults.append(f"licences of steps: {given}, published {licences}")
    return faults


def croissant_faults(found, manifest):
    """In what the files of sources that were read differ from publication.json."""
    sources = {name: step for name, step in manifest["steps"].items() if step["kind"] == "source"}
    wanted = sorted((f"{name}: {file['path']}", file["path"], file["sha256"]) for name, step in sources.items() for file in step["files"])
    given = sorted((name, file["url"], file["sha256"]) for name, file in found["files"].items())
    faults = [] if given == wanted and wanted else [f"files of sources: {given}, published {wanted}"]
    licences = {step["licence"] for step in sources.values()}
    if set(as_list(found["licences"])) != licences:
        faults.append(f"licences: {found['licences']}, published {sorted(licences)}")
    return faults


def check_crate(python, published, manifest):
    found = read(python, CRATE, published)
    check(isinstance(found, dict), f"rocrate does not read it: {found}")
    faults = crate_faults(found, manifest)
    check(not faults, f"the crate: {faults[:5]}")
    entities = found["entities"]
    hashed = len([file for file in manifest["files"] if file not in OTHERS])
    check(hashed > 10, f"only {hashed} files were published")
    actions = [e for e in entities.values() if e.get("@type") == "CreateAction"]
    check(len(actions) >= len([s for s in manifest["steps"].values() if s["kind"] != "source"]), f"{len(actions)} actions")
    return f"rocrate: {len(entities)} entities, {hashed} files with their SHA-256, {len(actions)} actions"


def check_croissant(python, published, manifest):
    found = read(python, CROISSANT, published / "croissant.json")
    check(isinstance(found, dict), f"mlcroissant does not read it: {found}")
    check(not found["errors"], found["errors"])
    faults = croissant_faults(found, manifest)
    check(not faults, f"the croissant: {faults}")
    return f"mlcroissant: {len(found['files'])} files of sources with their SHA-256"


def with_change(path, change, found):
    """What `found` reads of a JSON file of which one node was changed; then the file is as it was."""
    good = path.read_text()
    whole = json.loads(good)
    change(whole)
    path.write_text(json.dumps(whole))
    out = found()
    path.write_text(good)
    return out


def check_controls(python, published, manifest):
    """Every changed or removed hash, name and licence is found."""
    crate, croissant = published / "ro-crate-metadata.json", published / "croissant.json"
    name = next(file for file in manifest["files"] if file not in OTHERS)
    another = "0" * 64

    def node_of(whole):
        return next(node for node in whole["@graph"] if urllib.parse.unquote(node["@id"]) == name)

    for what, change in (("a changed hash", lambda whole: node_of(whole).update(sha256=another)), ("no hash", lambda whole: node_of(whole).pop("sha256")),
                         ("another name", lambda whole: node_of(whole).update(name="other")),
                         ("another licence", lambda whole: next(node for node in whole["@graph"] if node["@id"] != "./" and "license" in node).update(license="other"))):
        found = with_change(crate, change, lambda: read(python, CRATE, published))
        check(isinstance(found, list) or len(crate_faults(found, manifest)) == 1, f"control: a crate with {what} passes")
    for what, change in (("a changed hash", lambda whole: whole["distribution"][0].update(sha256=another)),
                         ("another path", lambda whole: whole["distribution"][0].update(contentUrl="other.txt")),
                         ("another licence", lambda whole: whole.update(license=["other"]))):
        found = with_change(croissant, change, lambda: read(python, CROISSANT, croissant))
        check(isinstance(found, list) or found["errors"] or croissant_faults(found, manifest), f"control: a croissant with {what} passes")


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
        check_controls(python, published, manifest)
        # And a crate that is none, and files without hashes.
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
