"""Modules from others: what ends the process that reads it is an error, and this process lives."""

from __future__ import annotations

import subprocess

import pytest

from donation_inspector.errors import IRError, MachineError
from donation_inspector.ir import foreign, source
from donation_inspector.ir.importer import import_module
from donation_inspector.machine import system
from ir.programs import FILES

_MAIN = (
    "func.func public @main(%a: tensor<8xf32>{argument}) -> tensor<8xf32> {{ {body} return %a : tensor<8xf32> {end} }}"
)


def module(argument: str = "", body: str = "", end: str = "", attributes: str = "", before: str = "") -> str:
    main = _MAIN.format(argument=argument, body=body, end=end)
    return f"module {attributes} {{ {before} {main} }}"


_NO_UTF8 = {
    "location": module(argument=r' loc("\FFx")'),
    "file": module(end=r'loc("dir/\C3\28.py":4:2)'),
    "caller": module(end=r'loc(callsite("f" at fused["g", "\FE"]))'),
    "operation": module(body=r'%0 = "foo.\FF"(%a) : (tensor<8xf32>) -> tensor<8xf32>'),
    "attribute": module(attributes=r'attributes {"foo.\FF" = 1 : i32}'),
    "entry of a dictionary": module(argument=r' {jax.x = {"\80" = [1]}}'),
    "function": module(before=r'func.func private @"f\FF"() { return }'),
}


@pytest.mark.parametrize("name", _NO_UTF8)
def test_a_name_that_is_no_utf8_is_told(name: str) -> None:
    with pytest.raises(IRError, match="no UTF-8"):
        foreign.parse(_NO_UTF8[name])


def test_a_string_that_is_no_utf8_is_no_name() -> None:
    text = module(argument=r' {jax.x = "\FF"}', body=r'%0 = stablehlo.add %a, %a {s = "\FE"} : tensor<8xf32>')

    assert import_module(foreign.parse(text)).module.verify() is None


def test_a_name_in_bytecode_is_told_too() -> None:
    data = source.bytecode(source.parse(module(argument=' loc("quite_rare")'))).replace(b"quite_rare", b"quite\xffrare")

    with pytest.raises(IRError, match="no UTF-8"):
        foreign.parse(data)


_DEEP = 20_000


@pytest.mark.parametrize(
    "text",
    [
        f"module {{ func.func private @f({'tuple<' * _DEEP}f32{'>' * _DEEP}) }}",
        module(attributes=f"attributes {{jax.x = {'[' * _DEEP}{']' * _DEEP}}}"),
    ],
    ids=["types", "attributes"],
)
def test_what_the_parser_crashes_on_is_told(text: str) -> None:
    with pytest.raises(IRError, match=r"(?s)jaxlib crashes on this module \(SIG.*nested"):
        foreign.parse(text)


_NESTED = {
    "types": "module {{ func.func private @f({}f32{}) }}",
    "attributes": "module attributes {{jax.x = {}{}}} {{ }}",
    "regions": "{}{}",
}
_BRACKETS = {"types": ("tuple<", ">"), "attributes": ("[", "]"), "regions": ("module { ", "}")}


@pytest.mark.parametrize("what", _NESTED)
def test_deep_nesting_is_read_or_refused_but_never_a_recursion_error(what: str) -> None:
    opening, closing = _BRACKETS[what]
    read, refused = (source.parse(_NESTED[what].format(opening * depth, closing * depth)) for depth in (90, 150))

    import_module(read)
    with pytest.raises(IRError, match="nested more than 100 times"):
        import_module(refused)


def test_what_is_wrong_with_it_is_said_as_in_this_process() -> None:
    bad = (FILES / "18_type_error.mlir").read_bytes()
    with pytest.raises(IRError) as here:
        source.parse(bad)

    with pytest.raises(IRError) as there:
        foreign.parse(bad)

    assert str(there.value) == str(here.value)


def test_the_same_bytes_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = module(body="// tried once\n")
    started: list[object] = []
    start = system.start_python

    def counted(*words: str, **options: object) -> subprocess.Popen[bytes]:
        started.append(words)
        return start(*words, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(system, "start_python", counted)
    foreign.parse(text)
    foreign.parse(text.encode())

    assert len(started) == 1


def test_without_a_child_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "")

    with pytest.raises(MachineError, match=r"sys\.executable"):
        foreign.parse(module(body="// never read\n"))
