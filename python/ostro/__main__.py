"""`python -m ostro` is the command `ostro`."""
from ostro.program import main

main()
