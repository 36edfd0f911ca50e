"""lm-evaluation-harness over the program `ostro`: its model "ostro", which asks `ostro score` (docs/guide/evaluate.md).

    import lm_eval, ostro_lm_eval
    lm_eval.simple_evaluate(model="ostro", model_args="checkpoint=runs/nano", tasks=["arc_easy"])

or `python -m ostro_lm_eval` in place of `lm_eval`.
"""
from ostro_lm_eval.model import OstroLM

__all__ = ["OstroLM"]
