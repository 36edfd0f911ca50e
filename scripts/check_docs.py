#!/usr/bin/env python3
"""Fails when a document names something that is not there, or gives a figure whose code has changed too much since.

  scripts/check_docs.py [--root FOLDER]     checks
  scripts/check_docs.py --fix               first writes the lines of rooms' READMEs that follow from scripts/layers.txt

Documents are README.md, HACKING.md, docs/**/*.md and the README.md of rooms, examples and Python packages. Checked are:

- Paths in back-ticks. A word is a path when it ends as a source file does (.h .cc .py .sh .cmake .md) or begins with a
  folder of the repository. It must exist below the root, below ostro/ or beside the document; `<x>` and `*` stand for any
  name, {a,b} for both. When its first part is neither a room nor a folder of the root, it may be the end of any path
  (`gemm.cc`, `kernels/avx2.cc`). A program is there when its x.cc is. Names that a block of code on the same page mentions are made there. MADE lists the rest.
- Words in quotes behind a path, in docs/notes/cases.md: `path` "words"; "more". The file must have them, also where its text is
  cut into several literals.
- Links, with their anchors, and sections that are named behind a link or a path: (docs/x.md, "Title").
- docs/....md in sources, tests, scripts and configurations.
- Every page of docs/ can be reached from docs/README.md. Every entry of docs/glossary.md names a file.
- Every room has a README of at most 15 lines that names its sub-rooms and whose types are in the files it names; and
  a line in HACKING.md, whose lines outside tables have at most 200 characters.
- docs/notes/figures.json: figures of a page, the command and the commit that gave them, and the paths of the code that
  they measure. At most 300 commits may have changed that code since. Every figure with a unit in README.md must be there.
  Where the commit is not in the clone (a shallow one), the check says "not checked".
"""
import argparse
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

LIMIT = 300
SUFFIXES = (".h", ".cc", ".py", ".sh", ".cmake", ".md")
# Names in back-ticks that look like paths and are none of this tree, with what they are.
MADE = {}
# Texts that name documents which do not exist, on purpose.
EXAMPLES = ("scripts/check_docs.py", "tests/checks/docs_test.py")
TEXTS = {".h", ".cc", ".py", ".sh", ".cmake", ".txt", ".yaml", ".yml", ".toml", ".md", ""}
UNIT = re.compile(r"(?<![\w.#-])\d[\d.,]*\s?(?:minutes?|seconds?|hours?|ms|s|%|times|tokens/s|GB|MB|GFLOP/s)(?![\w/])")


