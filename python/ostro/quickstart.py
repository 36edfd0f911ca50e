"""`python -m ostro.quickstart [words]`: the quickstart (scripts/quickstart.sh) with the program of this package."""
import os
import sys

from ostro.program import path


def main():
    program = path()
    script = program.parent.parent / "share/ostro/scripts/quickstart.sh"
    try:
        os.execvp("bash", ["bash", str(script), "--program", str(program), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"error: cannot start bash for {script}: {error.strerror}")


if __name__ == "__main__":
    main()
