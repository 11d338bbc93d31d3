"""Inspection: one traced program, what is donated, and every question that can be asked of it.

An Inspection is immutable. `donate` and `keep` give a new one that shares all that donation does not change (see
`subject.py`). Answers are computed when asked for and kept.
"""

from __future__ import annotations

import dataclasses
import pathlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, cast, overload

from donation_inspector.advice import recommending, safety
from donation_inspector.advice.recommendation import Recommendation, Unsafe
from donation_inspector.analysis import donation as decisions
from donation_inspector.analysis.donation import Argument, Result
from donation_inspector.analysis.live_range import LiveRange, LiveRanges
from donation_inspector.analysis.memory import MemoryCurve, curve
from donation_inspector.bufferized.values import Bufferization
from donation_inspector.common.forgetting import forget
from donation_inspector.common.progress import Progress, reported
from donation_inspector.common.signature import Donation
from donation_inspector.common.units import parse_bytes
from donation_inspector.common.visible import repr_of, shown_in_line
from donation_inspector.errors import CompileError, MeasureError
from donation_inspector.files import saved
from donation_inspector.frameworks import jitting
from donation_inspector.ir import generic
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.text import Text
from donation_inspector.machine import system
from donation_inspector.passes.flags import set_donation
from donation_inspector.program import running
from donation_inspector.program.selection import select
from donation_inspector.program.subject import Subject, Whole
from donation_inspector.questions import callbacks
from donation_inspector.questions.apply.answer import Applied
from donation_inspector.questions.apply.ask import REAL_PASS, Pipeline, apply, pipeline_name
from donation_inspector.questions.bufferize import ask as bufferizing
from donation_inspector.questions.compare import ask as compiling
from donation_inspector.questions.compare.answer import Comparison, Comparisons
from donation_inspector.questions.measure import ask as measuring
from donation_inspector.questions.measure.answer import Measurement
from donation_inspector.questions.outside import ask as outside
from donation_inspector.questions.outside.ask import Outside
from donation_inspector.questions.sweep import ask as sweeping
from donation_inspector.questions.sweep.answer import Sweep
from donation_inspector.questions.verify.answer import DonatedArgument
from donation_inspector.questions.where import ask as where
from donation_inspector.questions.where.answer import Where
from donation_inspector.xla.targets import Target, resolve


