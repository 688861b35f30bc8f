"""The app as its own process on a recording made for the tests: ``python serve.py FOLDER PORT``."""

import sys
from pathlib import Path

from workbench.runs import recorded
from workbench.ui.app import launch

if __name__ == "__main__":
    recorded.RECORDED = Path(sys.argv[1])
    launch(port=int(sys.argv[2]), quiet=True)
