"""The paper's figures, drawn from its published numbers: what they show is what the paper says they show."""

from __future__ import annotations

import doctest
import re
from functools import partial
from itertools import combinations, pairwise

import numpy as np
import pytest
from support.paper_numbers import paper_report, results, score, table_1

from speech_robust_bench.core.card_records import CardConfigs, LwerrRow, ReportCard
from speech_robust_bench.report import charts
from speech_robust_bench.report.charts import (
    Axes,
    Curve,
    Point,
    Quartiles,
    Series,
    box_plot,
    scatter,
    weighted_mean,
    width_bars,
)
from speech_robust_bench.report.page import page
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections import severities
from speech_robust_bench.report.sections.overview import languages, pareto_front, trade_off
from speech_robust_bench.report.sections.parts import HALVES, scored
from speech_robust_bench.report.sections.severities import correlates, theil_sen_log
from speech_robust_bench.report.sections.speakers import speakers


@pytest.fixture(scope="module")
def report() -> Report:
    return paper_report()


def captions(markup: str) -> list[str]:
    return re.findall(r"<figcaption>([^<]+)", markup)


def test_figures_4_and_5_have_both_halves(report):
    halves = [f"{chart}, {half}" for half in ("hard conditions", "attacks") for chart in CHARTS]
    assert captions(correlates(report, "en") or "") == halves
    assert captions(trade_off(report, "en") or "") == ["hard conditions", "attacks"]


CHARTS = ("by parameters", "by hours of training speech", "families", "by architecture")


def values(report: Report, half: int, language: str = "en") -> dict[str, float]:
    return {m.name: s.value for m, s in scored(report.ranked(language), language, HALVES[half])}


def test_figure_4_larger_whispers_are_more_robust(report):
    nwerd = values(report, 0)
    assert nwerd["wsp-lg"] < nwerd["wsp-md"] < nwerd["wsp-bs"]
    drawn = correlates(report, "en") or ""
    assert re.search(r'<text [^>]*class="name"[^>]*>Whisper</text>', drawn)
    titles = re.findall(r"<title>(wsp-\w+) \(Whisper\): ([\d,]+) parameters", drawn)
    assert titles[:3] == [("wsp-bs", "74,000,000"), ("wsp-md", "769,000,000"), ("wsp-lg", "1,550,000,000")]


def test_figure_5a_size_matters_more_than_training_data(report):
    """Section 4.3: more parameters, lower WERD; more data has "only a minor influence"."""
    nwerd = values(report, 0)
    about = {model.name: model.about for model in report.models}
    by_size = theil_sen_log([(about[name].parameters or 0, y) for name, y in nwerd.items()])
    by_hours = theil_sen_log([(about[name].hours or 0, y) for name, y in nwerd.items()])
    fall = [(ends[1][1] - ends[0][1]) / np.log10(ends[1][0] / ends[0][0]) for ends in (by_size, by_hours)]
    assert fall[0] < fall[1] < 0


@pytest.mark.parametrize(
    ("half", "front"), [(0, ["prkt-rnnt-1.1b", "wsp-lg"]), (1, ["prkt-rnnt-1.1b", "cnry-1b", "w2v2-lg-slf", "w2v2-lg"])]
)
def test_figures_5c_and_5d_the_models_that_none_beats(report, half, front):
    """By eye from Table 1: sorted by clean WER, each with a lower score than all before it."""
    points = {line["model"]: (float(line["clean_wer"]), values(report, half)[line["model"]]) for line in english()}
    assert [name for point in pareto_front(list(points.values())) for name in points if points[name] == point] == front


def english() -> list[dict[str, str]]:
    return [line for line in table_1() if line["lang"] == "en"]


