"""The widget's kernel side, without a browser: messages in, traits out."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.present import payload_buffers
from donation_inspector.present.widget import DonationWidget


def step(w: jax.Array, v: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return w - jnp.tanh(x).sum() * w, v * 2


@pytest.fixture
def widget() -> DonationWidget:
    return DonationWidget(di.inspect(step, jnp.ones((64, 64)), jnp.ones((32, 32)), jnp.ones(8)))


def _tell(widget: DonationWidget, **content: Any) -> None:
    widget._receive(widget, content, None)


def _wait(widget: DonationWidget, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while widget.job["running"]:
        assert time.monotonic() < deadline, "the job did not end"
        time.sleep(0.02)


def test_a_toggle_changes_state_curve_and_revision(widget: DonationWidget) -> None:
    freed = widget.freed
    _tell(widget, type="donate", whole=0, donate=True)
    assert widget.state["revision"] == 1
    assert widget.state["verdicts"] == ["aliased", "not donated", "not donated"]
    assert widget.state["pairs"] == [[0, 0]]
    assert widget.freed != freed
    _tell(widget, type="donate", whole=0, donate=False)
    assert widget.freed == freed


def test_a_click_is_one_message_of_what_it_changes(widget: DonationWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(widget.comm, "send", lambda **message: sent.append(message))
    _tell(widget, type="donate", whole=0, donate=True)

    (message,) = sent
    buffers = [path[0] for path in message["data"]["buffer_paths"]]
    assert {*message["data"]["state"], *buffers} == {"state", "freed", "ends"}


def test_compare_reports_progress_and_its_answer_survives_a_toggle(widget: DonationWidget) -> None:
    _tell(widget, type="donate", whole=0, donate=True)
    jobs: list[dict[str, Any]] = []
    widget.observe(lambda change: jobs.append(change["new"]), "job")
    _tell(widget, type="compare")
    _wait(widget)
    assert jobs[0]["running"]
    assert any(job["step"] for job in jobs)
    assert widget.job["error"] is None
    assert [row["name"] for row in widget.comparison["variants"]] == ["none", "jax", "pass"]
    assert widget.comparison["revision"] == widget.state["revision"]
    assert "Donation saves" in "".join(part["text"] for part in widget.state["headline"])
    _tell(widget, type="donate", whole=1, donate=True)
    assert widget.comparison is None
    _tell(widget, type="donate", whole=1, donate=False)
    assert widget.comparison["revision"] == 3


def test_buffers_are_read_by_compare_and_never_by_a_toggle(
    widget: DonationWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tell(widget, type="donate", whole=0, donate=True)
    _tell(widget, type="compare", target=None)
    _wait(widget)
    found, curves = widget.comparison, widget.xla_curves
    assert [row["buffers"] for row in found["variants"]] == [0, 1, 1]
    assert len(curves) == 24 * sum(one["points"] for one in found["buffers"])

    def read(*_args: object) -> None:
        raise AssertionError("a toggle reads no buffers")

    monkeypatch.setattr(payload_buffers, "read", read)
    _tell(widget, type="donate", whole=1, donate=True)
    assert widget.comparison is None
    assert widget.xla_curves == b""
    _tell(widget, type="donate", whole=1, donate=False)
    assert widget.comparison["buffers"] == found["buffers"]
    assert widget.xla_curves == curves


def test_what_was_compared_before_is_on_the_first_screen() -> None:
    inspection = di.inspect(step, jnp.ones((64, 64)), jnp.ones((32, 32)), jnp.ones(8))
    inspection.compare()
    assert DonationWidget(inspection).comparison["variants"][1]["buffers"] == 0


def test_a_target_that_does_not_exist_is_told_in_place(widget: DonationWidget) -> None:
    _tell(widget, type="compare", target="tpu:v99")
    _wait(widget)
    assert "tpu:v99" in widget.job["error"]
    assert widget.comparison is None


def test_cancel_is_told_and_the_widget_goes_on(widget: DonationWidget) -> None:
    _tell(widget, type="measure")
    _tell(widget, type="measure")
    _tell(widget, type="cancel")
    _wait(widget)
    assert "Cancelled" in widget.job["error"]
    _tell(widget, type="donate", whole=0, donate=True)
    assert widget.state["error"] is None
    assert widget.state["verdicts"][0] == "aliased"


def test_a_failing_step_is_told_in_place(widget: DonationWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object) -> None:
        raise di.PassError("the pass 'x' failed: boom")

    monkeypatch.setattr(di.Inspection, "donate", fails)
    _tell(widget, type="donate", whole=0, donate=True)
    assert widget.state["error"] == {"text": "the pass 'x' failed: boom"}
    assert widget.state["revision"] == 1
    monkeypatch.undo()
    _tell(widget, type="donate", whole=0, donate=True)
    assert widget.state["error"] is None


def test_messages_of_another_front_end_are_ignored(widget: DonationWidget) -> None:
    state = dict(widget.state)
    _tell(widget, type="a later invention")
    assert widget.state == state


def test_a_saved_notebook_gets_text_and_a_table(widget: DonationWidget) -> None:
    bundle = widget._repr_mimebundle_()
    assert bundle is not None
    data, _metadata = bundle
    assert set(data) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert "Nothing is donated" in data["text/plain"]
    assert "<table>" in data["text/html"]
