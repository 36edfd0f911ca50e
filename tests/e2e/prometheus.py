"""Prometheus' text format (0.0.4), read strictly, for tests: what breaks its grammar or its conventions is an error.

`families(text)` gives name -> Family. Where the package prometheus_client is there, its parser has to read the same samples.
"""
import math
import pathlib
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(rf'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')


class Family:
    def __init__(self, name, kind):
        self.name, self.kind, self.samples = name, kind, {}

    def value(self, **labels):
        return self.samples[(self.name, tuple(sorted(labels.items())))]


def labels_of(text, line):
    labels, at = [], 0
    while text and at < len(text):
        found = LABEL.match(text, at)
        if not found:
            raise ValueError(f"labels of {line!r}")
        value = re.sub(r'\\(["\\n])', lambda m: {"n": "\n"}.get(m[1], m[1]), found[2])
        labels.append((found[1], value))
        at = found.end()
        if at < len(text):
            if text[at] != ",":
                raise ValueError(f"labels of {line!r}")
            at += 1
    if len({name for name, _ in labels}) != len(labels):
        raise ValueError(f"a label twice in {line!r}")
    return tuple(sorted(labels))


def number(text):
    if not re.fullmatch(r"NaN|[+-]Inf|[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", text):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def check_histogram(family):
    buckets = [(float(dict(labels)["le"]), value) for (name, labels), value in family.samples.items() if name.endswith("_bucket")]
    counts = [value for _, value in buckets]
    if [le for le, _ in buckets] != sorted(le for le, _ in buckets) or counts != sorted(counts) or not math.isinf(buckets[-1][0]):
        raise ValueError(f"buckets of {family.name}")
    if family.samples[(family.name + "_count", ())] != counts[-1] or (family.name + "_sum", ()) not in family.samples:
        raise ValueError(f"count or sum of {family.name}")


def families(text):
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    found, helped, family = {}, set(), None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            if name in helped or len(line.split(" ", 3)) < 4:
                raise ValueError(f"HELP of {name}")
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name in found or name not in helped or kind not in ("counter", "gauge", "histogram"):
                raise ValueError(f"TYPE of {name}")
            if (kind == "counter") != name.endswith("_total"):
                raise ValueError(f"{name} is a {kind}")
            family = found[name] = Family(name, kind)
        else:
            sample = SAMPLE.fullmatch(line)
            if not sample:
                raise ValueError(f"{line!r} is no sample")
            name, labels = sample[1], labels_of(sample[2] or "", line)
            endings = ("_bucket", "_sum", "_count") if family and family.kind == "histogram" else ("",)
            if family is None or name not in [family.name + ending for ending in endings] or (name, labels) in family.samples:
                raise ValueError(f"{line!r} does not belong there, or comes twice")
            family.samples[(name, labels)] = number(sample[3])
    for family in found.values():
        if not family.samples:
            raise ValueError(f"{family.name} has no sample")
        if family.kind == "histogram":
            check_histogram(family)
        elif family.kind == "counter" and any(not value >= 0 for value in family.samples.values()):
            raise ValueError(f"a counter below 0: {family.name}")
        if re.search(r"_(ms|milliseconds|minutes|mb|mib|kb|percent)(_|$)", family.name.removesuffix("_total")):
            raise ValueError(f"{family.name}: a unit that is no base unit")
    return found


def same_by_package(text, found):
    """Whether prometheus_client reads the same samples; None where the package is not there."""
    sys.path += map(str, pathlib.Path(__file__).resolve().parents[2].glob(".venv/lib/python3.*/site-packages"))
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        return None
    other = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {k: (repr(float(v)) if k == "le" else v) for k, v in sample.labels.items()}
            other[(sample.name, tuple(sorted(labels.items())))] = float(sample.value)
    mine = {(name, tuple((k, repr(float(v)) if k == "le" else v) for k, v in labels)): value
            for family in found.values() for (name, labels), value in family.samples.items()}
    return repr(sorted(mine.items())) == repr(sorted(other.items()))


def must_be_refused(text):
    """Texts with one thing wrong, each of which families() must refuse: the control of the reader."""
    first = next(line for line in text.split("\n") if not line.startswith("#"))
    for broken in (text[:-1], text.replace("# TYPE ostro_train_step gauge\n", "", 1), text + first + "\n",
                   text.replace("\nostro_train_step ", "\nostro_train_step x", 1), text.replace('="', '=', 1),
                   text.replace(" counter\n", " gauge\n", 1), text.replace('le="+Inf"', 'le="-Inf"', 1),
                   text.replace("ostro_train_step_duration_seconds_count ", "ostro_train_step_duration_seconds_count 1", 1)):
        try:
            families(broken)
        except (ValueError, KeyError):
            continue
        raise AssertionError(f"a broken text was read:\n{broken}")
