"""The doctor on machines described to it: a Colab T4, laptops, broken pairs (CASES U1, U2)."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.preflight import facts as facts_module
from workbench.preflight.backends import choose_backend
from workbench.preflight.doctor import diagnose
from workbench.preflight.facts import (
    Facts,
    Gpu,
    gather_facts,
    installed_packages,
    memory_bytes,
    nvidia_gpus,
    parse_gpus,
    torch_build,
)
from workbench.preflight.findings import Finding, Level, findings_text, ranked
from workbench.preflight.pins import pinned, pinned_versions

ROOT = Path(__file__).parents[2]
GIB = 2**30
T4 = Gpu("Tesla T4", 15360, "580.82.07", 7.5)
H100 = Gpu("NVIDIA H100 80GB HBM3", 81559, "580.82.07", 9.0)
WITHOUT_UNSLOTH = {n: v for n, v in pinned()["packages"].items() if n not in ("unsloth", "unsloth-zoo", "bitsandbytes")}

LAPTOP = Facts(
    packages=WITHOUT_UNSLOTH,
    memory_total=16 * GIB,
    memory_available=9 * GIB,
    disk_free=100 * GIB,
    models={"nano": True, "smollm2": True},
    chromium="/usr/bin/chromium",
)
COLAB = dataclasses.replace(
    LAPTOP, packages=pinned()["packages"], gpus=(T4,), torch_cuda="13.0", runtime="colab", cpu_count=2
)


def with_packages(base: Facts, **versions: str | None) -> Facts:
    """The facts with these packages at other versions; None removes one."""
    packages = {**base.packages, **{name.replace("_", "-"): version for name, version in versions.items()}}
    return dataclasses.replace(base, packages={n: v for n, v in packages.items() if v is not None})


def found(facts: Facts, field: str) -> Finding:
    matching = [finding for finding in diagnose(facts).findings if finding.field == field]
    assert matching, f"nothing about {field} in {diagnose(facts).findings}"
    return matching[0]


def test_a_laptop_with_the_tested_versions_has_nothing_in_its_way():
    report = diagnose(LAPTOP)
    assert report.findings == ()
    assert (report.backend.name, report.backend.device) == ("lab", "cpu")
    assert report.to_text().endswith("Nothing stands in the way.")


def test_u1_colab_t4_runs_unsloth_and_is_told_about_float16_and_the_share_link():
    report = diagnose(COLAB)
    assert not report.stops
    assert report.backend.name == "unsloth"
    assert found(COLAB, "gpu").message.startswith("This GPU computes bfloat16 only in software")
    assert found(COLAB, "runtime").fix == "workbench app --share --auth USER:PASSWORD"


@pytest.mark.parametrize(
    ("package", "version", "pair"),
    [
        ("trl", "1.16.0", "unsloth 2026.10.9 needs trl<=1.15.0, and trl 1.16.0 is installed."),
        (
            "transformers",
            "5.18.1",
            "unsloth 2026.10.9 needs transformers<=5.17.0, and transformers 5.18.1 is installed.",
        ),
        ("datasets", "5.0.0", "unsloth 2026.10.9 needs datasets<5, and datasets 5.0.0 is installed."),
        ("torch", "2.15.0+cu130", "unsloth 2026.10.9 needs torch<2.15, and torch 2.15.0+cu130 is installed."),
    ],
)
def test_u1_a_pair_unsloth_cannot_work_with_is_named_and_stops(package, version, pair):
    report = diagnose(with_packages(COLAB, **{package: version}))
    assert report.stops
    first = report.findings[0]
    assert (first.level, first.message) == (Level.STOP, pair)
    assert first.fix == f'pip install "{package}=={pinned()["packages"][package]}"'


def test_u1_a_pair_nobody_met_yet_is_found_from_what_packages_declare():
    declared = {"transformers": ("huggingface-hub<2.0,>=1.5.0", 'tomli; python_version < "3.11"')}
    facts = with_packages(dataclasses.replace(LAPTOP, requirements=declared), huggingface_hub="2.1.0")
    finding = diagnose(facts).findings[0]
    assert finding.level is Level.STOP
    assert "transformers 5.17.0 needs huggingface-hub<2.0,>=1.5.0, and huggingface-hub 2.1.0" in finding.message
    assert not any("tomli" in f.message for f in diagnose(facts).findings), "its marker does not apply"


def test_u1_torch_moved_away_from_torchvision_stops():
    declared = {"torchvision": ("torch==2.12.0",)}
    facts = with_packages(dataclasses.replace(COLAB, requirements=declared), torchvision="0.27.0+cu130")
    assert (
        diagnose(facts).findings[0].message
        == "torchvision 0.27.0+cu130 needs torch==2.12.0, and torch 2.13.0 is installed."
    )
    assert diagnose(facts).stops


def test_a_pair_is_named_once_although_metadata_and_experience_agree():
    declared = {"unsloth": ("trl!=0.19.0,<=1.15.0",)}
    facts = with_packages(dataclasses.replace(COLAB, requirements=declared), trl="1.16.0")
    assert len([f for f in diagnose(facts).findings if f.field == "unsloth"]) == 1


def test_unsloth_and_its_zoo_must_have_one_version():
    assert found(with_packages(COLAB, unsloth_zoo="2026.9.1"), "unsloth").level is Level.STOP


def test_trl_1_15_0_stops_on_a_cpu_and_not_on_a_gpu():
    assert found(with_packages(LAPTOP, trl="1.15.0"), "trl").fix == 'pip install "trl==1.14.2"'
    assert diagnose(with_packages(LAPTOP, trl="1.15.0")).stops
    assert not diagnose(with_packages(COLAB, trl="1.15.0")).stops


def test_u2_a_cpu_never_touches_unsloth():
    facts = with_packages(LAPTOP, unsloth="2026.10.9", unsloth_zoo="2026.10.9")
    declared = {"unsloth": ("xformers>=0.0.27",), "unsloth-zoo": ("trl==9.9",)}
    report = diagnose(dataclasses.replace(facts, requirements=declared))
    assert report.backend.name == "lab"
    assert not report.stops
    assert "not used on a CPU" in found(facts, "unsloth").message
    assert not any("xformers" in finding.message for finding in report.findings)


def test_u2_a_tpu_runtime_is_told_that_the_cpu_would_run():
    facts = dataclasses.replace(LAPTOP, tpu=True, runtime="colab")
    assert found(facts, "tpu").fix == "choose a GPU runtime"
    assert "a TPU" in diagnose(facts).to_text()


@pytest.mark.parametrize(
    ("changes", "obstacle", "fix"),
    [
        ({"torch_cuda": None}, "this build of torch has no CUDA", 'pip install --force-reinstall "torch==2.13.0"'),
        ({"torch_cuda": None, "system": "Windows"}, "has no CUDA", "pytorch.org/get-started"),
        ({"visible_devices": ""}, "hides the Tesla T4", "unset CUDA_VISIBLE_DEVICES"),
        ({"visible_devices": "-1"}, "hides the Tesla T4", "unset CUDA_VISIBLE_DEVICES"),
        (
            {"gpus": (dataclasses.replace(T4, driver="550.54.15"),)},
            "driver 550.54.15 is too old",
            "newer NVIDIA driver",
        ),
        ({"gpus": (dataclasses.replace(T4, compute_capability=7.0),)}, "needs compute capability 7.5", "get-started"),
    ],
)
def test_a_gpu_that_torch_cannot_use_is_a_warning_with_its_cure(changes, obstacle, fix):
    facts = dataclasses.replace(COLAB, **changes)
    finding = found(facts, "torch")
    assert finding.level is Level.WARN
    assert obstacle in finding.message
    assert fix in finding.fix
    assert (choose_backend(facts).name, choose_backend(facts).device) == ("lab", "cpu")


def test_a_hidden_gpu_is_unhidden_by_naming_it():
    assert choose_backend(dataclasses.replace(COLAB, visible_devices="0")).device == "cuda"


def test_without_unsloth_a_gpu_runs_trl_and_the_command_that_adds_unsloth_is_shown():
    facts = dataclasses.replace(LAPTOP, gpus=(H100,), torch_cuda="13.0")
    assert choose_backend(facts).name == "trl"
    assert found(facts, "unsloth").fix == 'pip install "unsloth==2026.10.9" "bitsandbytes==0.50.2"'


def test_an_old_gpu_runs_trl_instead_of_unsloth():
    facts = dataclasses.replace(COLAB, gpus=(Gpu("Tesla P100", 16384, "535.1", 6.0),), torch_cuda="12.6")
    assert choose_backend(facts).name == "trl"
    assert "compute capability 7.0" in found(facts, "unsloth").message


def test_several_gpus_need_one_process_each():
    facts = dataclasses.replace(COLAB, gpus=(H100, H100))
    assert "accelerate launch --num_processes 2" in found(facts, "gpu").fix


def test_a_core_installation_scores_and_is_told_what_to_add():
    core = dataclasses.replace(LAPTOP, packages={n: pinned()["packages"][n] for n in pinned()["extras"]["core"]})
    report = diagnose(core)
    assert report.backend.name == "none"
    assert not report.stops
    assert found(core, "app").fix == 'pip install "gradio==6.31.0" "plotly==7.1.0"'
    assert found(core, "train").level is Level.WARN


def test_a_missing_core_package_stops():
    assert found(with_packages(LAPTOP, pyarrow=None), "core").level is Level.STOP


@pytest.mark.parametrize(
    ("version", "stops"), [((3, 10, 9), True), ((3, 11, 0), False), ((3, 13, 2), False), ((3, 14, 0), True)]
)
def test_only_the_declared_python_versions_pass(version, stops):
    assert diagnose(dataclasses.replace(LAPTOP, python=version)).stops is stops


def test_other_versions_than_the_tested_are_a_note_and_other_majors_a_warning():
    assert found(with_packages(LAPTOP, gradio="6.32.1"), "versions").level is Level.NOTE
    finding = found(with_packages(LAPTOP, gradio="7.0.0"), "versions")
    assert (finding.level, finding.fix) == (Level.WARN, 'pip install "gradio==6.31.0"')


def test_a_local_build_of_the_tested_version_is_the_tested_version():
    assert diagnose(with_packages(LAPTOP, torch="2.13.0+cpu")).findings == ()


def test_versions_that_cannot_be_read_are_no_crash():
    facts = dataclasses.replace(LAPTOP, requirements={"trl": ("accelerate>=1.4", "not a requirement!!")})
    diagnose(with_packages(facts, accelerate="built-by-hand"))


def test_little_memory_little_disk_and_absent_models_are_told():
    facts = dataclasses.replace(
        LAPTOP, memory_available=GIB // 2, disk_free=GIB // 2, models={"nano": False, "smollm2": False}
    )
    levels = {finding.field: finding.level for finding in diagnose(facts).findings}
    assert levels == {"memory": "warn", "disk": "warn", "nano": "warn", "smollm2": "note"}


def test_the_report_is_json_and_says_what_was_tested():
    document = json.loads(json.dumps(diagnose(COLAB).to_json(), allow_nan=False))
    assert document["backend"]["name"] == "unsloth"
    assert document["facts"]["gpus"][0]["name"] == "Tesla T4"
    assert document["tested"] == pinned_versions()
    assert {row["level"] for row in document["findings"]} <= {"stop", "warn", "note"}


def test_findings_are_ranked_without_repetition():
    note, stop = Finding(Level.NOTE, "a", "first."), Finding(Level.STOP, "b", "last.")
    assert ranked([note, stop, note]) == (stop, note)
    assert findings_text(ranked([note, stop])).splitlines()[0] == "stop  b: last."


def test_tested_pins_are_those_of_constraints_txt():
    script = ROOT / "scripts" / "write_tested_pins.py"
    namespace: dict = {"__file__": str(script), "__name__": "write_tested_pins"}
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), namespace)
    assert pinned() == namespace["tested_pins"](), "run `python scripts/write_tested_pins.py`"
    assert pinned()["packages"]["torch"] in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def answering(stdout="", code=0, error=None):
    def run(command, **options):
        if error:
            raise error
        return subprocess.CompletedProcess(command, code, stdout, "")

    return run


def test_nvidia_smi_is_read_and_its_failures_are_kept_as_evidence(monkeypatch):
    monkeypatch.setattr(facts_module.shutil, "which", lambda name, path=None: "/usr/bin/nvidia-smi")
    gpus, error = nvidia_gpus(answering("Tesla T4, 15360, 580.82.07, 7.5\nNVIDIA GB10, [N/A], 580.1, 12.1\n"))
    assert gpus == (T4, Gpu("NVIDIA GB10", None, "580.1", 12.1))
    assert error == ""
    assert nvidia_gpus(answering("NVIDIA-SMI has failed because ...\n", 9)) == (
        (),
        "nvidia-smi: NVIDIA-SMI has failed because ...",
    )
    assert "timed out" in nvidia_gpus(answering(error=subprocess.TimeoutExpired("nvidia-smi", 10)))[1]
    facts = dataclasses.replace(LAPTOP, gpu_error="nvidia-smi: has failed")
    assert found(facts, "gpu").evidence == "nvidia-smi: has failed"
    assert choose_backend(facts).why == "on the CPU, because nvidia-smi does not answer."


def test_lines_that_nvidia_smi_never_writes_are_skipped():
    assert parse_gpus("garbage\n\n") == ()
    assert parse_gpus("A, comma in a name, 8192, 581.1, 8.9")[0].name == "A, comma in a name"


def test_the_cuda_of_torch_is_read_without_importing_it(tmp_path, monkeypatch):
    for text, wanted in [
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", ("13.0", None)),
        ("cuda: Optional[str] = None\nhip = '7.1'\n", (None, "7.1")),
        ("cuda = '12.6'\n", ("12.6", None)),
    ]:
        (tmp_path / "version.py").write_text(text)
        where = type("Found", (), {"locate_file": lambda self, name: tmp_path / "version.py"})()
        monkeypatch.setattr(facts_module.metadata, "distribution", lambda name, where=where: where)
        assert torch_build() == wanted


def test_a_container_limit_counts_as_the_memory(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n")
    assert memory_bytes(tmp_path / "meminfo", tmp_path) == (16 * GIB, 8 * GIB)
    (tmp_path / "memory.max").write_text(str(4 * GIB))
    (tmp_path / "memory.current").write_text(str(3 * GIB))
    (tmp_path / "memory.stat").write_text(f"anon 5\ninactive_file {2 * GIB}\n")
    assert memory_bytes(tmp_path / "meminfo", tmp_path) == (4 * GIB, 3 * GIB)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_bytes(tmp_path / "meminfo", tmp_path) == (16 * GIB, 8 * GIB)
    assert memory_bytes(tmp_path / "absent", tmp_path)[1] is None


def test_this_machine_is_described_by_what_runs_on_it():
    here = gather_facts(["numpy", "no-such-package"], {"nano": True})
    assert here.python == sys.version_info[:3]
    assert here.packages["numpy"] == __import__("numpy").__version__
    assert "no-such-package" not in here.packages
    assert diagnose(here).to_text()


def test_what_a_package_requires_is_looked_up_too():
    packages, requirements = installed_packages(["jsonschema"])
    assert {"jsonschema", "attrs", "referencing"} <= set(packages)
    assert any(line.startswith("attrs") for line in requirements["jsonschema"])
    assert not any("extra" in line for line in requirements["jsonschema"])