class Inspection:
    """One program with one set of donated arguments. Made by `opening`."""

    def __init__(self, subject: Subject, donated: frozenset[int] | None = None, pipeline: Pipeline = REAL_PASS):
        """`donated` holds leaf indices; None means as the function itself donates."""
        self._subject = subject
        self._donated = self.donated_by_function if donated is None else donated
        self._pipeline = pipeline
        self._elsewhere: dict[str, Inspection] = {self.platform: self}
        self._shown: Callable[[], Any] = lambda: None

    # ---- what is there

    @property
    def name(self) -> str:
        """The function's name."""
        return self._subject.origin.name

    @property
    def jaxpr(self) -> str | None:
        """The jaxpr's text; None where JAX gives none (a `Lowered`, a file)."""
        return self._subject.jaxpr

    @property
    def ir(self) -> str:
        """The program as pretty StableHLO with this donation, big constants elided."""
        return self.apply().before

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed while tracing, donation that has no effect among it, in plain sentences."""
        return self._subject.origin.notes(self._donated, self.donation)

    @property
    def pipeline(self) -> str:
        """The pipeline that `apply`, `compare` and `measure` use when none is given, as xdsl-opt writes it."""
        return pipeline_name(self._pipeline)

    @property
    def wholes(self) -> tuple[Whole, ...]:
        """The arguments as the user wrote them, each with the leaves below it."""
        return self._subject.wholes

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Every flat argument in JAX's order, dropped ones included, with its verdict and the reason."""
        return self._verdicts[0]

    @property
    def results(self) -> tuple[Result, ...]:
        """Every flat result in JAX's order."""
        return self._verdicts[1]

    @cached_property
    def candidates(self) -> tuple[Argument, ...]:
        """Arguments that are not donated and could be, most bytes first."""
        return decisions.candidates(self.arguments)

    @cached_property
    def unsafe(self) -> tuple[Unsafe, ...]:
        """What speaks against donating the candidates, and what is donated here and not by the function itself.

        Certain is what the caller's arrays show, as they are when this is asked first: one that is given twice, a numpy
        view. A candidate that no result comes back for is probably passed again.
        """
        subject = self._subject
        candidates = {argument.index for argument in self.candidates}
        chosen = self._donated - self.donated_by_function
        certain = safety.audit_arrays(subject.signature, subject.origin.values(), candidates | chosen)
        if subject.replaced is None:
            return certain
        left = candidates - {leaf for one in certain for leaf in one.leaves}
        return (*certain, *safety.passed_again(subject.signature, subject.replaced, left))

    @cached_property
    def attainable(self) -> tuple[Argument, ...]:
        """The candidates that a result would take if all that are safe were donated: each result takes one.

        On several devices also those that JAX leaves to XLA, as long as a result's sharding is.
        """
        unsafe = self._unsafe_leaves
        safe = [argument for argument in self.candidates if argument.index not in unsafe]
        everything = self._donated | {argument.index for argument in safe}
        arguments = Inspection(self._subject, everything, self._pipeline).arguments
        with_all = [(one, arguments[one.index]) for one in safe]
        aliased = decisions.Verdict.ALIASED
        return tuple(one for one, then in with_all if then.verdict is aliased or then.advised is not None)

    @cached_property
    def worthwhile(self) -> tuple[Whole, ...]:
        """The whole arguments to be donated besides: most of their bytes are attainable, and nothing of them is unsafe.

        Nothing where that is less than a hundredth of what is live at once, in program order.
        """
        unsafe = self._unsafe_leaves
        attainable = {argument.index for argument in self.attainable}
        bytes_of = {
            whole: sum(self.arguments[leaf].nbytes or 0 for leaf in whole.leaves if leaf in attainable)
            for whole in self.wholes
            if unsafe.isdisjoint(whole.leaves)
        }
        worth = [
            whole
            for whole, free in bytes_of.items()
            if 2 * free >= sum(self.arguments[leaf].nbytes or 0 for leaf in whole.leaves) > 0
        ]
        peak = self.baseline_memory.peak
        worth = [whole for whole in worth if 1000 * bytes_of[whole] >= peak]
        return tuple(worth) if 100 * sum(bytes_of[whole] for whole in worth) >= peak else ()

    @property
    def _unsafe_leaves(self) -> frozenset[int]:
        return frozenset(leaf for one in self.unsafe for leaf in one.leaves)

    @property
    def proposed(self) -> tuple[Argument, ...]:
        """What of the attainable is in `worthwhile`; all of it where that is nothing."""
        leaves = {leaf for whole in self.worthwhile for leaf in whole.leaves}
        return tuple(one for one in self.attainable if one.index in leaves) or self.attainable

    @cached_property
    def donation(self) -> Donation:
        """What JAX makes of the donated arguments, by position in the entry function."""
        return self._subject.origin.decide(self._donated)

    @cached_property
    def live_ranges(self) -> tuple[LiveRange, ...]:
        """The live range of every value of the entry function, in the StableHLO's order, not XLA's schedule."""
        return tuple(self.range_columns)

    @cached_property
    def range_columns(self) -> LiveRanges:
        """The live ranges as columns, for what is long."""
        return self._subject.ranges.with_donated(self.donation.positions)

    @cached_property
    def program_memory(self) -> MemoryCurve:
        """Live bytes over the operations of the entry function, in program order (not XLA's schedule)."""
        return curve(self.range_columns)

    @property
    def platform(self) -> str:
        """The platform that the program is compiled for, as "cpu"."""
        return self._subject.origin.platform

    @property
    def devices(self) -> int:
        """How many devices the program runs on."""
        return self._subject.signature.devices

    @property
    def text(self) -> Text:
        """The program as lowered, line by line, with the line of each operation of the entry function."""
        return self._subject.text

    @property
    def baseline_ranges(self) -> LiveRanges:
        """The live ranges with nothing donated."""
        return self._subject.ranges

    @property
    def baseline_memory(self) -> MemoryCurve:
        """The curve with nothing donated."""
        return self._subject.memory

    @cached_property
    def donated_by_function(self) -> frozenset[int]:
        """The leaves that the function itself donates, before any `donate` or `keep`."""
        return frozenset(leaf.index for leaf in self._subject.signature.arguments if leaf.donated)

    @property
    def donation_ignored(self) -> frozenset[int]:
        """The leaves that code says to donate and JAX does not: that of an inner jit, or under a setting."""
        return frozenset(leaf.index for leaf in self._subject.signature.arguments if leaf.ignored is not None)

    @property
    def donation_turned_off(self) -> frozenset[int]:
        """Those of them that the function itself asks for, and a setting of JAX keeps from it."""
        leaves = self._subject.signature.arguments
        return frozenset(leaf.index for leaf in leaves if leaf.ignored not in (None, "inner jit"))

    def line_that_donates(self, names: Sequence[str]) -> str | None:
        """The line of code that donates these whole arguments; None where there is no function to write it for."""
        way = self._subject.origin.way
        return None if way is None else jitting.line_that_donates(way, names)

    # ---- other donated sets and pipelines

    def donate(self, *paths: str) -> Inspection:
        """The same program with these arguments donated too: each a leaf or a prefix, as `opt_state`, `params['w']`.

        JAX's own code decides what becomes of them. Raises PathError for a path that does not exist.
        """
        return Inspection(self._subject, self._donated | select(self._subject.signature, paths), self._pipeline)

    def keep(self, *paths: str) -> Inspection:
        """The same program with these arguments not donated. Raises PathError for a path that does not exist."""
        return Inspection(self._subject, self._donated - select(self._subject.signature, paths), self._pipeline)

    def with_pipeline(self, pipeline: Pipeline) -> Inspection:
        """The same program and donation with another pipeline for `apply`, `compare` and `measure`."""
        return Inspection(self._subject, self._donated, pipeline)

    # ---- the pass, XLA, the device

    def apply(self, pipeline: Pipeline | None = None) -> Applied:
        """Run a pipeline on the program: xdsl-opt's string or ModulePass objects; None is this Inspection's own.

        Raises:
          PassError: the pipeline does not exist or fails on this program.
        """
        chosen = self._pipeline if pipeline is None else pipeline
        if chosen is self._pipeline:
            return self._applied
        return apply(self._subject, self.donation, chosen)

    # "mlir" is a str like the others, which pyright takes for a contradiction: the first overload that fits is meant
    @overload
    def compare(  # pyright: ignore[reportOverlappingOverload]
        self,
        target: Literal["mlir"],
        pipeline: Pipeline | None = None,
        *,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Bufferization: ...
    @overload
    def compare(
        self,
        target: str | Target | None = None,
        pipeline: Pipeline | None = None,
        *,
        fits: str | int | None = None,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Comparison: ...
    @overload
    def compare(
        self,
        target: Sequence[str | Target | None],
        pipeline: Pipeline | None = None,
        *,
        fits: str | int | None = None,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Comparisons: ...
    def compare(
        self,
        target: str | Target | Sequence[str | Target | None] | None = None,
        pipeline: Pipeline | None = None,
        *,
        fits: str | int | None = None,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Comparison | Comparisons | Bufferization:
        """Compile the variants "none", "jax" and "pass" with XLA, in child processes: what was not compiled before.

        `target` None is the device of this machine that the program was lowered for. "tpu:v5e", "tpu:v5e:16x16" or
        "cuda:h100" need not be here (`donation_inspector.targets()` lists what can be asked for): the program is
        lowered for it, compiled and not run. A list of targets gives `Comparisons`. As many are compiled at once as
        there are cores and memory for; `Comparison.how` says how many. `fits` ("24GB", or bytes) is the memory of one
        device, where the target's own is not meant.

        "mlir" is no device of XLA's, and alone: the pass's own IR is run. The program is lowered to linalg, the
        pipeline runs on that, MLIR bufferizes it, and it is called once on this machine's CPU, real arrays where they
        are alive. The `Bufferization` has what was counted then (allocations, copies, the peak of the heap) for no
        pass with nothing donated ("none"), for xDSL's "jax-use-donated-arguments" and for the pipeline ("pass"), and
        holds the outputs to JAX's.

        `progress(step, steps, label)` is called as variants finish; setting `cancel` ends the children at once.
        A variant that XLA refuses, that does not fit, that crashes or was cancelled is part of the answer. What is
        compiled is kept.

        Raises:
          CompileError: a target that does not exist or lacks what it needs; a file that cannot be compiled here, as one
            with dynamic shapes.
          TraceError: JAX cannot lower this function for the target's platform.
        """
        callbacks.check(progress, cancel, CompileError)
        if isinstance(target, str) and target == "mlir":
            return self._bufferized(pipeline, fits, progress, cancel)
        several = isinstance(target, list | tuple)
        specs = cast("Sequence[str | Target | None]", target if several else (target,))
        targets = [self._target(spec, fits) for spec in specs]
        there = {one.name: self._on(one.platform) for one in targets}
        jobs = [there[one.name]._job(one, pipeline) for one in targets]
        names = ", ".join(there)
        with reported(progress, f"XLA compiles for {names}: none, jax, pass") as report:
            answers = compiling.compare(jobs, report, cancel)
        for one in reversed(targets):
            self._subject.asked.pop(one.name, None)
            self._subject.asked[one.name] = one
        return Comparisons(answers) if several else answers[0]

    def measure(
        self,
        inputs: str = "real",
        runs: int = 5,
        timeout: float = 60.0,
        pipeline: Pipeline | None = None,
        *,
        in_kernel: bool = False,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """Run each variant in a fresh process and measure its peak memory and time.

        The executables are those that `compare` left; what is not compiled yet is compiled once, for all runs and for a
        comparison to come. `Measurement.executables` says which ran.

        `inputs`: "real" takes the caller's arrays where they are still alive and generates the others, "generated"
        generates all. `timeout` is in seconds for each variant, to compile it and again to run it. A variant that
        fails, cannot run outside this process or was cancelled is part of the answer. `in_kernel` runs them in this
        process, for a GPU or TPU that it holds; `Measurement.limits` says what that costs.

        Raises:
          MeasureError: arguments of this method that make no sense; this process holds the device, so that a fresh one
            cannot run on it: the message has the ways out; a file that calls what XLA does not answer for.
          CompileError: a file that cannot be compiled here, as one with dynamic shapes.
        """
        callbacks.check(progress, cancel, MeasureError)
        if not isinstance(cast(object, in_kernel), bool):
            raise MeasureError(f"in_kernel must be True or False, got {repr_of(in_kernel)}.")
        case, runs_of_file = self._case(pipeline), self.will_run
        where = "in this kernel" if in_kernel else "in fresh processes"
        what = f" ({runs_of_file})" if runs_of_file else ""
        with reported(progress, f"runs {where} on {self.platform}: none, jax, pass{what}") as report:
            if runs_of_file and progress is not None:
                report(0, 1, runs_of_file)
            return measuring.measure(case, inputs, runs, timeout, in_kernel, report, cancel)

    def recommend(
        self,
        target: str | Target | None = None,
        budget: float = 60.0,
        *,
        compiles: int | None = None,
        fits: str | int | None = None,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Recommendation:
        """Search the pairing of the donated arguments with results that has XLA's smallest total; nothing is run.

        Searched are the pairings of what is chosen here by `donate` or `keep`, single arguments left out too; else of
        what the function itself donates and what could be (`attainable`), less what is unsafe. `target` is as for
        `compare`, one alone, and `fits` too.

        None and JAX's own pairing are always compiled. Then the others are, in child processes, the most promising
        first, for `budget` seconds, at most `compiles` of them. None: all where they are few, else until nothing gets
        better. The smallest total wins, on a tie what stands there now and then JAX's own pairing. Setting `cancel`
        and Ctrl-C end the search: what is compiled until then gives the answer.

        Raises:
          CompileError: as `compare`; a budget or a number of compiles that makes no sense.
          TraceError: JAX cannot lower this function for the target's platform.
        """
        callbacks.check(progress, cancel, CompileError)
        there = self._target(target, fits)
        with reported(progress, f"XLA compiles for {there.name}: none, jax, other pairings") as report:
            found = recommending.recommend(
                self._subject.on(there.platform),
                self._donated,
                there,
                budget=budget,
                compiles=compiles,
                progress=report,
                cancel=cancel,
            )
        self._subject.recommendations[self._donated] = found
        return found

    def sweep(
        self,
        sizes: Mapping[str, Sequence[Any]] | None = None,
        /,
        *,
        target: str | Target | None = None,
        fits: str | int | None = None,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
        **by_name: Sequence[Any],
    ) -> Sweep:
        """XLA's totals at other sizes of the arguments, from shapes alone: `sweep(batch=[8, 16, 32])`; nothing is run.

        A name is that of an argument; any path, and an argument that is called as an option here, goes into the
        mapping: `sweep({"batch['x']": [8, 16]})`. Each size takes the place of the leading dimension of every array
        below it, scalars left out; a tuple is the whole shape of one array. Several names change together, the first
        sizes of all first. The function is traced anew at each size; what it takes as static does not change.

        What is donated here is donated at every size. `target`, `fits`, `progress` and `cancel` as for `compare`. What
        JAX cannot trace at a size, and what does not fit, is refused or cancelled, is a row of the answer.

        Raises:
          PathError: there is no such argument, or no single dimension of it that could change.
          TraceError: what is given for an argument is no list of sizes.
          IRError: a program from a file, or a lowering alone.
          CompileError: as `compare`.
        """
        callbacks.check(progress, cancel, CompileError)
        there = self._target(target, fits)
        asked = sweeping.asked(sizes, by_name)
        with reported(progress, f"XLA compiles for {there.name} at each size of {', '.join(asked)}") as report:
            return sweeping.sweep(self._subject, self._donated, asked, there, progress=report, cancel=cancel)

    @property
    def recommendation(self) -> Recommendation | None:
        """The latest recommendation for this donated set, if there is one."""
        return self._subject.recommendations.get(self._donated)

    @property
    def comparison(self) -> Comparison | None:
        """The finished comparison of this donation and pipeline for the target last asked for, if there is one."""
        asked = list(self._subject.asked)
        return self._comparison(asked[-1]) if asked else None

    @property
    def comparisons(self) -> Comparisons:
        """The finished comparisons of this donation and pipeline, for every target that was asked for."""
        found = map(self._comparison, self._subject.asked)
        return Comparisons(one for one in found if one is not None)

    @property
    def measurement(self) -> Measurement | None:
        """The finished measurement of this donation and pipeline, if there is one."""
        return measuring.kept_measurement(self._case(None))

    @property
    def will_run(self) -> str | None:
        """What `measure` would run of this file, in one sentence; None for a function of the caller's own.

        Raises MeasureError where it calls what XLA does not answer for: `measure` refuses that.
        """
        return running.described(self._subject)

    @property
    def verified(self) -> tuple[DonatedArgument, ...] | None:
        """What became of the donated arguments in the user's own call; None where `verify` made none with this set."""
        return self._subject.verified.get(self._donated)

    @property
    def outside(self) -> Outside:
        """What else fills the device now: the live arrays that are no arguments of this call, by their variables."""
        origin = self._subject.origin
        return outside.look(self.platform, (*origin.values(), *origin.inputs()), gone=origin.gone())

    @property
    def bufferization(self) -> Bufferization | None:
        """The finished answer of target "mlir" for this donation and pipeline, if there is one."""
        there = self._elsewhere.get("cpu")
        return None if there is None else bufferizing.kept(there._subject, there.donation, self._pipeline)

    def where(self, asked: str | int) -> Where:
        """What a line of Python, a value, an instruction of XLA's or an argument has to do with the others.

        `asked` is "train.py:41" or 41, "cell:3" in a notebook's cell; "%12"; "fusion.3"; "params['w']". XLA's side is
        that of the compiled variant which the report speaks of, and there after `compare`.

        Raises:
          PathError: there is no such thing; the message names the near ones.
        """
        comparison = self.comparison
        shown = comparison and comparison.shown
        with self._subject.lock:
            return where.find(self._subject, shown.module if shown else None, asked)

    def save(self, path: str | pathlib.Path) -> None:
        """Write the program, its donation and what was compiled and measured to one file, by habit `*.di`.

        `load` reads it in another process, and `donation-inspector measure` runs it from the shell, where this kernel
        holds the device. It holds no arrays: `measure` generates them.
        """
        system.check_path(path)
        sets = (self._donated, self.donated_by_function, frozenset[int]())
        saved.write(path, self._subject, sets, self.pipeline)

    def write_mlir(self, path: str | pathlib.Path) -> None:
        """Write the program with this donation as MLIR text that `xdsl-opt` reads back without loss.

        `xdsl-opt -p jax-use-donated-arguments PATH` needs no other flag: with the inspector installed it knows JAX's
        dialects. Operations of any other dialect, as in a file from elsewhere, need `--allow-unregistered-dialect`.
        `inspect_ir` reads what `xdsl-opt` prints. The text is in generic form; constants are exact to the bit, and
        `dense_resource` where xDSL would misread or expand them. A location is the name and the innermost frame of the
        user's code; `xdsl-opt --print-debuginfo` keeps them, and the arguments their names.

        Raises MachineError where `path` cannot be written.
        """
        with self._subject.lock:
            module = self._subject.imported.module.clone()
            set_donation(entry_function(module), self.donation)
            text = generic.text(self._subject.imported, module)
        with system.writing(path):
            pathlib.Path(path).write_text(text, encoding="utf-8")

    # ---- for people

    def report(self) -> str:
        """Everything known so far as text: verdicts with reasons, the pass, what was compiled and measured."""
        from donation_inspector.present import report

        return report.text(self)

    def to_html(self, path: str | pathlib.Path) -> None:
        """Write the report as one HTML page that needs nothing else."""
        from donation_inspector.present import report

        page = report.page(self)
        with system.writing(path):
            pathlib.Path(path).write_text(page, encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Everything known so far as one JSON value, for other programs and for `donation-inspector diff`.

        `donation_inspector/summary.py` lists the keys; they are kept. What is unknown is None.
        """
        from donation_inspector.present import summary

        return summary.summary(self)

    def widget(self) -> Any:
        """The interactive widget on this Inspection; needs anywidget."""
        from donation_inspector.present.widget import DonationWidget

        return DonationWidget(self)

    def __repr__(self) -> str:
        donated = sum(argument.donated for argument in self.arguments)
        return f"<Inspection {shown_in_line(self.name)}: {len(self.arguments)} arguments, {donated} donated>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        try:
            # a weak reference: an open widget is held by ipywidgets, and a closed one by nobody
            widget = self._shown()
            if widget is None or widget.closed:
                widget = self.widget()
                self._shown = weakref.ref(widget)
        except ModuleNotFoundError:
            # Without anywidget a notebook still shows everything, only not interactive.
            from donation_inspector.present import report

            return {"text/plain": report.summary(self), "text/html": report.static_html(self)}
        return widget._repr_mimebundle_(**kwargs)

    # ---- targets

    def _target(self, spec: str | Target | None, fits: str | int | None) -> Target:
        if isinstance(spec, str) and spec == "mlir":
            raise CompileError("'mlir' is no device that XLA compiles for: ask for it alone, compare('mlir').")
        target = resolve(spec, platform=self.platform, devices=self.devices)
        if fits is None:
            return target
        given = cast(object, fits)
        capacity = parse_bytes(given) if isinstance(given, str) else given
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity <= 0:
            raise CompileError(f"fits={repr_of(fits)} is no amount of memory: write it as '24GB', '16GiB' or in bytes.")
        return dataclasses.replace(target, capacity=capacity)

    def _on(self, platform: str) -> Inspection:
        """The same donated set and pipeline on the program as lowered for a platform."""
        if platform not in self._elsewhere:
            self._elsewhere[platform] = Inspection(self._subject.on(platform), self._donated, self._pipeline)
        return self._elsewhere[platform]

    def _bufferized(
        self,
        pipeline: Pipeline | None,
        fits: str | int | None,
        progress: Progress | None,
        cancel: threading.Event | None,
    ) -> Bufferization:
        if fits is not None:
            raise CompileError(
                f"fits={repr_of(fits)} is for a device; the target 'mlir' runs in this machine's memory."
            )
        there = self._on("cpu")
        chosen = self._pipeline if pipeline is None else pipeline
        with reported(progress, "MLIR bufferizes and runs: none, jax-use-donated-arguments, pass") as report:
            return bufferizing.bufferize(there._subject, there.donation, chosen, report, cancel)

    def _job(self, target: Target, pipeline: Pipeline | None) -> compiling.Job:
        return compiling.Job(self._case(pipeline), target)

    def _comparison(self, name: str) -> Comparison | None:
        target = self._subject.asked[name]
        there = self._on(target.platform)
        return compiling.kept_comparison(there._case(None), target)

    def _case(self, pipeline: Pipeline | None) -> compiling.Case:
        return compiling.Case(self._subject, self.donation, self.apply(pipeline), *self._verdicts)

    # ---- kept answers

    def forget(self) -> None:
        """Let go of what is made of the program alone, and is made again when it is asked for; answers are kept."""
        self._subject.forget()
        forget(self)

    @cached_property
    def _verdicts(self) -> tuple[tuple[Argument, ...], tuple[Result, ...]]:
        warned = self._subject.origin.warned(self._donated, self.donation)
        return decisions.verdicts(
            self._subject.signature,
            self.donation,
            donated=self._donated,
            warned=warned,
            replaced=self._subject.replaced or {},
        )

    @cached_property
    def _applied(self) -> Applied:
        return apply(self._subject, self.donation, self._pipeline)
