"""Runs lm-evaluation-harness with Ostro's model: python -m ostro_lm_eval WORDS is `lm_eval --model ostro WORDS`."""
from lm_eval.__main__ import cli_evaluate

import ostro_lm_eval  # noqa: F401 (registers the model)

if __name__ == "__main__":
    cli_evaluate()
