"""What is laid open: calls, branches, bodies, loops; and in which order results and readers must come."""

from donation_inspector.analysis.dataflow import Dataflow
from donation_inspector.analysis.naming import operation_name
from passes.programs import parse_entry


def flow_of(text: str) -> Dataflow:
    return Dataflow(parse_entry(text.replace("T", "tensor<4xf32>"))[0])


def names(flow: Dataflow) -> list[str]:
    return ["choice" if step.op is None else operation_name(step.op).partition(".")[2] for step in flow.steps]


def test_each_call_is_a_copy_of_its_callee() -> None:
    flow = flow_of("""
func.func @main(%a: T, %b: T) -> (T, T) {
  %0 = func.call @twice(%a) : (T) -> T
  %1 = func.call @twice(%b) : (T) -> T
  func.return %0, %1 : T, T
}
func.func private @twice(%x: T) -> T {
  %0 = func.call @once(%x) : (T) -> T
  %1 = "stablehlo.tanh"(%0) : (T) -> T
  func.return %1 : T
}
func.func private @once(%x: T) -> T {
  %0 = "stablehlo.sine"(%x) : (T) -> T
  func.return %0 : T
}
""")
    assert names(flow) == ["sine", "tanh", "sine", "tanh"]
    assert [flow.first_positions[value] for value in flow.returned] == [0, 1]
    assert flow.leads_to == [0b01, 0, 0b10, 0]
    assert [len(argument.uses) for argument in flow.arguments] == [1, 1]


def test_what_cannot_be_opened_is_one_step() -> None:
    flow = flow_of("""
func.func @main(%a: T) -> T {
  %0 = func.call @declared(%a) : (T) -> T
  %1 = func.call @itself(%0) : (T) -> T
  %2 = func.call @blocks(%1) : (T) -> T
  func.return %2 : T
}
func.func private @declared(T) -> T
func.func private @itself(%x: T) -> T {
  %0 = func.call @itself(%x) : (T) -> T
  func.return %0 : T
}
func.func private @blocks(%x: T) -> T {
  "test.termop"()[^next] : () -> ()
^next:
  func.return %x : T
}
""")
    assert names(flow) == ["call", "call", "call"]


def test_a_branch_is_its_operations_and_a_choice() -> None:
    flow = flow_of("""
func.func @main(%p: tensor<i1>, %a: T) -> T {
  %0 = "stablehlo.if"(%p) ({
    %1 = "stablehlo.sine"(%a) : (T) -> T
    "stablehlo.return"(%1) : (T) -> ()
  }, {
    "stablehlo.return"(%a) : (T) -> ()
  }) : (tensor<i1>) -> T
  func.return %0 : T
}
""")
    assert names(flow) == ["sine", "choice"]
    sine, choice = flow.steps
    assert [(operand.step, operand.number) for operand in choice.operands] == [(None, 0), (sine, 0), (None, 1)]
    assert not choice.writes_over(0, 0)
    assert choice.writes_over(1, 0)


def test_a_body_that_runs_once_is_opened() -> None:
    flow = flow_of("""
func.func @main(%a: T) -> T {
  %0 = "sdy.manual_computation"(%a) ({
  ^bb0(%x: T):
    %1 = "stablehlo.sine"(%x) : (T) -> T
    "sdy.return"(%1) : (T) -> ()
  }) : (T) -> T
  func.return %0 : T
}
""")
    assert names(flow) == ["sine"]


def test_what_a_loop_never_changes_passes_by_it_and_is_read_by_it() -> None:
    flow = flow_of("""
func.func @main(%a: T, %b: T, %c: T) -> (T, T) {
  %0:2 = "stablehlo.while"(%a, %b) ({
  ^cond(%x: T, %y: T):
    %p = "test.op"(%c) : (T) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^body(%x: T, %y: T):
    %1 = "stablehlo.add"(%x, %y) : (T, T) -> T
    "stablehlo.return"(%x, %1) : (T, T) -> ()
  }) : (T, T) -> (T, T)
  func.return %0#0, %0#1 : T, T
}
""")
    (loop,) = flow.steps
    a, b, c = flow.arguments
    assert flow.returned == (a, loop.results[1])
    assert loop.operands == [a, b, c, a]
    assert [loop.writes_over(number, 1) for number in range(4)] == [False, True, False, False]


def test_what_nothing_needs_is_left_out() -> None:
    flow = flow_of("""
func.func @main(%a: T) -> T {
  %0 = "stablehlo.sine"(%a) : (T) -> T
  %1 = "stablehlo.sine"(%0) : (T) -> T
  "test.op"(%a) : (T) -> ()
  func.return %a : T
}
""")
    assert names(flow) == ["op"]
    assert [step for step, _ in flow.arguments[0].uses] == flow.steps


def test_operations_with_effects_wait_for_each_other() -> None:
    flow = flow_of("""
func.func @main(%a: T, %b: T) -> (T, T, T) {
  %0 = "test.op"(%a) : (T) -> T
  %1 = "stablehlo.sine"(%b) : (T) -> T
  %2 = "test.op"(%b) : (T) -> T
  func.return %0, %1, %2 : T, T, T
}
""")
    assert flow.needs == [0, 0, 0b001]
    assert flow.leads_to == [0b100, 0, 0]
    assert flow.made == [0b001, 0b010, 0b100]
