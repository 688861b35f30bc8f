"""Start the app: ``python app.py`` is ``workbench app``, with the same options."""

import sys

from workbench.cli import main

if __name__ == "__main__":
    sys.exit(main(["app", *sys.argv[1:]]))
