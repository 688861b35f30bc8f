"""After a step: bars are ratios of probabilities, coloured by what the advantage asked for."""

import math

import pytest

from workbench.figures import before_after_bars, reward_steps
from workbench.figures.theme import DOWN, REST, UP


def test_bars_are_powers_of_two_of_after_over_before():
    figure = before_after_bars([math.log(0.01), math.log(0.2)], [math.log(0.02), math.log(0.1)], [0.8, -0.8])
    bars = figure.data[0]
    assert list(bars.y) == pytest.approx([1.0, -1.0])
    assert list(bars.text) == ["×2.00", "×0.50"]
    assert list(bars.marker.color) == [UP, DOWN]
    assert "probability 1 % before, 2 % after, ×2.00" in bars.hovertext[0].replace("1.0 %", "1 %").replace(
        "2.0 %", "2 %"
    )


def test_a_blue_bar_below_the_line_shows_a_push_that_failed():
    bars = before_after_bars([-3.0], [-3.5], [0.8]).data[0]
    assert bars.y[0] < 0
    assert bars.marker.color == (UP,)


@pytest.mark.parametrize("gap", [0.0, 1e-6, 0.3, 5.0, 60.0, 700.0])
def test_any_size_of_change_gives_a_readable_axis(gap):
    figure = before_after_bars([-800.0, -1.0], [-800.0 + gap, -1.0 - gap / 7], [1.0, -1.0])
    low, zero, high = figure.layout.yaxis.tickvals
    assert (low, zero) == (-high, 0)
    assert math.isfinite(high)
    assert high >= 0.05
    assert max(abs(y) for y in figure.data[0].y) <= high


def test_one_huge_change_is_cut_and_says_so_instead_of_flattening_the_others():
    before, after = [-3.0] * 5, [-2.9, -3.1, -2.95, -3.05, -13.0]
    bars = before_after_bars(before, after, [1, -1, 1, -1, -1]).data[0]
    assert bars.text[4].startswith("…×4.5e-5")
    assert min(bars.y) == bars.y[4] > -1.0
    assert bars.text[0] == "×1.11"


def test_mean_rewards_are_drawn_step_by_step_and_coloured_against_the_start():
    line = reward_steps([0.5, 0.7, 0.4]).data[0]
    assert list(line.x) == [0, 1, 2]
    assert list(line.y) == [0.5, 0.7, 0.4]
    assert list(line.marker.color) == [REST, UP, DOWN]
