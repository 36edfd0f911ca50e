#!/usr/bin/env python3
"""Checks that no two files of a room give the same name to a type or a constant of their own.

Builds without ccache compile a room's files in batches (cmake/Precompile.cmake), where anonymous namespaces are one.
With ccache a clash of two files would not be noticed. Functions are not checked: they may be overloads of one another.

    scripts/check_names.py [--root DIR]
"""
import argparse
import collections
import pathlib
import re
import sys

ANONYMOUS = "(anonymous)"
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^\s*#[^\n]*',
                      re.S | re.M)
NAMESPACE = re.compile(r"(?:^|\s)(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*$")
TYPE = re.compile(r"^(?:template\s*<.*?>\s*)?(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(\w+)(?:\s+final)?"
                  r"\s*(?::[^:]|$)", re.S)
ALIAS = re.compile(r"^using\s+(\w+)\s*=")
CONSTANT = re.compile(r"^(?:static\s+)?(?:constexpr|constinit|const|thread_local)\b[^=({]*?\b(\w+)\s*"
                      r"(?:\[[^\]]*\]\s*)*(?:=|\{|$)", re.S)


def names(text):
    """Types and constants that a file declares in anonymous namespaces: (name with its namespaces, line, text if it may be
    said twice)."""
    text = NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    found, open_braces, start = [], [], 0
    for at, c in enumerate(text):
        if c not in "{};":
            continue
        head = text[start:at].strip()
        inside = open_braces and open_braces[-1] == ANONYMOUS
        if c == "}":
            if open_braces:
                open_braces.pop()
        else:
            if inside:
                for pattern in (TYPE, ALIAS, CONSTANT):
                    match = pattern.match(head)
                    # A declaration without a body is no second one.
                    if match and not (pattern is TYPE and c == ";"):
                        name = "::".join([b for b in open_braces if b != ANONYMOUS] + [match.group(1)])
                        alias = " ".join(head.split()) if pattern is ALIAS else None
                        found.append((name, text.count("\n", 0, at) + 1, alias))
                        break
            if c == "{":
                space = NAMESPACE.search(head)
                open_braces.append("" if not space else space.group(1) or ANONYMOUS)
        start = at + 1
    return found


def clashes(root):
    for room in sorted(p.parent for p in root.glob("ostro/*/CMakeLists.txt")):
        seen = collections.defaultdict(list)
        for path in sorted(room.rglob("*.cc")):
            if path.name.endswith("_main.cc") or path.parent.name == "kernels":
                continue  # compiled one by one
            is_test = path.name.endswith("_test.cc")  # batches of their own
            for name, line, alias in names(path.read_text()):
                seen[is_test, name].append((path.relative_to(root), line, alias))
        for (_, name), found in sorted(seen.items()):
            (path, line, alias), (other, where, _) = found[-1], found[0]
            # An alias may be said again in the same words.
            if path != other and (alias is None or len({words for _, _, words in found}) > 1):
                yield (f"{path}:{line}: '{name}' is also in {other}:{where}; a build in batches has both in one namespace: "
                       "give one another name")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    lines = list(clashes(parser.parse_args().root))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
