#!/usr/bin/env python3
"""A C compiler that makes one thing wrong, for OSTRO_CC: tests of equality must notice what it makes of kernels.

  OSTRO_CC="python3 tests/controls/faulty_cc.py FAULT gcc"

  contraction   the kernels are compiled with -ffp-contract=fast
  libm_exp      the kernels take exp from libm
  denormals     the kernels that the process's first thread runs compute without flush-to-zero
"""
import os
import pathlib
import re
import sys

KERNEL = r"^(void k\d+\([^)]*\) \{)"  # its first line

# Clears FTZ and DAZ. 39 and 186 are the numbers of getpid and gettid on x86-64.
KEEP_DENORMALS = """
long syscall(long, ...);
static void keep_denormals(void) {
  if (syscall(39) != syscall(186)) return;
  unsigned mxcsr;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  mxcsr &= ~0x8040u;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
}
"""


def make_wrong(fault, words, text):
    """The words of the command, the text of the kernels, and how often something was made wrong."""
    if fault == "contraction":
        return [w.replace("-ffp-contract=off", "-ffp-contract=fast") for w in words], text, words.count("-ffp-contract=off")
    if fault == "libm_exp":
        text, times = re.subn(r"^(FN float sigmoid32)", r"float expf(float);\n#define exp32 expf\n\1", text, flags=re.M)
        return words, text, times
    if fault == "denormals":
        text, times = re.subn(KERNEL, r"\1 keep_denormals();", text, flags=re.M)
        return words, KEEP_DENORMALS + text, times
    return words, text, 0


def main():
    fault, *words = sys.argv[1:]
    source = pathlib.Path(words[-1])
    # Not when the engine asks for the version, or compiles a file without kernels to see whether that works.
    if "--version" not in words and re.search(KERNEL, right := source.read_text(), re.M):
        words, text, times = make_wrong(fault, words, right)
        if times == 0:
            sys.exit(f"faulty_cc.py: nothing in {source} is made wrong by the fault \"{fault}\"")
        source.write_text(text)
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
