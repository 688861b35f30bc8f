"""The self-test picks the tier: an open door, or a wrong honest answer, and nothing is run at all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import landlockpy
import pytest
import seccompy

import workbench
from workbench.sandbox import ForkServer, InfrastructureError, Outcome, Reason, Sandbox, Tier, tiers
from workbench.sandbox.selftest import CANARIES, examine


class OpenDoor:
    """An engine whose children let one attack through (or answer an honest program wrongly)."""

    tier = Tier.FORK_SERVER
    layers = MappingProxyType({})
    alive = True
    options = "open door"

    def __init__(self, through=None, honest=True):
        self.through, self.honest, self.closed = through, honest, 0
        self.options = f"{through} {honest}"

    def start(self):
        pass

    def open(self, limits):
        return self

    def kill(self):
        pass

    def close(self):
        self.closed += 1

    def ask(self, verb, *payload, seconds):
        if verb == "load":
            return Outcome()
        return {
            self.through: Outcome(True),
            "loop": Outcome(reason=Reason.TIMEOUT),
            "bomb": Outcome(reason=Reason.MEMORY),
            "honest": Outcome([("cat", 2), ("dog", 1)], stdout="counting\n")
            if not self.honest
            else Outcome(([("cat", 2), ("dog", 1)], 126410606437752, {1, 2, 3}), stdout="counting\n"),
        }.get(payload[0], Outcome(reason=Reason.EXCEPTION))


def test_there_are_ten_canaries_and_all_are_denied_here():
    assert len(CANARIES) == 10
    with Sandbox(workers=1) as box:
        assert box.status.tier is Tier.FORK_SERVER
        assert [c.name for c in box.status.canaries if not c.denied] == []
        assert len(box.status.canaries) == 13
        assert box.status.layers["seccomp"]


@pytest.mark.parametrize("name", CANARIES)
def test_one_open_door_closes_the_tier(name):
    with Sandbox(workers=1, engine=OpenDoor(through=name)) as box:
        assert box.status.tier is Tier.NONE
        assert name in box.status.why
        outcome = box.call("def f(): return 1", "f")
    assert (outcome.value, outcome.reason) == (None, Reason.INFRASTRUCTURE)
    assert "no sandbox here" in outcome.detail


def test_a_wrong_honest_answer_closes_the_tier_and_a_right_one_opens_it():
    assert Sandbox(engine=OpenDoor(honest=False)).status.tier is Tier.NONE
    assert Sandbox(engine=OpenDoor()).status.available


def test_without_linux_or_a_second_tier_code_is_not_run_and_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(tiers.wasm, "installed", lambda: False)
    monkeypatch.setattr(tiers.wasm, "prepared", lambda: False)
    with Sandbox() as box:
        assert not box.status.available
        assert "not Linux" in box.status.why
        assert "extra `wasm`" in box.status.remedy
        assert box.run("print(1)").reason is Reason.INFRASTRUCTURE


def test_a_child_that_cannot_raise_its_walls_runs_nothing():
    engine = ForkServer()
    impossible = SimpleNamespace(memory_mb=64, lifetime=2.0**80, output_kb=64, reply_kb=64)
    try:
        with pytest.raises(InfrastructureError, match="the walls did not go up: OverflowError"):
            engine.open(impossible)
        assert engine.pid is not None  # the server lives on
    finally:
        engine.close()


def readable_python():
    """An interpreter that an ordinary user may execute: ours, or the system's of at least our oldest version."""
    for name in (os.path.realpath(sys.executable), shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        if name and all(os.stat(folder).st_mode & 0o001 for folder in Path(name).parents):
            ask = "import sys; sys.exit(sys.version_info < (3, 11))"
            if subprocess.run([name, "-c", ask], check=False).returncode == 0:
                return name
    return None


ORDINARY = """
import os
assert os.getuid() == 65534 and os.geteuid() != 0
from workbench.sandbox import ForkServer, Sandbox
from workbench.sandbox.selftest import examine
with Sandbox(workers=2, engine=ForkServer()) as box:
    status = box.status
    print(status.tier, [c.name for c in status.canaries if not c.denied], status.layers["user"])
    print(box.call("def f(x): return x + 1", "f", [41], seconds=20.0).value)
    print(box.call("import os\\ndef f(): return os.fork()", "f", seconds=20.0).reason)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_has_the_same_walls(tmp_path):
    """The whole of it as nobody, the trusted side included."""
    python = readable_python()
    if python is None:
        pytest.skip("no interpreter that an ordinary user may execute")
    packages = tmp_path / "packages"  # copies, readable whatever the modes of the originals' folders
    for package in (workbench, landlockpy, seccompy):
        origin = Path(package.__file__).parent
        wanted = origin / "sandbox" if package is workbench else origin
        shutil.copytree(
            wanted, packages / package.__name__ / ("sandbox" if package is workbench else ""), dirs_exist_ok=True
        )
    for name in ("__init__.py", "errors.py"):
        shutil.copy(Path(workbench.__file__).parent / name, packages / "workbench" / name)
    for folder in [packages, *packages.parents]:
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    done = subprocess.run(
        [python, "-B", "-c", ORDINARY],
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        env={"PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["fork_server [] the same user (65534)", "42", "exception"]


def test_the_self_test_itself_can_fail():
    found = {canary.name: canary.denied for canary in examine(OpenDoor(through="open_a_socket"))}
    assert found.pop("open_a_socket") is False
    assert all(found.values())
