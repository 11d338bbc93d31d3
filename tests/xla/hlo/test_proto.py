"""The descriptor set is the checked-in .proto, stands apart from all others, and refuses what is no compiled module."""

from __future__ import annotations

import re
from importlib.resources import files

import jax.numpy as jnp
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from donation_inspector.errors import CompileError
from donation_inspector.xla.hlo.module import dtype
from donation_inspector.xla.hlo.proto import HloProto, parse, primitive_types
from xla.hlo.compiled import answer

FOLDER = files("donation_inspector.xla.hlo")


def described() -> descriptor_pb2.FileDescriptorProto:
    (file,) = descriptor_pb2.FileDescriptorSet.FromString(FOLDER.joinpath("hlo.binpb").read_bytes()).file
    return file


def test_the_descriptors_are_those_of_the_proto_file() -> None:
    source = re.sub(r"//.*", "", FOLDER.joinpath("hlo.proto").read_text())
    written = sorted(re.findall(r"(\w+) = (\d+);", source))
    compiled: list[tuple[str, str]] = []

    def collect(message: descriptor_pb2.DescriptorProto) -> None:
        if not message.options.map_entry:
            compiled.extend((field.name, str(field.number)) for field in message.field)
        for inner in message.nested_type:
            collect(inner)

    for message in described().message_type:
        collect(message)
    compiled += [(value.name, str(value.number)) for enum in described().enum_type for value in enum.value]
    assert sorted(compiled) == written
    assert {message.name for message in described().message_type} == set(re.findall(r"^message (\w+)", source, re.M))


def test_other_descriptors_of_the_same_names_do_not_meet_ours() -> None:
    answer("elementwise jax")
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("donation_inspector.hlo.HloProto")


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"not a proto at all"])
def test_bytes_that_are_no_proto(data: bytes) -> None:
    with pytest.raises(CompileError, match=f"These {len(data)} bytes are no HloProto of XLA's"):
        parse(data)


def test_a_module_that_is_not_compiled() -> None:
    with pytest.raises(CompileError, match=r"module '' has no schedule or no buffer assignment: .*after_optimizations"):
        parse(b"")


def parsed() -> HloProto:
    return parse(answer("many_types jax").proto)


def test_names_of_element_types() -> None:
    names = primitive_types()
    assert (names[11], names[16], names[13], names[20]) == ("F32", "BF16", "TUPLE", "F8E4M3FN")
    shape = parsed().hlo_module.computations[0].instructions[0].shape
    found: set[str] = set()
    for number in names:
        shape.element_type = number
        found.add(dtype(shape))
    numeric = found - {"tuple", "token", "opaque", "buffer", "primitive_type_invalid"}
    # all that XLA and ml_dtypes both have
    assert {str(jnp.dtype(name)) for name in numeric} == numeric
    assert len(numeric) == len(names) - 5