def test_figure_5e_transducers_lead_and_ctc_under_attack(report):
    medians = []
    for half in (0, 1):
        by_kind: dict[str, list[float]] = {}
        for model, value in scored(report.ranked("en"), "en", HALVES[half]):
            by_kind.setdefault(str(model.about.architecture), []).append(value.value)
        medians.append({kind: Quartiles.of(those).median for kind, those in by_kind.items()})
    assert min(medians[0], key=medians[0].__getitem__) == "RNN-T"
    assert min(medians[1], key=medians[1].__getitem__) == "CTC"


@pytest.mark.parametrize("seed", range(5))
def test_the_box_is_numpys_and_the_whiskers_are_tukeys(seed):
    drawn = np.random.default_rng(seed).lognormal(size=seed + 5).tolist()
    box = Quartiles.of(drawn)
    assert (box.first, box.median, box.third) == pytest.approx(tuple(np.quantile(drawn, [0.25, 0.5, 0.75])))
    reach = 1.5 * (box.third - box.first)
    assert box.high == max(v for v in drawn if v <= box.third + reach)
    assert box.low == min(v for v in drawn if v >= box.first - reach)
    assert Quartiles.of([4.0]) == Quartiles(4.0, 4.0, 4.0, 4.0, 4.0)


def test_figure_6_compares_languages_by_category(report):
    drawn = languages(report) or ""
    assert re.findall(r"<figcaption><span.*?<span>([\w-]+)</span>", drawn) == ["wsp-lg", "cnry-1b", "wsp-bs"]
    whisper = drawn[drawn.index("<figcaption>") :].split("</figure>")[0]
    assert '<div title="12.3" class="track">' in whisper or 'title="12.3"' in whisper  # Spanish, environmental noise
    assert "social" not in whisper  # not in Spanish


def test_figure_7_lwerr_by_data_set_and_category():
    """Eq. 5: twice the errors for women is +1."""
    rows = [
        lwerr_row(corpus="en librispeech", category="sfx", severity=None, lwerr=1.0, interval=[0.5, 1.5]),
        lwerr_row(corpus="en librispeech", category="sfx", severity=2, lwerr=0.7, interval=None),
        lwerr_row(corpus="en ami", category="social_far", severity=None, lwerr=-0.5, interval=None),
    ]
    slices = {"gender": {g: {"wer": w, "speakers": 1, "utterances": 2, "words": 9} for g, w in WOMEN_AND_MEN.items()}}
    made = results("m", {"en": {**paper_language(), "slices": {"librispeech": {"hard": slices}}}})
    report = Report([ReportedModel(0, "m", made, {}, cards={"en": report_card(rows)})])
    drawn = speakers(report, "en") or ""
    assert "LWERR by category, en librispeech" in drawn
    assert "LWERR by category, en ami" in drawn
    assert '<div title="1.0 (0.5 to 1.5)" class="track">' in drawn or 'title="1.0 (0.5 to 1.5)"' in drawn
    assert "0.70" not in drawn  # one severity is no category


WOMEN_AND_MEN = {"female": 20.0, "male": 10.0}
lwerr_row = partial(LwerrRow, configs=1, **WOMEN_AND_MEN)


def report_card(rows: list[LwerrRow]) -> ReportCard:
    configs = CardConfigs(clean=1, speech=2)
    facts = {"schema": 1, "model": "m", "language": "en", "unit": "word", "normaliser": "srb-paper-1"}
    return ReportCard(**facts, configs=configs, unknown={}, reject=None, lwerr=rows)


def paper_language() -> dict:
    return paper_report().models[0].results.languages["en"].as_json()


# Aksenova et al., Fig. 1: A, B and C are 60, 30 and 10 % of the population; the average is 10 in both plots, the gap
# 12.8 points in the one where C has 19.3, and 3.5 in the other.
SHARES = {"A": 60.0, "B": 30.0, "C": 10.0}
UNEVEN = {"A": 10.2, "B": 6.5, "C": 19.3}


