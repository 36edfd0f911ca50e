#!/usr/bin/env python3
"""Tests `ostro completion bash` in bash itself, with COMP_WORDS as it sets them: every command and option that --help
lists must be completed, and no other.

    completion_test.py --ostro PROGRAM
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from program import check

ASK = """source "$1"; shift
[[ $(complete -p ostro) == *"-F _ostro_complete"* ]] || exit 9
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
_ostro_complete
(( ${#COMPREPLY[@]} == 0 )) || printf '%s\\n' "${COMPREPLY[@]}"
"""


class Shell:
    def __init__(self, ostro, folder):
        self.ostro, self.folder = str(pathlib.Path(ostro).resolve()), folder
        self.script = folder / "completion"
        self.script.write_text(self.run("completion", "bash"))
        for name in ("train.yaml", "trees.txt"):
            (folder / name).write_text("")
        (folder / "texts").mkdir()

    def run(self, *words):
        return subprocess.run([self.ostro, *words], capture_output=True, text=True, check=True).stdout

    def complete(self, *words):
        """The completions of the last word, sorted. Words are as bash splits them: --a.b=c is three."""
        done = subprocess.run(["bash", "--norc", "--noprofile", "-c", ASK, "bash", str(self.script), "ostro", *words],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        check(done.returncode == 0 and done.stderr == "", f"{words}: exit {done.returncode}, {done.stderr}")
        return sorted(done.stdout.splitlines())


def commands_in(text):
    return re.findall(r"^  ([a-z]+) +", text.split("\nOptions:")[0], re.M)


def verbs_of(text):
    return commands_in(text) if "\nVerbs" in text else []


def commands_below(shell, words):
    """The commands that begin with these words and have no verbs, with their --help; of those with verbs the completion is compared."""
    text = shell.run(*words, "--help")
    verbs = verbs_of(text)
    if verbs:
        check(shell.complete(*words, "") == sorted([*verbs, "--help"]), f"verbs of {words}")
    return [below for verb in verbs for below in commands_below(shell, [*words, verb])] or [(words, text)]


def check_commands(shell):
    """All that --help lists, of the program, of commands with verbs, and of every command."""
    commands = commands_in(shell.run("--help"))
    check(len(commands) > 12 and "init" in commands, f"commands {commands}")
    check(shell.complete("") == sorted([*commands, "--help", "--version"]), f"commands: {shell.complete('')}")
    check(shell.complete("tr") == ["train"], "tr")
    seen = 0
    for command in commands:
        for words, text in commands_below(shell, [command]):
            options = set(re.findall(r"^  (?:-h,)?(--[a-z_0-9]+)", text.split("\n--a.b.c VALUE")[0], re.M))
            check("--help" in options, f"options of {words}: {options}")
            keys = "--a.b.c VALUE" in text
            got = shell.complete(*words, "--")
            sections = ["--adapter.", "--chain.", "--data.", "--model.", "--numerics.",
                        "--objective.", "--optimizer.", "--trainer."] if keys else []
            check(got == sorted([*options, *sections]), f"{words}: {got}, --help has {sorted(options)}")
            seen += len(options)
    print(f"{len(commands)} commands, {seen} options")


def check_values(shell):
    """Keys up to a dot, words that a key may have, files where files are wanted."""
    complete = shell.complete
    check("--trainer.num_train_steps" in complete("train", "--trainer.n"), complete("train", "--trainer.n"))
    check("--trainer.checkpointer." in complete("train", "--trainer.c"), complete("train", "--trainer.c"))
    check(complete("train", "--trainer.checkpointer.s") == ["--trainer.checkpointer.save_interval"], "nested key")
    check(complete("train", "--model.activation_function", "ge") == ["gelu", "gelu_new"], "words of a key")
    check(complete("train", "--model.activation_function", "=", "si") == ["silu"], "words behind =")
    check(complete("train", "--model.activation_function", "=") == ["gelu", "gelu_new", "relu", "silu"], "nothing behind =")
    check(complete("train", "--data.enforce_eos", "") == ["false", "true"], "true or false")
    check(complete("train", "--trainer.num_train_steps", "t") == [], "a number is no file")
    check(complete("train", "--config", "tr") == ["train.yaml", "trees.txt"], "files")
    check(complete("train", "--data.tokenizer", "tex") == ["texts"], "a key that is a path")
    check(complete("verify", "te") == ["texts"], "a positional word")
    check(complete("train", "te") == [], "train has no positional word")
    check(complete("init", "texts", "te") == ["texts"], "a second positional word")
    check(complete("tokenizer", "train", "--input", "a", "b", "te") == ["texts"], "an option with many words")
    check("--out" in complete("tokenizer", "train", "--input", "a", "--o"), "an option behind one with many words")
    check(complete("train", "--dry_run", "te") == [], "behind a flag")
    check(complete("nothing", "--") == [], "an unknown command")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(args.ostro, pathlib.Path(folder))
        check_commands(shell)
        check_values(shell)
    return 0


if __name__ == "__main__":
    sys.exit(main())
