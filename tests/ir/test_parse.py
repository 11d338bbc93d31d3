"""Files that are no MLIR are told with the place and what to do; everything that jaxlib reads is read."""

from __future__ import annotations

import io
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from jax import export

from donation_inspector.errors import IRError
from donation_inspector.ir import source
from ir.programs import FILES, PARSEABLE, UNPARSEABLE, lower, text


@pytest.mark.parametrize("name", PARSEABLE)
def test_what_jaxlib_parses_is_parsed(name: str) -> None:
    assert source.parse((FILES / name).read_bytes()).operation.verify()


_TOLD = {
    "15_zero_bytes.mlir": ("The input is empty", "Give MLIR text or bytecode"),
    "16_truncated.mlir": ("line 26, column 29", '%2:2 = "stablehlo.sort"(%', "the text may be cut short"),
    "17_garbage.bin": ("not MLIR text or bytecode", "no UTF-8"),
    "18_type_error.mlir": ("line 3, column 31", "tensor<8xf32>", "tensor<9xf32>", "line 2: prior use here"),
    "21_quant_type.mlir": ("line 3", "!quant.uniform is a type of the dialect quant, which jaxlib does not register"),
}


@pytest.mark.parametrize("name", UNPARSEABLE)
def test_what_cannot_be_read(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(IRError) as raised:
        source.parse((FILES / name).read_bytes())
    for part in _TOLD[name]:
        assert part in str(raised.value)
    assert raised.value.__context__ is None or raised.value.__suppress_context__, "no traceback of jaxlib's"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("  \n\t", "The input is empty"),
        ("hello world", "line 1, column 1: custom op 'hello' is unknown"),
        ("\n\n  ?", "line 3, column 3"),
        (
            "func.func @main() {\n  acme.go fast\n  return\n}",
            "line 2.*does not know the dialect acme. Print",
        ),
        (b"ML\xefR\x06MLIR22.0.0git\x00", "This MLIR bytecode cannot be read"),
        (b"ML\xefR\x06StableHLO_v1.0.0\x00abcdef", "This MLIR bytecode cannot be read"),
        (b"\x89PNG\r\n", "not MLIR text or bytecode"),
    ],
)
def test_other_input(data: bytes | str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(IRError, match=f"(?s){message}"):
        source.parse(data)
    assert capfd.readouterr() == ("", "")


def test_a_long_line_is_cut() -> None:
    with pytest.raises(IRError) as raised:
        source.parse(f'"a"() {{x = "{"y" * 5000}" nonsense}} : () -> ()')
    assert len(str(raised.value)) < 500


def test_bytecode_and_portable_artifacts() -> None:
    module = lower("18_scan_cond_passthrough").compiler_ir()
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    assert text(source.parse(stream.getvalue())) == text(module)
    exported = export.export(jax.jit(lambda x: jnp.sin(x) + 1))(jnp.ones((4,)))
    artifact = source.parse(exported.mlir_module_serialized)
    assert text(artifact, enable_debug_info=True) == exported.mlir_module()


def test_jax_is_not_imported() -> None:
    check = (
        "import sys; from donation_inspector.ir import source, text, importer, exporter;"
        "m = source.parse('func.func @main(%a: f32) { return }');"
        "text.pretty(m); exporter.to_jaxlib(i := importer.import_module(m), i.module);"
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_what_xdsl_alone_needs_does_not_import_jaxlib() -> None:
    check = (
        "import sys; from donation_inspector.ir import entry, size, location, sharding, dialect;"
        "sys.exit('jaxlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
