"""The glossary page: METRICS as a table, and one word per thing with the words other projects use for it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.grpo import METRICS
from workbench.ui.views.escape import escaped

# our word -> (what it is, what other projects call it)
WORDS: dict[str, tuple[str, str]] = {
    "group": (
        "Exactly K completions of one prompt: the only thing a completion is compared with.",
        "rollout group, sample set",
    ),
    "num_generations (K)": (
        "How many completions each prompt gets. Below 4 most groups say little; 8 is a good start.",
        "group_size, num_samples, num_rollouts, n, rollout.n, G",
    ),
    "completion": (
        "One sampled answer: its text, and the very tokens that were sampled.",
        "response, rollout, trajectory, output",
    ),
    "reward": ("The weighted sum of a completion's scores.", "score, return"),
    "reward_weights": ("How much each score counts in the reward.", "reward coefficients, scales"),
    "advantage": (
        "How much better a completion did than its own group: blue is pushed up, orange is pushed down.",
        "group-relative advantage, normalised reward",
    ),
    "scale_rewards": (
        "What the advantage is divided by: the spread of the group, of the batch, or nothing.",
        "advantage normalisation, norm_adv_by_std",
    ),
    "dead group": (
        "All rewards equal, so every advantage is 0 and the update learns nothing from it.",
        "zero-std group, degenerate prompt, frac_reward_zero_std",
    ),
    "reference": ("The frozen model the policy is held near.", "ref policy, base model, SFT model"),
    "beta": ("How strongly it is held there (0 = not at all).", "kl_coef, kl_loss_coef, beta_kl"),
    "ratio": ("How much likelier a token is now than when it was sampled.", "importance ratio, coef_1"),
    "epsilon": (
        "How far the ratio may go before the token is no longer pushed.",
        "clip_range, clip_epsilon, cliprange",
    ),
    "num_iterations": (
        "How often each batch is used; with 1 the ratio is 1 and nothing is ever clipped.",
        "ppo_epochs, mu",
    ),
    "loss_type": ("How the push on a completion is shared among its tokens.", "loss_agg_mode, loss aggregation"),
    "max_completion_length": ("Where an answer is cut off, in tokens.", "max_new_tokens, response_length, max_tokens"),
}


def glossary_page() -> str:
    """The whole page as HTML."""
    words = [(escaped(word), escaped(what), escaped(others)) for word, (what, others) in WORDS.items()]
    metrics = [
        (f"{escaped(m.label)}<br><code>{escaped(name)}</code>", escaped(m.tells), escaped(m.healthy))
        for name, m in METRICS.items()
    ]
    return (
        "<div class='wb page'><section class='card'><header><h2>Words</h2></header>"
        "<p>One word per thing, the same in the app, the code, the flags and the files.</p>"
        f"{_table(('word', 'what it is', 'elsewhere it is called'), words)}</section>"
        "<section class='card'><header><h2>Metrics</h2></header><p>What a run logs, under TRL’s names. "
        "Look first at the mean reward, the gradient norm and the share of dead groups; the loss says little.</p>"
        f"{_table(('metric', 'what it tells', 'healthy'), metrics)}</section></div>"
    )


def _table(heads: Sequence[str], rows: Sequence[tuple[str, str, str]]) -> str:
    """A table of three columns whose cells are HTML already."""
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(f"<tr><th>{a}</th><td>{b}</td><td class='quiet'>{c}</td></tr>" for a, b, c in rows)
    table = f"<table class='words'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='scroll'>{table}</div>"
