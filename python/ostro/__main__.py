"""`python -m ostro` is the command `ostro`."""
from ostro.program import main

if __name__ == "__main__":
    main()
