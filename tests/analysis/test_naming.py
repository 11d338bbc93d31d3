"""The names are held to what MLIR's own printer writes."""

import re

import pytest

from donation_inspector.analysis.naming import value_names
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.importer import import_module
from donation_inspector.ir.source import parse
from lowered_cases import lower_case


def printed(text: str) -> list[str]:
    """The names that the operations of @main define in pretty StableHLO: `%4:2` stands for `%4#0` and `%4#1`."""
    body = text[text.index("func.func public @main") :].partition("\n  }")[0]
    names: list[str] = []
    for name, count in re.findall(r"^    (%\w+)(?::(\d+))? = ", body, re.MULTILINE):
        names += [f"{name}#{index}" for index in range(int(count))] if count else [name]
    return names


@pytest.mark.parametrize(
    "name", ["01_adam_step", "29_exported_call", "32_linalg_custom_calls", "40_jacobi_pingpong_while"]
)
def test_a_value_has_the_name_it_has_in_the_text(name: str) -> None:
    module = lower_case(name).module
    func = entry_function(import_module(module).module)
    names = list(value_names(func).values())
    arguments = [f"%arg{position}" for position in range(len(func.args))]
    assert names == [*arguments, *printed(module.operation.get_asm(large_elements_limit=16))]


def test_blocks_go_on_counting() -> None:
    module = parse(
        """
        func.func public @main(%a: tensor<2xi32>, %b: tensor<i1>) -> tensor<2xi32> {
          %p = stablehlo.constant dense<true> : tensor<i1>
          %q = stablehlo.add %a, %a : tensor<2xi32>
          %c = stablehlo.constant dense<1> : tensor<2xi32>
          cf.br ^next(%q : tensor<2xi32>)
        ^next(%r: tensor<2xi32>):
          %s = stablehlo.add %r, %c : tensor<2xi32>
          return %s : tensor<2xi32>
        }
        """
    )
    assert printed(str(module)) == ["%c", "%0", "%c_0", "%2"]
    names = value_names(entry_function(import_module(module).module))
    assert list(names.values()) == ["%arg0", "%arg1", "%c", "%0", "%c_0", "%1", "%2"]
