"""The same attacks against three sets of walls: as we are, as an ordinary user, and on a kernel without Landlock."""

import os

import pytest

from workbench.sandbox import ForkServer, Sandbox

NOBODY = 65534
SECRET = "SECRET-" + "4f1d" * 4  # what no child may ever find


@pytest.fixture(scope="package")
def secret():
    """What no child may ever find."""
    return SECRET


WALLS = {
    "as we are": {},
    "ordinary user": {"user": NOBODY if os.geteuid() == 0 else None},
    "ordinary user without Landlock": {"user": NOBODY if os.geteuid() == 0 else None, "landlock": False},
}


@pytest.fixture(scope="package")
def box():
    """A sandbox as a user gets it."""
    with Sandbox(workers=2) as made:
        assert made.status.available, made.status
        yield made


@pytest.fixture(scope="package")
def behind():
    """``behind(walls)``: a sandbox behind that set of walls, started by a process with a secret in its environment."""
    made = {}

    def sandbox(walls):
        if walls not in made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("WORKBENCH_TEST_SECRET", SECRET)
                made[walls] = Sandbox(workers=2, memory_mb=128, engine=ForkServer(**WALLS[walls]))
                assert made[walls].status.available, made[walls].status
        return made[walls]

    yield sandbox
    for box in made.values():
        box.close()


@pytest.fixture(params=WALLS, ids=lambda name: name.replace(" ", "-"))
def walled(request, behind):
    """The sandbox behind each set of walls in turn."""
    return behind(request.param)
