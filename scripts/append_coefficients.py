#!/usr/bin/env python3
"""Rewrites Appendix A of docs/spec/numerics.md from ostro/numerics/coefficients.h; with --check only compares."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
document = root / "docs/spec/numerics.md"
header = (root / "ostro" / "numerics" / "coefficients.h").read_text()
body = re.search(r"namespace ostro::numerics::coefficients \{\n(.*)\n\}  // namespace", header, re.S).group(1)
table = re.sub(r"inline constexpr (float|double) ", r"\1 ", body).strip()
text = document.read_text()
head = text[: text.index("lowest power first.\n", text.index("## Appendix A")) + len("lowest power first.\n")]
new = f"{head}\n```c\n{table}\n```\n"
if "--check" in sys.argv:
    sys.exit(0 if new == text else "docs/spec/numerics.md: Appendix A differs from coefficients.h; run scripts/append_coefficients.py")
document.write_text(new)
