"""The difference of two texts by operation: values that are only numbered differently are no difference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from donation_inspector.ir.difference import Change, difference

_BEFORE = """\
func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %arg0 : tensor<f32>
  %1:2 = stablehlo.while(%iterArg = %0, %iterArg_0 = %arg0) : tensor<f32>, tensor<f32>
  cond {
    %3 = stablehlo.compare LT, %iterArg, %0 : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = stablehlo.add %iterArg, %0 : tensor<f32>
    stablehlo.return %3, %iterArg_0 : tensor<f32>, tensor<f32>
  }
  %2 = stablehlo.add %1#0, %1#1 {note = "%0 = %1"} : tensor<f32>
  return %2 : tensor<f32>
}""".splitlines()


def _edited(*edits: tuple[str, str]) -> list[str]:
    text = "\n".join(_BEFORE)
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text.splitlines()


def test_other_numbers_are_no_difference() -> None:
    renamed = "\n".join(_BEFORE).replace("%3", "%17").replace("%iterArg_0", "%other").replace("%arg0", "%x")
    assert difference(_BEFORE, renamed.splitlines()) == ()


def test_an_added_operation_renumbers_the_others() -> None:
    after = _edited(
        ("%2 = stablehlo.add", "%2 = stablehlo.tan %1#0 : tensor<f32>\n  %3 = stablehlo.add"),
        ("return %2", "return %3"),
    )
    after = [line.replace("%3", "%4") if line.startswith("    ") else line for line in after]
    assert difference(_BEFORE, after) == (Change("added", None, 10, None, after[10]),)


def test_a_removed_operation() -> None:
    before = _edited(("  return %2", "  %3 = stablehlo.tan %2 : tensor<f32>\n  return %2"))
    assert difference(before, _BEFORE) == (Change("removed", 11, None, before[11], None),)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("return %2 :", "return %0 :", 11),
        ("%1#0, %1#1", "%1#1, %1#1", 10),
        ("stablehlo.add %iterArg, %0", "stablehlo.add %iterArg, %iterArg_0", 7),
        ("%iterArg_0 = %arg0)", "%iterArg_0 = %0)", 2),
        ('{note = "%0 = %1"}', '{note = "%0 = %2"}', 10),
        ("@main(%arg0: tensor<f32>)", "@main(%arg0: tensor<f32> {jax.buffer_donor = true})", 0),
    ],
)
def test_other_operands_or_attributes(old: str, new: str, line: int) -> None:
    after = _edited((old, new))
    assert difference(_BEFORE, after) == (Change("changed", line, line, _BEFORE[line], after[line]),)


def test_the_same_text_that_now_means_another_value() -> None:
    before = ["%0 = a", "%1 = b", "use %1 : t"]
    after = ["%0 = b", "%1 = c", "use %1 : t"]
    assert difference(before, after) == (
        Change("removed", 0, None, "%0 = a", None),
        Change("added", None, 1, None, "%1 = c"),
        Change("changed", 2, 2, "use %1 : t", "use %1 : t"),
    )


_LINES = st.lists(st.sampled_from("abcdef"), max_size=30)


@settings(max_examples=300)
@given(_LINES, _LINES)
def test_the_changes_lead_from_one_to_the_other_and_are_the_fewest(before: list[str], after: list[str]) -> None:
    changes = difference(before, after)
    gone = {change.before_line for change in changes if change.before_line is not None}
    new = {change.after_line for change in changes if change.after_line is not None}
    kept = [line for index, line in enumerate(before) if index not in gone]
    assert kept == [line for index, line in enumerate(after) if index not in new]
    assert len(kept) == _longest_common_subsequence(before, after)
    for change in changes:
        assert change.before == (None if change.before_line is None else before[change.before_line])
        assert change.after == (None if change.after_line is None else after[change.after_line])


def _longest_common_subsequence(left: list[str], right: list[str]) -> int:
    row = [0] * (len(right) + 1)
    for mine in left:
        above = row
        row = [0]
        for index, theirs in enumerate(right):
            row.append(above[index] + 1 if mine == theirs else max(above[index + 1], row[-1]))
    return row[-1]


def test_texts_with_nothing_in_common_are_replaced() -> None:
    before, after = [f"a{index}" for index in range(3000)], [f"b{index}" for index in range(3000)]
    changes = difference(before, after)
    assert [change.kind for change in changes] == ["removed"] * 3000 + ["added"] * 3000