class Tree:
    """The files below a root, and what documents say of them."""

    def __init__(self, root):
        self.root = root
        self.not_ours = self.ignored()
        self.files = sorted(p for p in self.walk(root))
        self.names = [p.relative_to(root).as_posix() for p in self.files]
        self.all = set(self.names) | {parent.as_posix() for n in self.names for parent in pathlib.PurePosixPath(n).parents}
        self.rooms = self.layers()
        self.tops = {n.split("/")[0] for n in self.names if "/" in n}
        self.errors, self.notes, self.used = [], [], set()
        self.documents = [n for n in self.names if n in ("README.md", "HACKING.md") or re.fullmatch(
            r"(docs/.*|(ostro|examples|experiments|python)/.*README)(\.md)?", n) and n.endswith(".md")]
        self.text = {n: (root / n).read_text(encoding="utf-8") for n in self.documents}

    def ignored(self):
        """The folders that .gitignore names by their paths: builds, runs and environments of Python."""
        path = self.root / ".gitignore"
        names = path.read_text(encoding="utf-8").split() if path.exists() else []
        return {self.root / name.strip("/") for name in [".git", *names] if "*" not in name}

    def walk(self, folder):
        for path in folder.iterdir():
            if path.name == "__pycache__" or path in self.not_ours:
                continue
            if path.is_dir() and not path.is_symlink():
                yield from self.walk(path)
            else:
                yield path

    def layers(self):
        """Room -> the rooms that it may include, of scripts/layers.txt."""
        text = (self.root / "scripts/layers.txt").read_text(encoding="utf-8")
        self.sub_rooms = re.findall(r"^([a-z_]+)/([a-z_0-9]+):", text, re.MULTILINE)
        return {room: may.split() for room, may in re.findall(r"^([a-z_]+):(.*)$", text, re.MULTILINE)}

    def error(self, place, what):
        self.errors.append(f"{place}: {what}")

    # Paths.

    def exists(self, path, document):
        path = re.sub(r":\d+(-\d+)?$", "", path).rstrip("/")
        brace = re.search(r"\{([^{}]*,[^{}]*)\}", path)
        if brace:
            return all(self.exists(path[:brace.start()] + part + path[brace.end():], document) for part in brace[1].split(","))
        pattern = re.sub(r"<[^<>]*>", "*", path)
        beside = pathlib.PurePosixPath(document).parent
        bases = [pattern, f"ostro/{pattern}", (beside / pattern).as_posix()]
        if pattern.split("/")[0] not in self.tops | set(self.rooms):
            bases.append(f"*/{pattern}")
        return any(b in self.all or f"{b}.cc" in self.all or "*" in b and fnmatch.filter(self.all, b) for b in bases)

    def is_path(self, word):
        if not re.fullmatch(r"[\w.@*{},<>/-]+(:\d+(-\d+)?)?", word) or word.startswith(("-", "/", "*.", ".")):
            return False
        plain = re.sub(r":\d+(-\d+)?$", "", word)
        return plain.endswith(SUFFIXES) or "/" in word and word.split("/")[0] in self.tops

    def paths(self, document):
        prose, code = split_code(self.text[document])
        for line, span in spans(prose):
            made = next((p for p in MADE if fnmatch.fnmatchcase(span, p)), None)
            if made:
                self.used.add(made)
            elif self.is_path(span) and span not in code and not self.exists(span, document):
                self.error(f"{document}:{line}", f"there is no {span}")

    def quotes(self, document="docs/notes/cases.md"):
        for number, line in enumerate(self.text.get(document, "").split("\n"), 1):
            for match in re.finditer(r'`([\w./-]+)`((?:;? "[^"]+")+)', line):
                path = next((self.root / base / match[1] for base in ("", "ostro") if (self.root / base / match[1]).is_file()), None)
                if path is None:
                    continue  # paths() says so
                text = re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8")).replace('\\"', '"')
                for words in re.findall(r'"([^"]+)"', match[2]):
                    if words not in text:
                        self.error(f"{document}:{number}", f"{match[1]} does not have the words \"{words}\"")

    # Links.

    def headings(self, document):
        return re.findall(r"^#+ +(.*?) *$", split_code(self.text.get(document, ""))[0], re.MULTILINE)

    def titles(self, document):
        """Headings; and words in bold at the beginning of a paragraph, which documents use as headings."""
        bold = re.findall(r"^\*\*(.+?)\.?\*\*", split_code(self.text.get(document, ""))[0], re.MULTILINE)
        return self.headings(document) + bold

    def links(self, document):
        """The documents that a document links to."""
        prose = re.sub(r"`[^`\n]*`", lambda m: " " * len(m[0]), split_code(self.text[document])[0])
        here, found = pathlib.PurePosixPath(document).parent, []
        for match in re.finditer(r"\[[^\]]*\]\(([^)\s]+)\)(?:,\s+\"([^\"]+)\")?", prose):
            line = f"{document}:{prose.count(chr(10), 0, match.start()) + 1}"
            if re.match(r"[a-z]+:", match[1]):
                continue
            path, _, anchor = match[1].partition("#")
            target = normal(here / path) if path else document
            if target not in self.all:
                self.error(line, f"the link {match[1]} leads nowhere")
                continue
            found.append(target)
            if anchor and anchor not in slugs(self.headings(target)):
                self.error(line, f"{target} has no section #{anchor}")
            self.section(line, target, match[2])
        return found

    def section(self, place, document, title):
        if title and document.endswith(".md") and not any(
                plain_title(t).startswith(" ".join(title.split())) for t in self.titles(document)):
            self.error(place, f"{document} has no section \"{' '.join(title.split())}\"")

    def mentions(self):
        """docs/....md in texts that are no documents."""
        for name in self.names:
            path = pathlib.PurePosixPath(name)
            if "/" not in name or path.suffix not in TEXTS or name in self.text or name.startswith(("tests/results", "docs/")) \
                    or name in EXAMPLES:
                continue
            try:
                text = (self.root / name).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            if "docs/" not in text:
                continue
            flat = re.sub(r"\n[ \t]*(//|#)[ \t]*", "\n", text)
            for match in re.finditer(r"(?<![\w/.])(docs/[\w./-]*\.(?:md|log|json))(?:,\s+\"([^\"]+)\")?", flat):
                if match[1] not in self.all:
                    self.error(name, f"there is no {match[1]}")
                else:
                    self.section(name, match[1], match[2])

    # Rooms, glossary, map.

    def room_lines(self, room):
        above = [r for r, may in self.rooms.items() if room in may]
        return (f"May include: {', '.join(self.rooms[room]) or 'no other room'}.",
                f"May be included by: {', '.join(above) or 'no other room'}.")

    def room(self, room, fix):
        name = f"ostro/{room}/README.md"
        if name not in self.text:
            return self.error(name, "missing; say what the room is, its three main types, where to start reading")
        if fix:
            lines = self.room_lines(room)
            self.text[name] = re.sub(r"^May include:.*$", lines[0], self.text[name], flags=re.MULTILINE)
            self.text[name] = re.sub(r"^May be included by:.*$", lines[1], self.text[name], flags=re.MULTILINE)
            (self.root / name).write_text(self.text[name], encoding="utf-8")
        text = self.text[name]
        if text.count("\n") > 15:
            self.error(name, f"{text.count(chr(10))} lines, more than 15")
        for line in self.room_lines(room):
            if line not in text.splitlines():
                self.error(name, f"scripts/layers.txt says \"{line}\"; run scripts/check_docs.py --fix")
        for sub in (sub for owner, sub in self.sub_rooms if owner == room and f"`{sub}`" not in text):
            self.error(name, f"the sub-room {sub} is not named")
        for kind, path in re.findall(r"^- `(\w+)` \(`([\w./]+)`\)", text, re.MULTILINE):
            file = self.root / "ostro" / room / path
            if file.exists() and not re.search(rf"\b{kind}\b", file.read_text(encoding="utf-8")):
                self.error(name, f"{path} has no {kind}")
        if not re.search(rf"^\| \[?{room}\]?[| (]", self.text.get("HACKING.md", ""), re.MULTILINE):
            self.error("HACKING.md", f"no line for the room {room}")

    def whole(self, links):
        """What holds for the documents together."""
        reached, todo = set(), ["docs/README.md"]
        while todo:
            page = todo.pop()
            if page not in reached:
                reached.add(page)
                todo += links.get(page, [])
        for name in self.documents:
            if name.startswith("docs/") and name not in reached:
                self.error(name, "no way leads here from docs/README.md")
        for line in self.text.get("docs/glossary.md", "").splitlines():
            if line.startswith("- ") and not any(self.is_path(span) for _, span in spans(line)):
                self.error("docs/glossary.md", f"no file is named: {line[:60]}")
        for number, line in enumerate(split_code(self.text.get("HACKING.md", ""))[0].splitlines(), 1):
            if len(line) > 200 and not line.startswith("|"):
                self.error(f"HACKING.md:{number}", f"{len(line)} characters, more than 200")
        for pattern in sorted(set(MADE) - self.used):
            self.notes.append(f"check_docs.py: MADE names {pattern}, which no document has")

    # Figures.

    def git(self, *words):
        done = subprocess.run(["git", "-C", str(self.root), "-c", "safe.directory=*", *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def figures(self):
        """How many figures were checked, and how many could not be."""
        rows = json.loads((self.root / "docs/notes/figures.json").read_text(encoding="utf-8"))
        checked = left = 0
        for row in rows:
            place = f"docs/notes/figures.json, {row['page']}, {row['figures'][0]}"
            for figure in row["figures"]:
                if " ".join(figure.split()) not in " ".join(self.text.get(row["page"], "").split()):
                    self.error(place, f"the page does not say \"{figure}\"")
            missing = [path for path in row["paths"] if path not in self.all]
            if missing or not row["paths"]:
                self.error(place, f"it measures code that is not there: {', '.join(missing) or 'no path'}")
            known = self.git("cat-file", "-e", row["commit"] + "^{commit}")
            if known is None and self.git("rev-parse", "--is-shallow-repository") == "false":
                self.error(place, f"there is no commit {row['commit']}")
            elif known is None:
                left += len(row["figures"])
                self.notes.append(f"not checked: {place}: commit {row['commit']} is not in this clone")
            else:
                checked += len(row["figures"])
                count = int(self.git("rev-list", "--count", row["commit"] + "..HEAD", "--", *row["paths"]))
                if count > LIMIT:
                    self.error(place, f"{count} commits have changed {' '.join(row['paths'])} since {row['commit']}, more than "
                                      f"{LIMIT}; measure again with: {row['command']}")
        said = " ".join(f for row in rows if row["page"] == "README.md" for f in row["figures"])
        for match in UNIT.finditer(re.sub(r"`[^`\n]*`", "", split_code(self.text["README.md"])[0])):
            if match[0] not in said:
                self.error("README.md", f"\"{match[0]}\" is not in docs/notes/figures.json, with command and commit")
        return checked, left


def split_code(text):
    """The text with its blocks of code as empty lines, and the content of these blocks."""
    prose, code, inside = [], [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        (code if inside or fence else prose).append(line)
        if inside or fence:
            prose.append("")
        inside ^= fence
    return "\n".join(prose), "\n".join(code)


def spans(prose):
    """(line, content) of everything in back-ticks."""
    for number, line in enumerate(prose.split("\n"), 1):
        for match in re.finditer(r"`([^`]+)`", line):
            yield number, match[1]


def normal(path):
    parts = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) or "."


def plain_title(title):
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")


def slugs(titles):
    """The anchors that GitHub gives to these titles."""
    found = []
    for title in titles:
        slug = re.sub(r"[^\w\- ]", "", plain_title(title).lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{sum(f == slug for f in found)}")
    return set(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--fix", action="store_true")
    options = parser.parse_args()
    tree = Tree(options.root.resolve())
    for room in tree.rooms:
        tree.room(room, options.fix)
    links = {}
    for document in tree.documents:
        tree.paths(document)
        links[document] = tree.links(document)
    tree.quotes()
    tree.mentions()
    tree.whole(links)
    checked, left = tree.figures()
    print("\n".join([*tree.errors, *tree.notes]), end="\n" if tree.errors or tree.notes else "")
    if tree.errors:
        sys.exit(f"docs: {len(tree.errors)} errors")
    print(f"docs: {len(tree.documents)} documents, {checked} figures checked, {left} not checked")


if __name__ == "__main__":
    main()