def test_bars_are_as_wide_as_their_group():
    drawn = width_bars(UNEVEN, SHARES, "WER", "groups")
    widths = [float(w) + 2 for w in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert [round(100 * w / sum(widths)) for w in widths] == [60, 30, 10]
    heights = [float(h) for h in re.findall(r'<rect [^>]*height="([\d.]+)"', drawn)]
    assert heights == pytest.approx([heights[2] * rate / 19.3 for rate in UNEVEN.values()], abs=0.1)
    assert weighted_mean(UNEVEN, SHARES) == pytest.approx(10, abs=0.01)
    assert "of the population: 10.0" in drawn


def nwerd_rows(published: dict[str, float]) -> dict:
    return {key: {"wer": None, "werd": score("1"), "nwerd": score(str(v))} for key, v in published.items()}


def test_figures_9_to_11_are_in_nwerd():
    """NWERD by perturbation and by severity; made up, as the paper prints no numbers with these figures."""
    language = {
        **paper_language(),
        "scenarios": nwerd_rows({"echo": 12.0, "gaussian": 3.0}),
        "severities": nwerd_rows({f"gaussian_sev{n}": 10.0 * n for n in (1, 2, 3, 4)}),
    }
    report = Report([ReportedModel(0, "m", results("m", {"en": language}), {})])
    drawn = severities.perturbations(report, "en") or ""
    assert re.findall(r"<tr><td>(\w+)</td><td [^>]*>([\d.]+)</td>", drawn) == [("gaussian", "3.0"), ("echo", "12.0")]
    unfolded = (severities.curves(report, "en") or "").split("NWERD over severity")[1]
    assert re.findall(r"severity (\d): NWERD ([\d.]+)", unfolded) == [(str(n), f"{10.0 * n}") for n in (1, 2, 3, 4)]
    assert re.findall(r"<text [^>]*>(SNR, dB|30|20)</text>", unfolded)[-3:] == ["30", "20", "SNR, dB"]


def test_speed_beside_robustness():
    language = paper_language()
    language["overall"]["nwer"] = {"value": 30.0}
    models = [
        ReportedModel(i, name, results(name, {"en": language}, speed={"rtf": rtf}), {})
        for i, (name, rtf) in enumerate({"fast": 0.01, "slow": 0.5}.items())
    ]
    drawn = trade_off(Report(models), "en") or ""
    assert "speed" in captions(drawn)
    assert "fast: RTFx 100, NWER 30.0 %" in drawn


def test_names_do_not_cover_each_other_nor_the_front(report):
    """The models of Table 1, of which three have nearly the same score: no two names overlap, none is on the line."""
    points = {line["model"]: (float(line["clean_wer"]), float(line["avg"])) for line in english()}
    series = [Series(i, [Point(*at)], name) for i, (name, at) in enumerate(points.items())]
    front = pareto_front(list(points.values()))
    drawn = scatter(series, Axes("clean", "NWERD"), "x", [Curve(front, steps=True)])
    boxes = []
    for x, y, anchor, text in re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)" class="name">([^<]+)', drawn
    ):
        width = 7 * len(text)
        left = float(x) - {"start": 0, "end": width, "middle": width / 2}[anchor]
        boxes.append((left, float(y) - 10, left + width, float(y) + 2))
    assert len(boxes) == 9
    assert not [pair for pair in combinations(boxes, 2) if overlap(*pair)]
    path = [tuple(map(float, p.split(","))) for p in re.findall(r'<polyline points="([^"]+)"', drawn)[0].split()]
    lines = [(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])) for a, b in pairwise(path)]
    assert not [(box, line) for box in boxes for line in lines if overlap(box, line)]


def overlap(one, other) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def test_a_group_of_one_is_drawn():
    assert "median 3.0" in box_plot({"RNN-T": [Series(0, [Point(0, 3.0)])]}, "NWERD", "x")


def test_the_page_of_the_paper(report):
    """All of it together: nothing in it needs a run, an interval or a clip."""
    drawn = page(report, "The paper's numbers")
    assert "prkt-rnnt-1.1b" in drawn
    assert drawn.count("<svg") > 20


@pytest.mark.parametrize("module", [charts, severities])
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module).failed == 0
