"""Colours that can be read on both grounds, and told apart by eyes that see fewer colours."""

import itertools

import pytest

from workbench.figures import DIMENSION_COLOURS, PALETTE, contrast, template
from workbench.figures.theme import DOWN, REST, UP

GROUNDS = ("ground", "panel")
MARKS = {"up": UP, "down": DOWN, **DIMENSION_COLOURS}


@pytest.mark.parametrize("dark", [0, 1])
@pytest.mark.parametrize("name", ["ink", "muted", "up-ink", "down-ink", "bad-ink", "accent"])
def test_words_have_a_contrast_of_at_least_4_5(name, dark):
    for ground in (*GROUNDS, "sunken"):
        assert contrast(PALETTE[name][dark], PALETTE[ground][dark]) >= 4.5


@pytest.mark.parametrize("dark", [0, 1])
def test_words_on_the_accent_can_be_read(dark):
    assert contrast(PALETTE["on-accent"][dark], PALETTE["accent"][dark]) >= 4.5


@pytest.mark.parametrize("dark", [0, 1])
@pytest.mark.parametrize("name", [*MARKS, "rest"])
def test_marks_stand_out_from_the_panel(name, dark):
    colour = {**MARKS, "rest": REST}[name]
    assert contrast(colour, PALETTE["panel"][dark]) >= 3.0


def linear(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


# Machado, Oliveira and Fernandes 2009, severity 1: how a colour looks to eyes without one kind of cone.
SEEN_BY = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def seen(colour, eyes):
    rgb = linear(colour)
    return [min(max(sum(m * c for m, c in zip(row, rgb, strict=True)), 0), 1) ** (1 / 2.2) for row in SEEN_BY[eyes]]


@pytest.mark.parametrize("eyes", sorted(SEEN_BY))
def test_up_and_down_and_the_dimensions_differ_to_colour_blind_eyes(eyes):
    pairs = [("up", "down"), *itertools.combinations(DIMENSION_COLOURS, 2)]
    for one, other in pairs:
        a, b = seen(MARKS[one], eyes), seen(MARKS[other], eyes)
        assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 > 0.1, (one, other)


@pytest.mark.parametrize("dark", [False, True])
def test_a_template_has_its_own_grounds_words(dark):
    layout = template(dark).layout
    assert layout.font.color == PALETTE["ink"][dark]
    assert layout.paper_bgcolor == "rgba(0,0,0,0)"
