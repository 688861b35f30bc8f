"""The command line: results on stdout, one sentence on stderr, exit codes that mean something, nothing heavy loaded."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.cli import commands, main
from workbench.cli.sampling import ProgressLine, sample_groups
from workbench.errors import InputError
from workbench.models.registry import ROOM
from workbench.preflight import doctor as doctor_module
from workbench.preflight.doctor import diagnose
from workbench.preflight.facts import Facts
from workbench.rewards import score_group
from workbench.runs.groups import read_groups, write_groups
from workbench.tasks import get_task, load_tasks
from workbench.types import Completion, Group, SamplingConfig

HEAVY = ("torch", "transformers", "trl", "peft", "gradio", "plotly", "pandas", "datasets", "pyarrow")
HOSTILE = "\x1b[31m\ud800 caf\u00e9 \U0001f600 \u202e"


def right_answer(task) -> str:
    calls = [{"name": call.name, "arguments": call.gold()} for call in task.expected]
    return "\n".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls) or "None of the tools can do that."


class EveryOther:
    """A sampler that answers right in even rows and rambles in odd ones; it remembers what it was asked."""

    def __init__(self, interrupt_after: int | None = None) -> None:
        self.asked: list[tuple[str, SamplingConfig]] = []
        self.interrupt_after = interrupt_after

    def __call__(self, task, sampling, on_token=None):
        if self.interrupt_after == len(self.asked):
            raise KeyboardInterrupt
        self.asked.append((task.id, sampling))
        texts = [HOSTILE if k % 2 else right_answer(task) for k in range(sampling.num_generations)]
        rows = tuple(Completion(text, (1, 2), ("a", HOSTILE), (-0.1, -0.2), (0.3, 0.4)) for text in texts)
        return Group(task, rows, score_group(task, rows), "nano", sampling)


@pytest.fixture
def sampler(monkeypatch):
    every_other = EveryOther()
    monkeypatch.setattr(commands, "sampler_of", lambda model, progress: every_other)
    return every_other


def parsed(text: str) -> dict:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def workbench(*words: str, **options) -> subprocess.CompletedProcess:
    env = {**os.environ, "COLUMNS": "120", **options.pop("env", {})}
    command = [sys.executable, "-m", "workbench", *words]
    return subprocess.run(command, capture_output=True, timeout=120, check=False, env=env, **options)


@pytest.fixture
def answers(tmp_path) -> Path:
    rows = [
        {"task_id": f"desk-{i}", "completions": [right_answer(get_task(f"desk-{i}")), "", HOSTILE]} for i in range(3)
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------- sample


def test_sample_prints_one_strict_json_document(sampler, capsys):
    words = "sample --model nano --tasks desk --num-generations 8 --seed 0 --json"
    assert main(words.split()) == 0
    out, err = capsys.readouterr()
    document = parsed(out)
    group = document["groups"][0]
    assert err == ""
    assert len(group["completions"]) == 8
    assert (group["pushed_up"], group["pushed_down"], group["state"]) == (4, 4, "alive")
    assert sum(row["advantage"] for row in group["completions"]) == pytest.approx(0, abs=1e-9)
    assert document["weights"] == {"task_completion": 0.4, "tool_accuracy": 0.3, "efficiency": 0.15, "safety": 0.15}
    assert document["summary"]["frac_reward_zero_std"] == 0
    assert "tokens" not in group["completions"][0]


def test_sample_prints_a_table_for_people(sampler, capsys):
    assert main(["sample", "--task-id", "desk-3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("desk-3, nano, K 8, temperature 1, top_p 1, seed 0\nPrompt    ")
    assert "4 pushed up, 4 pushed down" in out
    assert "\x1b" not in out


def test_sample_prints_csv_and_tokens_on_request(sampler, capsys):
    assert main(["sample", "--csv", "--groups", "2", "-K", "2"]) == 0
    assert len(list(csv.reader(io.StringIO(capsys.readouterr().out)))) == 5
    assert main(["sample", "--json", "--tokens"]) == 0
    row = parsed(capsys.readouterr().out)["groups"][0]["completions"][0]
    assert (row["token_ids"], row["tokens"][1], row["logps"]) == ([1, 2], HOSTILE, [-0.1, -0.2])


def test_sample_takes_trls_underscores_and_seeds_every_group_on_its_own(sampler, capsys):
    assert main(["sample", "--num_generations=4", "--max_completion_length", "7", "--groups", "3", "--seed", "5"]) == 0
    assert [sampling.seed for _, sampling in sampler.asked] == [5, 6, 7]
    assert {sampling.num_generations for _, sampling in sampler.asked} == {4}
    assert {sampling.max_completion_length for _, sampling in sampler.asked} == {7}
    assert [task_id for task_id, _ in sampler.asked] == [t.id for t in load_tasks("desk", "held_out", 3, seed=5)]
    assert "3 groups, 12 completions: mean reward" in capsys.readouterr().out


def test_sample_chooses_tasks_by_id_and_by_place(sampler, capsys):
    assert main(["sample", "--task-id", "desk-7", "--task-id", "bfcl-simple_python_1"]) == 0
    assert main(["sample", "--prompt-index", "2", "--split", "all"]) == 0
    assert [task_id for task_id, _ in sampler.asked] == ["desk-7", "bfcl-simple_python_1", load_tasks("desk")[2].id]


def test_sample_keeps_the_groups(sampler, capsys, tmp_path):
    out = tmp_path / "g.parquet"
    assert main(["sample", "--groups", "2", "--out", str(out)]) == 0
    assert [group.task.id for group in read_groups(out)] == [task_id for task_id, _ in sampler.asked]
    assert "Wrote 2 groups (16 completions)" in capsys.readouterr().err


def test_ctrl_c_is_quiet_and_keeps_what_was_sampled(sampler, capsys, tmp_path):
    sampler.interrupt_after = 2
    out = tmp_path / "g.parquet"
    assert main(["sample", "--groups", "5", "--out", str(out)]) == 130
    assert len(read_groups(out)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Wrote 2 groups")


def test_weights_and_conventions_reach_the_numbers(sampler, capsys):
    main(["sample", "--json", "--weights", "task_completion=1,tool_accuracy=0,efficiency=0,safety=0"])
    group = parsed(capsys.readouterr().out)["groups"][0]
    assert {row["reward"] for row in group["completions"]} == {0.0, 1.0}
    assert group["shares"]["task_completion"] == 1
    main(["sample", "--json", "--std", "population", "--scale-rewards", "none"])
    document = parsed(capsys.readouterr().out)
    assert (document["std"], document["scale_rewards"]) == ("population", "none")


# ----------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("sampel", "did you mean 'sample'?"),
        ("sample --num-generatons 8", "did you mean '--num-generations'?"),
        ("sample --num_generatons 8", "did you mean '--num-generations'?"),
        ("sample --learnign-rate=3e-4", "'--learnign-rate' is not known"),
        ("sample --max_prompt_length=512", "did you mean '--max-completion-length'?"),
        ("sample --num 8", "'--num' is not known"),
        ("sample --seed x", "--seed: 'x' is not a whole number"),
        ("sample --temperature hot", "--temperature: 'hot' is not a number"),
        ("sample --temperature nan", "temperature: nan is outside"),
        ("sample --num-generations 1", "a group needs at least 2"),
        ("sample --num-generations 0", "a group needs at least 2"),
        ("sample --top-p 0", "nearest allowed value is 0.01"),
        ("sample --seed -1", "seed: -1 is outside"),
        ("sample --groups 0", "limit: 0 is not a number of tasks"),
        ("sample --model nanno", "did you mean 'nano'?"),
        ("sample --tasks desks", "did you mean 'desk'?"),
        ("sample --split heldout", "did you mean 'held_out'?"),
        ("sample --task-id dsk-3", "desk"),
        ("sample --prompt-index 99999", "prompt_index: 99999 is outside"),
        ("sample --weights safty=1", "did you mean 'safety'?"),
        ("sample --std sampel", "did you mean 'sample'?"),
        ("sample --json --csv", "not allowed with"),
        ("sample --out groups.json", "must end in .parquet"),
        ("sample --out no/such/folder/g.parquet", "cannot be written"),
        ("sample extra", "'extra' is one word too many"),
        ("score", "required: FILE"),
        ("score no-such-file.jsonl", "there is no such file"),
        ("app --auth admin", "expected USER:PASSWORD"),
        ("app --port 99999", "port: 99999 is outside"),
        ("app --share", "without a password"),
        ("tasks lst", "did you mean 'list'?"),
        ("tasks list desks", "did you mean 'desk'?"),
        ("tasks show dsk-3", "desk"),
    ],
)
def test_c5_what_cannot_be_used_is_one_sentence_with_the_nearest_right_word(words, sentence, capsys, monkeypatch):
    monkeypatch.setattr(
        commands, "sampler_of", lambda *_: pytest.fail("a model was loaded before the values were checked")
    )
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("workbench: ")
    assert err.count("\n") == 1
    assert sentence in err


def test_a_missing_extra_is_a_sentence(monkeypatch, capsys, answers):
    def absent(model, progress):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(commands, "sampler_of", absent)
    assert main(["sample"]) == 1
    assert "torch is not installed; `workbench doctor` names the command" in capsys.readouterr().err


def test_a_folder_that_cannot_be_read_is_a_sentence(monkeypatch, capsys, answers):
    def denied(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert main(["score", str(answers)]) == 1
    assert capsys.readouterr().err == f"workbench: {answers}: Permission denied.\n"


def test_a_fault_of_ours_is_not_dressed_up_as_the_persons(monkeypatch):
    def broken(model, progress):
        raise RuntimeError("a bug")

    monkeypatch.setattr(commands, "sampler_of", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["sample"])


# -------------------------------------------------------------------------------------------------- score


def test_score_reads_json_lines_and_says_why(answers, capsys):
    assert main(["score", str(answers), "--reasons"]) == 0
    out = capsys.readouterr().out
    assert out.count("\nPrompt    ") == 3
    assert re.search(r"#2 task_completion.* 0\.00: ", out)
    assert "3 groups, 9 completions" in out


def test_score_reads_stdin(answers, tmp_path):
    done = workbench("score", "-", "--json", input=answers.read_bytes())
    assert done.returncode == 0
    first = parsed(done.stdout.decode())["groups"][0]
    assert first["sampling"] is None
    assert first["completions"][0]["scores"]["task_completion"]["value"] == 1.0
    assert first["completions"][2]["text"] == HOSTILE


def test_score_weighs_a_parquet_anew_without_judging_again(sampler, capsys, tmp_path, monkeypatch):
    path = tmp_path / "g.parquet"
    main(["sample", "--out", str(path)])
    monkeypatch.setattr("workbench.rewards.score_group", lambda *_: pytest.fail("the scores are in the file"))
    capsys.readouterr()
    assert main(["score", str(path), "--json", "--weights", "safety=0"]) == 0
    assert parsed(capsys.readouterr().out)["weights"]["safety"] == 0


def test_score_judges_what_has_no_scores_and_keeps_it(tmp_path, capsys):
    task = get_task("desk-3")
    bare = Group(task, (Completion(right_answer(task)), Completion("")))
    first, second = tmp_path / "bare.parquet", tmp_path / "scored.parquet"
    write_groups(first, [bare])
    assert main(["score", str(first), "--out", str(second)]) == 0
    assert read_groups(second)[0].scores == score_group(task, bare.completions)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "nothing in it to score"),
        (b"\xff\xfe", "neither parquet nor UTF-8"),
        (b"PAR1 torn", "not a readable parquet"),
        (b'{"task_id": "desk-3"}', "line 1: expected an object"),
        (b"\xef\xbb\xbf{", "line 1: not JSON"),
    ],
)
def test_score_refuses_files_it_cannot_use(content, sentence, tmp_path, capsys):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert main(["score", str(path)]) == 2
    assert sentence in capsys.readouterr().err


# -------------------------------------------------------------------------------------- doctor, tasks, app


def test_doctor_prints_a_report_and_a_json_document(capsys):
    code = main(["doctor"])
    assert "Backend" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == code
    document = parsed(capsys.readouterr().out)
    assert document["ok"] is (code == 0)
    assert document["facts"]["models"].keys() == {"nano", "smollm2"}


def test_doctor_exits_1_when_something_stops(monkeypatch, capsys):
    monkeypatch.setattr(doctor_module, "doctor", lambda models: diagnose(Facts(python=(3, 9, 0))))
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.count("\nstop  ") == 2  # Python, and the core packages


def test_tasks_are_listed_and_shown(capsys):
    assert main(["tasks"]) == 0
    assert "bfcl_simple" in capsys.readouterr().out
    assert main(["tasks", "list", "bfcl_simple", "--limit", "3", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3
    assert main(["tasks", "show", "desk-3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("desk-3, desk, ")
    assert "\nExpected\n" in out


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        (None, "this tokenizer has none"),
        ("{{ messages[-1].content }}", "does not write"),
        ("{{ no.such.thing }}", "it fails"),
    ],
)
def test_d2_a_template_that_cannot_show_the_tools_is_refused_with_a_fix(template, sentence, monkeypatch, capsys):
    tokenizers, transformers = pytest.importorskip("tokenizers"), pytest.importorskip("transformers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?", eos_token="?")
    tokenizer.chat_template = template
    pretended = type("Pretended", (), {"tokenizer": tokenizer})()
    monkeypatch.setattr("workbench.models.policy.load_policy", lambda name: pretended)
    assert main(["tasks", "show", "desk-3", "--model", "nano"]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert "with_tool_template" in err


def test_app_listens_on_this_machine_only_unless_told(monkeypatch, capsys):
    app = pytest.importorskip("workbench.ui.app")
    launched: list[tuple] = []
    monkeypatch.setattr(app, "launch", lambda *args, **options: launched.append((args, options)))
    assert main(["app"]) == 0
    assert (
        main(["app", "--host", "0.0.0.0", "--port", "7000", "--auth", "me:a:b", "--share", "--model", "smollm2"]) == 0
    )
    assert launched[0] == (("127.0.0.1", 7860), {"auth": None, "share": False})
    assert launched[1] == (("0.0.0.0", 7000), {"auth": ("me", "a:b"), "share": True})
    assert "http://0.0.0.0:7000/?model=smollm2" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------- whole processes


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["sample", "--help"], ["doctor"], ["tasks", "list"], ["app", "--help"]]
)
def test_u1_u2_nothing_heavy_is_imported(words):
    code = "import sys; from workbench.cli import main; main(sys.argv[1:])"
    code += f"; sys.stderr.write(repr(sorted(set({HEAVY}) & set(sys.modules))))"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "[]"
    assert done.stdout


def test_importing_the_package_imports_nothing_but_the_standard_library():
    code = f"import sys, workbench; sys.stderr.write(repr(sorted({{'numpy', *{HEAVY}}} & set(sys.modules))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "[]"


def test_scoring_imports_no_torch(answers):
    code = "import sys; from workbench.cli import main; code = main(sys.argv[1:])"
    code += f"; sys.stderr.write(repr((code, sorted(set({HEAVY}) & set(sys.modules)))))"
    command = [sys.executable, "-c", code, "score", str(answers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "(0, [])"


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize("form", [[], ["--reasons"], ["--json"], ["--csv"]])
def test_u6_hostile_text_survives_every_console(encoding, form, answers):
    done = workbench("score", str(answers), *form, env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout or form == ["--csv"]
    done.stdout.decode(encoding)


def test_a_reader_that_goes_away_is_no_error(answers):
    command = (
        f'"{sys.executable}" -m workbench score "{answers}" --json | head -c 20 >/dev/null; echo "${{PIPESTATUS[0]}}"'
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() in {"0", "141"}  # 0 when the document fitted into the pipe


def test_the_exit_code_reaches_the_shell():
    assert workbench("sampel").returncode == 2
    assert workbench("--version").stdout.startswith(b"grpo-workbench 0.")


def test_progress_is_silent_in_a_log_and_alive_on_a_terminal():
    class Stream:
        def __init__(self, terminal):
            self.terminal, self.text = terminal, ""

        def isatty(self):
            return self.terminal

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    event = type("Event", (), {"n_done": 3, "n_rows": 8, "tokens_per_second": 41.2})()
    task = get_task("desk-3")

    def sampler(task, sampling, on_token):
        on_token(event)
        return Group(task, (Completion("a"), Completion("b")))

    shown = {}
    for terminal in (False, True):
        stream = Stream(terminal)
        assert len(list(sample_groups(sampler, [task], SamplingConfig(), ProgressLine(stream)))) == 1
        shown[terminal] = stream.text
    assert shown[False] == ""
    assert "\rgroup 1 of 1: 3 of 8 completions, 41 tokens/s" in shown[True]
    assert shown[True].endswith("\r")


needs_nano = pytest.mark.skipif(
    not (ROOM / "nano" / "model.safetensors").is_file(), reason="nano's weights are not here"
)


@needs_nano
@pytest.mark.slow
def test_nano_samples_the_same_group_twice_from_the_shell():
    words = ["sample", "--model", "nano", "--tasks", "desk", "--num-generations", "8", "--seed", "0", "--json"]
    first, second = workbench(*words), workbench(*words)
    assert (first.returncode, first.stderr) == (0, b"")
    assert first.stdout == second.stdout
    assert len(parsed(first.stdout.decode())["groups"][0]["completions"]) == 8


@needs_nano
@pytest.mark.slow
def test_d2_a_task_shows_how_its_prompt_renders_for_a_model():
    done = workbench("tasks", "show", "desk-3", "--model", "nano")
    assert done.returncode == 0
    text = done.stdout.decode()
    assert "Prompt as the model reads it" in text
    assert all(tool.name in text.split("Prompt as the model reads it")[1] for tool in get_task("desk-3").tools)


def test_unknown_values_never_reach_a_traceback():
    with pytest.raises(InputError):
        commands._read("/no/such/file")
