#!/usr/bin/env python3
"""Tests that checkpoints that differ from what the run's chain says are found.

verify names each, the commands that read one refuse it, and training continues from an honest one, with a warning, to
the same chain. Forged ones have hashes that all fit each other: with --unchecked every command takes them, which shows
that only the chain reveals them.

    forged_test.py --ostro BINARY [CASE...]
"""

import sys

from forged_chains import ForgedChains
from forged_checkpoints import ForgedCheckpoints
from forged_damage import DamagedRuns
from forged_runs import ForgedRuns
from forged_samples import SampledRuns
from forged_training import ForgedTraining
from harness import run_cases


class Cases(ForgedCheckpoints, DamagedRuns, ForgedChains, ForgedTraining, SampledRuns):
    """All cases, in the order of these classes, over one workspace and one good run."""


if __name__ == "__main__":
    sys.exit(run_cases(Cases, helpers=vars(ForgedRuns)))
