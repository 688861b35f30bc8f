"""The command line: thin words over the rooms above. `workbench --help` lists the commands.

Exit codes: 0 done, 1 failed (or the doctor found something that stops), 2 a command or value that cannot be used,
130 interrupted. Results go to stdout, everything else to stderr. No torch is imported unless something is sampled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from workbench.cli.parser import build_parser, parse
from workbench.errors import InputError

__all__ = ["build_parser", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; what a person got wrong is one sentence on stderr, no traceback."""
    _harmless_streams()
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        code = int(args.run(args))
        sys.stdout.flush()  # a reader that went away shows here, not while the interpreter shuts down
        return code
    except InputError as error:
        return _complain(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # what a shell reports for any program whose reader went away
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        return _complain(f"{error.name} is not installed; `workbench doctor` names the command that adds it.", 1)
    except OSError as error:
        return _complain(f"{error.filename or 'system'}: {error.strerror or error}.", 1)
    except SystemExit as end:  # argparse after --help and --version
        return end.code if isinstance(end.code, int) else 0


def _complain(sentence: str, code: int) -> int:
    print(f"workbench: {' '.join(sentence.split())}", file=sys.stderr)
    return code


def _harmless_streams() -> None:
    """A character that the terminal's encoding lacks is written as its escape instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
