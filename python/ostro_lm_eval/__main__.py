"""python -m ostro_lm_eval WORDS: as `lm_eval WORDS`, with `--model ostro`."""
from lm_eval.__main__ import cli_evaluate

import ostro_lm_eval  # noqa: F401 (registers the model)

if __name__ == "__main__":
    cli_evaluate()
