"""The program `ostro`, which trains, checks and runs language models, as a Python package.

The command `ostro` and `python -m ostro` start it; `ostro.program.path()` says where it lies.
"""
