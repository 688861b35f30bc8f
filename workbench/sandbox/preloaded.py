"""The modules a child can import: all of them are loaded before the walls go up, since no file can be opened after.

Anything else is a ``ModuleNotFoundError`` in the child. Some modules are here although they can do nothing behind the
walls (``socket``, ``subprocess``): importing them is no offence, and an attack should be stopped by the kernel, not by
a missing import.
"""

from __future__ import annotations

import contextlib
import importlib

MODULES = (
    *("abc", "argparse", "array", "ast", "base64", "binascii", "bisect", "builtins", "calendar", "cmath", "codecs"),
    *("collections", "collections.abc", "colorsys", "configparser", "contextlib", "contextvars", "copy"),
    *("copyreg", "csv", "ctypes", "dataclasses", "datetime", "decimal", "difflib", "dis", "email.utils", "enum"),
    *("errno", "fnmatch", "fractions", "functools", "gc", "getopt", "glob", "graphlib", "hashlib", "heapq", "hmac"),
    *("html", "html.entities", "html.parser", "inspect", "io", "ipaddress", "itertools", "json", "keyword"),
    *("linecache", "locale", "logging", "math", "numbers", "opcode", "operator", "os", "os.path", "pathlib"),
    *("pickle", "platform", "pprint", "posixpath", "queue", "random", "re", "reprlib", "resource", "sched"),
    *("secrets", "select", "shlex", "shutil", "signal", "socket", "stat", "statistics", "string", "stringprep"),
    *("struct", "subprocess", "symtable", "sys", "sysconfig", "tempfile", "textwrap", "threading", "time"),
    *("timeit", "token", "tokenize", "traceback", "types", "typing", "unicodedata", "urllib.parse", "uuid"),
    *("warnings", "weakref", "zlib", "_strptime"),
)
CODECS = (
    *("ascii", "latin-1", "iso8859-15", "cp1251", "cp1252", "cp437", "koi8-r", "utf-7", "utf-8-sig", "utf-16"),
    *("utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "gbk", "gb18030", "big5", "shift_jis", "euc-jp"),
    *(
        "euc-kr",
        "idna",
        "punycode",
        "unicode-escape",
        "raw-unicode-escape",
        "hex",
        "base64",
        "rot13",
        "zlib",
        "quopri",
        "uu",
    ),
)


def preload(extra: tuple[str, ...] = ()) -> None:
    """Import every module of the list and ``extra``, and touch what the standard library would load later on its own.

    :raises ImportError: for an ``extra`` module that is not installed.
    """
    for name in MODULES:
        with contextlib.suppress(ImportError):  # a Python built without it; the child will say so when asked for it
            importlib.import_module(name)
    for name in extra:
        importlib.import_module(name)
    import codecs
    import datetime
    import hashlib

    for name in CODECS:
        with contextlib.suppress(LookupError):
            codecs.lookup(name)
    for name in hashlib.algorithms_guaranteed:  # OpenSSL reads its providers at first use
        hashlib.new(name, b"")
    datetime.datetime.strptime("2026-01-31 Mon", "%Y-%m-%d %a")
