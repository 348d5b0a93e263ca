"""``python -m surrokit``: the command line, where the command itself is not on the path."""

from surrokit.cli.main import main

if __name__ == "__main__":
    main()
