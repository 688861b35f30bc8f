"""Everything a model, a task or a link wrote is text on the page, never markup; long text folds."""

import html.parser
import time

import pytest

from workbench.figures import token_shades
from workbench.rewards import parse_completion, score_group
from workbench.types import Completion, ExpectedCall, Group, Split, Task, Tool, tools_to_json
from workbench.ui import views
from workbench.ui.group_numbers import group_numbers
from workbench.ui.group_state import DEFAULT_STATE
from workbench.ui.views.escape import escaped, folded, visible_token
from workbench.ui.views.table import Sort

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked = 1">',
    "' onmouseover='window.hacked=1' x='",
    '" autofocus onfocus="window.hacked=1',
    "</code></td></tr></table><svg/onload=window.hacked=1>",
    "\ud800 lone \udfff surrogates",
    "\u202egnp.exe\u202c right to left \u2066x\u2069",
    "nul \x00 escape \x1b[31m bell \x07",
    "&lt;already&gt; &amp;",
    "`${alert(1)}` {{value}}",
    '<tool_call>{"name": "<b>x</b>", "arguments": {"<i>": "</script>"}}</tool_call>',
]
ALLOWED = {
    *("div", "section", "header", "h2", "h3", "p", "b", "i", "span", "code", "pre", "dl", "dt", "dd", "details"),
    *("summary", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "button", "label", "select", "option"),
    *("figure", "figcaption"),
}


class Tags(html.parser.HTMLParser):
    """Every tag and attribute of a page; fails on a tag or handler we never write."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text = ""

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")], attrs

    def handle_data(self, data):
        self.text += data


def page_of(text):
    tool = Tool(text, text, {"type": "object", "properties": {text: {"type": "string"}}}, destructive=True)
    expected = (ExpectedCall(text, {text: (text, "other")}, frozenset([text])),)
    messages = ({"role": "system", "content": text}, {"role": text, "content": text}, {"role": "user", "content": text})
    task = Task(text, text, Split.TRAIN, messages, tools_to_json([tool]), expected)
    completions = (
        Completion(text, (1,), (text,), (-1.0,), (0.5,), error=text),
        Completion("x " + text, (1, 2), ("x ", text), (-1.0, -1.0), (0.5, 0.5)),
    )
    group = Group(task, completions, score_group(task, completions), text)
    numbers = group_numbers(group, DEFAULT_STATE)
    parsed = [parse_completion(c.text) for c in completions]
    shades = token_shades("push", logps=(-1.0,), push=[0.5])
    return "".join(
        [
            views.prompt_card(task, text),
            views.summary_line(group, numbers, DEFAULT_STATE, text),
            views.selected_card(0, completions[0], parsed[0], 0.5, shades),
            views.why_card(group, 1, numbers),
            views.completions_table(group, numbers, parsed, 0, Sort()),
            views.sampling([text], [1], 0, 9.0, text),
            views.working(text, 2.0),
            views.problems([text]),
            views.note(text),
            views.rendered_prompt(text, 3, (text,), text),
        ]
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_u6_hostile_text_stays_text_in_every_view(text):
    page = page_of(text)
    reader = Tags()
    reader.feed(page)
    reader.close()
    page.encode("utf-8")  # no lone surrogate is left to break the transport
    assert not set(page) & {"\x00", "\x1b", "\u202e", "\u2066"}


def test_the_tag_check_can_fail():
    with pytest.raises(AssertionError, match="img"):
        Tags().feed("<p><img src=x></p>")


def test_what_is_escaped_can_still_be_read():
    reader = Tags()
    text = '<b>&amp; "x"'
    reader.feed(f"<p>{escaped(text)}</p>")
    assert reader.text == text


def test_ten_thousand_tokens_fold_and_are_all_there():
    tokens = tuple(f"w{i} " for i in range(10_000))
    completion = Completion("".join(tokens), tuple(range(10_000)), tokens, (-0.5,) * 10_000, (0.2,) * 10_000)
    shades = token_shades("logp", logps=completion.logps)
    start = time.perf_counter()
    strip = views.selected_card(0, completion, parse_completion(completion.text), 0.1, shades)
    assert time.perf_counter() - start < 2.0
    assert "show all 10,000 tokens" in strip
    assert strip.count("class='t p'") == 10_000
    assert strip.index("show all") < strip.index("w9999")


def test_long_text_folds_at_a_word():
    text = "word " * 1000
    shown = folded(text)
    head = shown.split("…")[0]
    assert head.endswith("word")
    assert "show all 5 000 characters" in shown
    assert folded("short") == "<span>short</span>"


@pytest.mark.parametrize(("token", "shown"), [("\n", "⏎\n"), ("a\tb", "a⇥\tb"), ("<", "&lt;")])
def test_tokens_show_what_cannot_be_seen(token, shown):
    assert visible_token(token) == shown


def test_the_table_sorts_by_every_column_and_puts_the_unscored_last():
    task_page = page_of("plain")
    assert task_page.count("data-act='sort'") == 11
    assert Sort().pressed("reward").descending
    assert not Sort("reward", True).pressed("reward").descending
    assert not Sort().pressed("text").descending
