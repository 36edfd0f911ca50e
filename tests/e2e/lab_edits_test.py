#!/usr/bin/env python3
"""Tests when `ostro lab run` skips a step, on a plan with every kind of step (lab_graph.py): drawn edits, each of which must run the
steps whose recipe is new and no other, with the outputs of a lab that is made from nothing; ways to tamper with outputs,
manifests and journal, each found and named; a kernel that computes wrongly, found by --audit.

    lab_edits_test.py --ostro PROGRAM [--other PROGRAM] [--log FILE]

--other is a program whose source differs in what it says to people: half of the runs are its. In full there are 200 edits, and
each state that they lead to is compared with a lab from nothing; the sample has 40, of which the last one is.
"""
import argparse
import collections
import copy
import hashlib
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile

from lab_graph import Graph, GraphLab, inputs_of, stand_in, write_journal
from program import check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402

FAULTY_CC = pathlib.Path(__file__).resolve().parent.parent / "controls/faulty_cc.py"
# Values of the graph, and what each may be. An edit far up the graph is dear, so it is drawn more seldom.
VALUES = {
    "licence": (["MIT", "GPL-2.0-only"], 3), "changed_row": ([0, 1], 1), "held": (["a", "b", "A"], 3), "page": ([0, 1], 1),
    "words": ([2, 3, 1], 3), "epochs": ([1, 2], 1), "vocabulary": ([262, 264], 1), "documents": ([24, 25], 1),
    "script": (["", "# a comment\n", "set -e\n"], 4), "rate": ([0.01, 0.02], 2), "decay": ([2, 1], 3), "at": ([2, 3], 3),
    "phase_rate": ([0.002, 0.003], 3), "sizes_rate": ([0.01, 0.02], 1), "counted": (["all", "without_embeddings"], 4),
    "flops": ([9e7, 9.5e7], 4), "program_words": (["x", "y"], 3), "workers": ([1, 2], 3), "counted_set": (["web", "more"], 3),
    "prompt": (["the", "of"], 3), "dtype": (["f32", "bf16"], 2)}
COSMETIC = ("comments", "order of keys", "times", "threads", "place", "steps at a time", "a training's pace")
OTHERS = {"the version of a kind": 3, "an output that is gone": 4}


def own_parameters(graph, step):
    """What the recipe of a step has beside its inputs' contents."""
    kind, parameters = graph.steps()[step]
    parameters = copy.deepcopy(parameters)
    for phase in parameters.get("phases", []):
        phase.pop("workers", None)
        phase.pop("name", None)
    files = graph.files()
    return json.dumps([kind, parameters, files["capitals.sh"] if kind == "run" else "",
                       graph.config() if "config" in parameters or kind == "fork" else ""], sort_keys=True)


def recipes(graph, last):
    """What each step is made of, with the contents of its inputs as the journal has them."""
    out = {}
    for step, (kind, parameters) in graph.steps().items():
        if kind == "source":
            continue
        inputs = inputs_of(parameters)
        text = own_parameters(graph, step) + json.dumps([last[name]["content"] if name in last else graph_hash(graph, name) for name in inputs])
        if kind == "fit":  # it names its runs
            runs = [inputs_of(graph.steps()[name][1])[0] for name in inputs]
            text += json.dumps([last[run]["fingerprint"] for run in runs])
        out[step] = hashlib.sha256(text.encode()).hexdigest()
    return out


def graph_hash(graph, source):
    folder = graph.steps()[source][1]["files"][0]
    return {name: content for name, content in graph.files().items() if name.startswith(folder + "/")}


class Writer:
    """Writes plan and configuration as JSON, which is YAML, with keys and comments as they were drawn."""

    def __init__(self):
        self.order = self.comments = None

    def __call__(self, tree):
        if self.order is not None:
            tree = shuffled(tree, random.Random(self.order))
        text = json.dumps(tree, indent=1)
        if self.comments is None:
            return text
        rng = random.Random(self.comments)
        return "".join(line + (f"  # {rng.random()}\n" if rng.random() < 0.3 else "\n") for line in text.splitlines())


