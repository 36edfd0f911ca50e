"""Ostro as a Python package: the program `ostro`, and its models, runs and servers as functions.

    import ostro
    model = ostro.load("runs/nano")
    print(model.generate_text("the ", max_tokens=64, temperature=0.8, seed=1))

The command `ostro` and `python -m ostro` start the program; `ostro.program.path()` says where it lies. The functions need
Python 3.11 or newer and numpy, and are loaded when the first of them is named.
"""

_PLACES = {"Error": "module", "version": "module", "load": "model", "Model": "model", "Score": "model", "Answer": "model",
           "train": "run", "Run": "run", "Step": "run", "verify": "run", "Verdict": "run", "serve": "server",
           "Server": "server"}
__all__ = sorted(_PLACES)


def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError(f"module 'ostro' has no attribute '{name}'")
    import importlib
    importlib.import_module("ostro.module")  # says what is missing here
    value = getattr(importlib.import_module(f"ostro.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return [*globals(), *__all__]
