"""Reports: what is in them, what never is, and what becomes of hostile text."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from app.lab.compare import compared_reports, html_of_comparison, read_report, text_of_comparison
from app.lab.errors import LabError
from app.lab.html import figure_of, html_of, shown
from app.lab.registry import chosen, parameters_of
from app.lab.rehearsal import rehearse
from app.lab.report import csv_of, report_of
from app.lab.runner import Run
from app.lab.text import text_of

from .settings import setting

HOSTILE = "</script><img src=x onerror=alert(1)>"


def made(name: str = "work-saved", *, text: bool = False, **options: Any) -> dict[str, Any]:
    """A report of a run on paper."""
    experiment = chosen(name)
    where = setting(experiment, repeats=1, **options)
    run = Run(experiment, where, state="complete", samples=rehearse(experiment, where))
    return report_of(run, "2026-01-01T10:00:00+00:00", "2026-01-01T10:01:00+00:00", text=text)


class Page(HTMLParser):
    """What a browser without scripts shows, and what it would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shown: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self._hidden = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._hidden += tag in ("script", "style")
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.shown.append(data)


def test_a_page_loads_nothing_and_says_all_without_scripts() -> None:
    report = made()
    page = Page(html_of(report))
    text = " ".join(page.shown)
    assert page.loads == [] and "img" not in page.tags
    for words in ("4,296", "712", "Setting", "0.32.0", "What follows", "What does not follow", "cache_salt"):
        assert words in text
    assert page.tags.count("tr") > len(report["samples"])


def test_the_pages_own_data_is_the_report() -> None:
    report = made()
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', html_of(report), re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == json.loads(json.dumps(report))


def test_text_from_a_server_stays_text() -> None:
    page = html_of(made(model=HOSTILE, version=HOSTILE))
    assert "<img" not in page.replace("\\u003c", "")
    assert HOSTILE in " ".join(Page(page).shown)


@pytest.mark.parametrize("text", [False, True])
def test_prompts_are_in_it_only_where_asked_for(text: bool) -> None:
    report = made(text=text)
    assert all(("prompt_ids" in sample) is text for sample in report["samples"])
    assert report["has_text"] is text
    assert "alphabet" not in json.dumps(report)


def test_a_partial_run_says_so_at_the_top() -> None:
    report = made() | {"state": "disconnected", "detail": "The connection failed."}
    assert "partial: the run was disconnected" in " ".join(Page(html_of(report)).shown)
    assert "PARTIAL: the run was disconnected" in text_of(report)
    assert "partial" not in " ".join(Page(html_of(made())).shown)


def test_csv_has_a_line_a_sample_and_no_formula() -> None:
    report = made()
    report["samples"][0]["label"] = "=1+1"
    rows = list(csv.DictReader(io.StringIO(csv_of(report))))
    assert len(rows) == len(report["samples"])
    assert rows[0]["label"] == "'=1+1"
    assert rows[1]["cached_tokens"] == str(report["samples"][1]["cached_tokens"])
    assert rows[0]["server_ttft_ms"] == ""


def test_outliers_are_named_and_stay_in() -> None:
    experiment = chosen("on-off")
    where = setting(experiment, repeats=2)
    samples = rehearse(
        experiment, where, lambda request, prompt, cached: 1000.0 if request.x == 3 else 10.0 + prompt % 3
    )
    report = report_of(Run(experiment, where, state="complete", samples=samples), "", "")
    assert all(places in report["notes"][0] for places in map(str, report["totals"]["outliers"]))
    assert len(report["samples"]) == len(samples)


def test_a_chart_draws_its_intervals_as_distances() -> None:
    series = {"name": "a", "x": [1, 2], "y": [10.0, None], "mode": "both", "low": [8.0, None], "high": [13.0, None],
              "dash": False, "texts": []}  # fmt: skip
    chart = {"title": "t", "x_label": "x", "y_label": "y", "series": [series], "log_x": False, "bands": [[1, 2]]}
    figure = figure_of(chart)
    assert figure["data"][0]["error_y"]["array"] == [3.0, None]
    assert figure["data"][0]["error_y"]["arrayminus"] == [2.0, None]
    assert figure["layout"]["shapes"][0]["x1"] == 2


def test_unknown_is_no_zero() -> None:
    assert (shown(None), shown(0), shown(0.0), shown(4296), shown(0.8343), shown("x")) == (
        "–", "0", "0", "4,296", "0.834", "x",
    )  # fmt: skip


def figures(value: float, low: float | None, high: float | None) -> list[dict[str, Any]]:
    """One figure."""
    return [{"key": "k", "text": "time", "unit": "ms", "basis": "clock", "value": value, "low": low, "high": high}]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ((20.0, 18.0, 22.0), "different: the intervals lie apart"),
        ((11.0, 8.0, 14.0), "can't be told apart"),
        ((11.0, None, None), "no interval"),
    ],
)
def test_two_runs_differ_only_where_their_intervals_lie_apart(
    second: tuple[float, float | None, float | None], said: str
) -> None:
    one, other = made() | {"figures": figures(10.0, 9.0, 12.0)}, made() | {"figures": figures(*second)}
    comparison = compared_reports(one, other)
    assert comparison["rows"][0][2:5] == [10.0, second[0], second[0] - 10.0]
    assert comparison["rows"][0][5] == said
    assert said in text_of_comparison(comparison)
    assert "<table>" in html_of_comparison(comparison)


def test_runs_in_other_settings_are_compared_with_a_word_of_caution() -> None:
    notes = compared_reports(made(), made(model="another", block_size=32) | {"state": "cancelled"})["notes"]
    assert any("model" in note for note in notes) and any("block_size" in note for note in notes)
    assert any("second run is partial" in note for note in notes)
    with pytest.raises(LabError, match="different experiments"):
        compared_reports(made(), made("same-time"))


def test_only_reports_are_read(tmp_path: Any) -> None:
    good, bad, other = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "other.json"
    good.write_text(json.dumps(made()))
    bad.write_text("{")
    other.write_text("{}")
    assert read_report(str(good))["experiment"]["name"] == "work-saved"
    for path in (bad, other, tmp_path / "none.json"):
        with pytest.raises(LabError):
            read_report(str(path))


def test_parameters_are_read_by_the_type_of_their_default() -> None:
    experiment = chosen("work-saved")
    assert parameters_of(experiment, ["shared=256", "suffixes=8,16"])["suffixes"] == (8, 16)
    for wrong in ("shared=many", "suffixes=", "nothing=1", "shared", "shared=-1"):
        with pytest.raises(LabError):
            parameters_of(experiment, [wrong])


def test_an_unknown_experiment_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LabError, match="staircase"):
        chosen("stairs")


@pytest.mark.parametrize("wrong", [{}, {"experiment": 3}, {"experiment": {"name": "on-off"}, "figures": 3}])
def test_what_lacks_parts_of_a_report_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(LabError, match="whole report"):
        compared_reports(wrong, wrong)


@pytest.mark.parametrize("text", ["questions=1000000000", "rules=99999999999"])
def test_a_parameter_without_an_end_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="takes"):
        parameters_of(chosen("on-off"), [text])
