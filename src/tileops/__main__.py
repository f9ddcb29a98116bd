"""``python -m tileops``: the command line."""

from tileops.cli import main

if __name__ == "__main__":
    main()