def shuffled(tree, rng):
    if isinstance(tree, list):
        return [shuffled(item, rng) for item in tree]
    if not isinstance(tree, dict):
        return tree
    keys = list(tree)
    if "steps" not in tree:
        rng.shuffle(keys)
    return {key: shuffled_steps(tree[key], rng) if key == "steps" else shuffled(tree[key], rng) for key in keys}


def shuffled_steps(steps, rng):
    """The steps stay in their order, which is that of the lab hash."""
    return {name: shuffled(step, rng) for name, step in steps.items()}


OTHER_VERSIONS = 1000  # and up: versions that no kind has


def other_version(lab, kind, version):
    """The lab as a program left it whose steps of this kind had this version."""
    entries = lab.entries()
    for entry in entries:
        if entry["kind"] != "done":
            continue
        recipe = json.loads(entry["recipe"])
        if recipe["kind"] != kind or recipe["version"] >= OTHER_VERSIONS:
            continue
        recipe["version"] = version
        entry["recipe"] = json.dumps(recipe, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        old, entry["fingerprint"] = entry["fingerprint"], hashlib.sha256(entry["recipe"].encode()).hexdigest()
        was, now = (lab.folder / "out" / fingerprint[:16] for fingerprint in (old, entry["fingerprint"]))
        if was.exists():
            was.rename(now)
            manifest = json.loads(was.with_suffix(".json").read_text()) | {"fingerprint": entry["fingerprint"]}
            was.with_suffix(".json").unlink()
            now.with_suffix(".json").write_text(json.dumps(manifest, sort_keys=True, separators=(",", ":")) + "\n")
        if now.exists():
            entry["manifest"] = hashlib.sha256(now.with_suffix(".json").read_bytes()).hexdigest()
    write_journal(lab.journal, entries)


class Edits:
    """A lab that is edited again and again."""

    def __init__(self, args, top, package):
        self.args, self.top, self.package, self.rng = args, top, package, random.Random(f"{seed.seed()} edits")
        self.graph, self.writer, self.lab = Graph(), Writer(), GraphLab(args.ostro, top / "lab", package)
        self.words, self.slower, self.places, self.versions = [], 0, 0, OTHER_VERSIONS
        self.seen, self.kinds, self.contents, self.hashes = set(), {}, {}, {}  # recipes; recipe to kind, to content; state to lab hash
        self.made = set()  # the lab hashes of states that were made from nothing, too
        self.runs = collections.Counter()

    def config_text(self):
        config = self.graph.config()
        config["trainer"]["steps_per_eval"] = 1000 + self.slower  # in no fingerprint
        return config

    def run(self, lab, graph, words=()):
        changed = lab.write(graph, self.writer)
        (lab.top / "tiny.yaml").write_text(self.writer(self.config_text()))
        for source in ("texts", "pages", "held"):
            if any(name.startswith(source + "/") for name in changed):
                words = [*words, "--pin", source]
        return lab.ran(*words)

    def expect(self, what, gone=None):
        """Runs the lab after an edit, and compares what ran."""
        ran, lab_hash = self.run(self.lab, self.graph, self.words)
        last = self.lab.last()
        now = recipes(self.graph, last)
        wanted = {step for step, recipe in now.items() if recipe not in self.seen} | ({gone} if gone else set())
        check(set(ran) == wanted and len(ran) == len(wanted), f"{what}: ran {ran}, and the steps with new recipes are {sorted(wanted)}")
        self.seen |= set(now.values())
        self.kinds |= {recipe: self.graph.steps()[step][0] for step, recipe in now.items()}
        for step, recipe in now.items():
            content = self.contents.setdefault(recipe, last[step]["content"])
            check(content == last[step]["content"], f"{what}: {step} has the content {last[step]['content']}, and had {content}")
        state = json.dumps([now, self.graph.licence])
        check(self.hashes.setdefault(state, lab_hash) == lab_hash, f"{what}: lab hash {lab_hash}, before {self.hashes[state]}")
        check(len(set(self.hashes.values())) == len(self.hashes), f"{what}: two states have one lab hash")
        self.runs["steps"] += len(ran)
        self.runs["edits that ran nothing"] += not ran
        return ran, lab_hash

    def from_nothing(self, what, lab_hash):
        """The same plan and files in a new folder give the same."""
        fresh = GraphLab(self.args.ostro, self.top / "fresh", self.package)
        check(self.run(fresh, self.graph)[1] == lab_hash, f"{what}: from nothing another lab hash")
        there, here = fresh.last(), self.lab.last()
        for step in self.graph.steps():
            check((there[step]["content"], there[step]["fingerprint"]) == (here[step]["content"], here[step]["fingerprint"]) if step in there else True,
                  f"{what}: {step} made from nothing has another output")
            if step in there and self.graph.steps()[step][0] not in ("train", "fork", "tokens", "publish"):
                check(files_of(fresh.output(step)) == files_of(self.lab.output(step)), f"{what}: {step} made from nothing has other files")
        shutil.rmtree(fresh.top)

    def edit(self):
        """Draws an edit and does it. Its name, and the step whose output is gone."""
        rng, lab = self.rng, self.lab
        if rng.random() < 0.35:
            what = rng.choice(COSMETIC)
            if what == "comments":
                self.writer.comments = rng.random()
            elif what == "order of keys":
                self.writer.order = rng.random()
            elif what == "times":
                for path in [*lab.top.rglob("*")]:
                    if path.is_file() and rng.random() < 0.5 and path.name != "journal.jsonl":
                        os.utime(path, (rng.randrange(10**9), rng.randrange(10**9)))
            elif what == "threads":
                lab.variables = {"OSTRO_THREADS": rng.choice("123"), "TZ": rng.choice(("UTC", "Asia/Tokyo")), "LC_ALL": rng.choice(("C", "C.UTF-8"))}
            elif what == "place":
                self.places += 1
                place = lab.top.with_name(f"place {self.places}")
                lab.top.rename(place)
                lab.top = place
            elif what == "steps at a time":
                self.words = rng.choice(([], ["-j", "2"], ["--check", "full"]))
            else:
                self.slower = rng.randrange(100)
            if self.args.other:
                lab.ostro = str(pathlib.Path(rng.choice((self.args.ostro, self.args.other))).resolve())
            return what, None
        names = [*VALUES, *OTHERS]
        name, = rng.choices(names, [weight for _, weight in VALUES.values()] + [*OTHERS.values()])
        if name == "the version of a kind":
            kind = rng.choice(["corpus", "extract", "filter", "run", "fork", "eval", "sample", "export", "publish", "fit", "forecast"])
            self.seen = {recipe for recipe in self.seen if self.kinds[recipe] != kind}
            self.versions += 1
            other_version(lab, kind, self.versions)
            return f"{name}: {kind}", None
        if name == "an output that is gone":
            step = rng.choice([s for s, (kind, _) in self.graph.steps().items() if kind != "source"])
            output = lab.output(step)
            shutil.rmtree(output)
            if rng.random() < 0.5:
                output.with_suffix(".json").unlink()
            return f"{name}: {step}", step
        value = rng.choice([v for v in VALUES[name][0] if v != getattr(self.graph, name)])
        setattr(self.graph, name, value)
        return f"{name}: {value!r}", None

    def go(self, number, compares_all):
        self.expect("the first run")
        for n in range(number):
            what, gone = self.edit()
            ran, lab_hash = self.expect(f"edit {n + 1} of {number}, {what}", gone)
            steps = self.graph.steps()
            waves = [step for step in ran if not any(step in inputs_of(steps[other][1]) for other in ran)]
            self.runs["waves that stopped"] += any(any(step in inputs_of(p) for _, p in steps.values()) for step in waves)
            if n == number - 1 or compares_all and lab_hash not in self.made:
                self.made.add(lab_hash)
                self.from_nothing(what, lab_hash)
        check(self.runs["edits that ran nothing"] > number // 8 and self.runs["waves that stopped"] > 0 and self.runs["steps"] > number // 2,
              f"the draw is one-sided: {dict(self.runs)}")


def flip(data):
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def lines_of(data):
    return data.splitlines(True)


class Tampering:
    """Ways to change outputs, manifests and journal. Each is found and named, and the lab goes on when it is undone."""

    def __init__(self, lab):
        self.lab, self.found = lab, 0
        self.state = lab.ran("--check", "full")
        check(self.state[0] == [], f"a lab that is done ran {self.state[0]}")

    def changed(self, what, path, change, *says):
        """Another content of a file; None: none."""
        before, times = path.read_bytes(), path.stat()
        after = change(before)
        check(after != before, f"{what}: nothing was changed")
        if after is None:
            path.unlink()
        else:
            path.write_bytes(after)
        os.utime(path.parent, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.expect(what, *says)
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.back(what)

    def expect(self, what, *says):
        done = self.lab.start("run", "plan.yaml")
        check(done.returncode != 0 and all(words in done.stderr for words in says),
              f"{what}: exit code {done.returncode}, and it does not say {says}:\n{done.stdout[-500:]}{done.stderr}")
        self.found += 1

    def back(self, what):
        check(self.lab.ran("--check", "full") == self.state, f"{what} was undone, and steps ran")

    def outputs(self):
        output = self.lab.output
        store = next(f for f in sorted(output("rows").rglob("*")) if f.name.startswith("c.") or f.suffix in (".bin", ".tokens") or f.parent.name == "c")
        chunk = next(f for f in sorted((output("base") / "checkpoints").rglob("*")) if f.name.startswith("c."))
        for what, path in (("a verdict", output("some") / "verdicts.jsonl"), ("a text of a page", output("page_texts") / "rows.jsonl"),
                           ("a token", store), ("a ledger", output("more") / "ledger.json"), ("a weight", chunk),
                           ("a fit", output("law") / "fit.json"), ("a forecast", output("larger") / "forecast.json"),
                           ("a text that was sampled", output("said") / "texts.jsonl"),
                           ("a weight for other programs", output("model") / "model.safetensors"),
                           ("the sessions in a bundle", output("bundle") / "bundle/record/run.json"),
                           ("what a program made", output("capitals") / "held.txt")):
            self.changed(what, path, flip, f"{path.name}: was changed: its SHA-256 is", output_name(path))
        chain = output("cool") / "chain.jsonl"
        self.changed("the last step of a chain", chain, lambda data: b"".join(lines_of(data)[:-1]), "chain.jsonl: was changed", output_name(chain))
        lost = output("score") / "evaluation.json"
        self.changed("an evaluation that is lost", lost, lambda _: None, "evaluation.json: is gone; it is part of an output", output_name(lost))
        added = output("vocabulary") / "more.json"
        added.write_text("{}")
        self.expect("a file that was added", "more.json: is no part of the output", output_name(added))
        added.unlink()
        self.back("a file that was added")

    def manifests(self):
        def manifest(step):
            return self.lab.output(step).with_suffix(".json")

        self.changed("a hash in a manifest", manifest("best"), flip, f"{manifest('best').name}: was changed: its SHA-256 is")
        self.changed("the manifest of another output", manifest("rows"), lambda _: manifest("more").read_bytes(), f"{manifest('rows').name}: was changed")
        # An output and its manifest that agree with each other.
        evaluation, listed = self.lab.output("cooled") / "evaluation.json", manifest("cooled")
        saved = evaluation.read_bytes(), listed.read_bytes()
        evaluation.write_bytes(flip(saved[0]))
        listed.write_bytes(saved[1].replace(*(hashlib.sha256(data).hexdigest().encode() for data in (saved[0], evaluation.read_bytes()))))
        self.expect("an output with its manifest", f"{listed.name}: was changed", "the journal has")
        evaluation.write_bytes(saved[0])
        listed.write_bytes(saved[1])
        self.back("an output with its manifest")

    def journal(self):
        journal = self.lab.journal

        def at(data, words):
            return next(n for n, line in enumerate(lines_of(data), 1) if words in line)

        step = b'"step":"some"'
        number = at(journal.read_bytes(), step)
        for what, change in (("a name in the journal", lambda d: d.replace(step, b'"step":"sone"', 1)),
                             ("a recipe in the journal", lambda d: d.replace(b'\\"version\\":2', b'\\"version\\":3', 1)),
                             ("a line that is twice", lambda d: b"".join(lines_of(d)[:number] + lines_of(d)[number - 1:])),
                             ("a line that is gone", lambda d: b"".join(lines_of(d)[:number - 1] + lines_of(d)[number:])),
                             ("two lines in another order", lambda d: b"".join([*lines_of(d)[:number - 1], lines_of(d)[number], lines_of(d)[number - 1],
                                                                               *lines_of(d)[number + 1:]]))):
            self.changed(what, journal, change, "journal.jsonl: line ")
        self.changed("a line of another form", journal, lambda d: d + b"{}\n", "is no line of a journal")
        # Somebody who computes all hashes again, and leaves the outputs as they are.
        entries = self.lab.entries()
        for entry in entries:
            if entry["kind"] == "done" and entry["step"] == "law":
                entry["manifest"] = "0" * 64
        saved = journal.read_bytes()
        write_journal(journal, entries)
        self.expect("a journal with other manifests", "the journal has 0000", self.lab.output("law").name)
        journal.write_bytes(saved)
        self.back("a journal with other manifests")

    def go(self):
        self.outputs()
        self.manifests()
        self.journal()
        return self.found


def output_name(path):
    """The name of the output that a file is in, which is the fingerprint's beginning."""
    return next(p.name for p in path.parents if p.parent.name == "out")


def check_faulty_kernel(lab, faulty):
    """A C compiler that makes one thing wrong in the kernels: what is done again is another output, and the lab stops there."""
    cc = os.environ.get("OSTRO_CC", "cc")
    with tempfile.TemporaryDirectory(prefix="ostro-lab-kernels-") as kernels:
        done = lab.start("run", "plan.yaml", "--audit", "1", OSTRO_CC=f"{sys.executable} {FAULTY_CC} {faulty} {cc}", OSTRO_CACHE_DIR=kernels)
    alarms = [line for line in done.stderr.splitlines() if "when it is done again" in line]
    check(done.returncode == 1 and alarms, f"a kernel with the fault {faulty} was not found:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    trained = {step for step, (kind, _) in Graph().steps().items() if kind in ("train", "fork")}
    named = {line.split("step ")[1].split(":")[0] for line in alarms}
    check(named & trained and all("have both outputs" in line for line in alarms), f"alarms are {alarms}")
    for step in named:
        output = lab.output(step)
        check(output.exists() and (lab.folder / "audit/out" / output.name).exists(), f"both outputs of {step} are not there")
    conflicts = {entry["step"] for entry in lab.entries() if entry["kind"] == "conflict"}
    check(conflicts == named, f"the journal has conflicts of {conflicts}, and alarms were of {named}")
    done = lab.start("run", "plan.yaml")
    check(done.returncode == 1 and "gave two different outputs" in done.stderr, f"the alarm was forgotten: {done.stderr}")
    return sorted(named)


def files_of(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--other")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    number = 200 if seed.full() else 40
    said = []

    def say(line):
        print(line, flush=True)
        said.append(line)

    with tempfile.TemporaryDirectory(prefix="ostro-lab-edits-") as folder:
        top = pathlib.Path(folder)
        edits = Edits(args, top, stand_in(top))
        listed = edits.lab.start("kinds", "--json").stdout.splitlines()
        kinds = {json.loads(line)["kind"] for line in listed}
        # A rung is made by halving, and has edits of its own in lab_halving.py.
        check(kinds - {"rung"} == {kind for kind, _ in Graph().steps().values()}, f"the graph has not every kind of step: {sorted(kinds)}")
        edits.go(number, seed.full())
        say(f"seed {seed.seed()}: {number} edits of {len(edits.graph.steps())} steps: {edits.runs['steps']} steps were done again, "
            f"{edits.runs['edits that ran nothing']} edits ran nothing, {edits.runs['waves that stopped']} waves stopped at equal outputs; "
            f"{len(edits.made)} states were made from nothing, too, with the same outputs")
        found = Tampering(edits.lab).go()
        say(f"{found} ways to tamper with outputs, manifests and journal were found and named")
        alarms = check_faulty_kernel(edits.lab, "contraction")
        say(f"with a fault in the kernels --audit 1 raised the alarm of two outputs for {', '.join(alarms)}")
    if args.log:
        with args.log.open("a") as file:
            file.write("\n".join(said) + "\n")


if __name__ == "__main__":
    main()
