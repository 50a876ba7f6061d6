"""One engine under the doctor: its events, and those of optimizers, modules and `.grad`, passed on to all detectors.

NOTE [One watcher, many detectors]
Detectors build on one another (most on `Flow`, which knows what each tensor was computed from), so they are called in
the order of `DETECTORS`. Each event goes to the detectors that override it; events are ignored while a detector reads
values itself. A detector gets only the calls that it names (`Detector.calls`); the tensors of a call are collected once
for all. A detector that fails gets no more events: it must not stop the user's program.
"""

import sys
import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from backlight.dispatch.observers import Call, Watcher
from backlight.kernels.native import core
from backlight.lens.doctor.coverage import CoverageCounter
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.accumulation import Accumulation
from backlight.lens.doctor.detectors.causing_lines import CausingLines
from backlight.lens.doctor.detectors.cut_off import CutOff
from backlight.lens.doctor.detectors.data.aliases import Aliases
from backlight.lens.doctor.detectors.data.batch_first import BatchFirst
from backlight.lens.doctor.detectors.data.class_balance import ClassBalance
from backlight.lens.doctor.detectors.data.codes import Codes
from backlight.lens.doctor.detectors.data.constant_terms import ConstantTerms
from backlight.lens.doctor.detectors.data.futures import Futures
from backlight.lens.doctor.detectors.data.inverted_masks import InvertedMasks
from backlight.lens.doctor.detectors.data.last_steps import LastSteps
from backlight.lens.doctor.detectors.data.leaks import Leaks
from backlight.lens.doctor.detectors.data.noise_targets import NoiseTargets
from backlight.lens.doctor.detectors.data.overlaps import Overlaps
from backlight.lens.doctor.detectors.data.own_similarity import OwnSimilarity
from backlight.lens.doctor.detectors.data.own_statistics import OwnStatistics
from backlight.lens.doctor.detectors.data.padded_targets import PaddedTargets
from backlight.lens.doctor.detectors.data.reach import Reach
from backlight.lens.doctor.detectors.data.returns import Returns
from backlight.lens.doctor.detectors.data.scales import Scales
from backlight.lens.doctor.detectors.data.shuffled_rows import ShuffledRows
from backlight.lens.doctor.detectors.data.teachers import Teachers
from backlight.lens.doctor.detectors.dead_training import DeadTraining
from backlight.lens.doctor.detectors.embeddings import Embeddings
from backlight.lens.doctor.detectors.empty_steps import EmptySteps
from backlight.lens.doctor.detectors.function_backwards import FunctionBackwards
from backlight.lens.doctor.detectors.grad_modes import GradModes
from backlight.lens.doctor.detectors.legal import Legal
from backlight.lens.doctor.detectors.losses import Losses, Trends
from backlight.lens.doctor.detectors.memory_writes import MemoryWrites
from backlight.lens.doctor.detectors.models.attention_scores import AttentionScores
from backlight.lens.doctor.detectors.models.detached_states import DetachedStates
from backlight.lens.doctor.detectors.models.focal_weights import FocalWeights
from backlight.lens.doctor.detectors.models.frozen_statistics import FrozenStatistics
from backlight.lens.doctor.detectors.models.log_scales import LogScales
from backlight.lens.doctor.detectors.models.own_softmax import OwnSoftmax
from backlight.lens.doctor.detectors.models.position_codes import PositionCodes
from backlight.lens.doctor.detectors.models.same_goals import SameGoals
from backlight.lens.doctor.detectors.models.single_softmax import SingleSoftmax
from backlight.lens.doctor.detectors.models.variances import Variances
from backlight.lens.doctor.detectors.module_slips import ModuleSlips
from backlight.lens.doctor.detectors.non_finite import NonFinite
from backlight.lens.doctor.detectors.optimizers import Optimizers
from backlight.lens.doctor.detectors.rebuilt import Rebinding, Rebuilt
from backlight.lens.doctor.detectors.rows.augmentations import Augmentations
from backlight.lens.doctor.detectors.rows.carried_states import CarriedStates
from backlight.lens.doctor.detectors.rows.fitted_labels import FittedLabels
from backlight.lens.doctor.detectors.rows.held_out_edges import HeldOutEdges
from backlight.lens.doctor.detectors.rows.held_out_rows import HeldOutRows
from backlight.lens.doctor.detectors.rows.mixups import Mixups
from backlight.lens.doctor.detectors.rows.pixel_scales import PixelScales
from backlight.lens.doctor.detectors.rows.repeated_draws import RepeatedDraws
from backlight.lens.doctor.detectors.rows.trained_rows import TrainedRows
from backlight.lens.doctor.detectors.saved_hooks import SavedHooks
from backlight.lens.doctor.detectors.second_order import Gradients
from backlight.lens.doctor.detectors.slips.attributes import UnreadAttributes
from backlight.lens.doctor.detectors.slips.averages import Averages
from backlight.lens.doctor.detectors.slips.comparisons import Comparisons
from backlight.lens.doctor.detectors.slips.divergence_signs import DivergenceSigns
from backlight.lens.doctor.detectors.slips.late_masks import LateMasks
from backlight.lens.doctor.detectors.slips.loaders import Loaders
from backlight.lens.doctor.detectors.slips.mixed_rows import MixedRows
from backlight.lens.doctor.detectors.slips.plateaus import Plateaus
from backlight.lens.doctor.detectors.slips.policy_weights import PolicyWeights
from backlight.lens.doctor.detectors.slips.quantile_signs import QuantileSigns
from backlight.lens.doctor.detectors.slips.ranked_pairs import RankedPairs
from backlight.lens.doctor.detectors.slips.ratios import Ratios
from backlight.lens.doctor.detectors.slips.repeated_seeds import RepeatedSeeds
from backlight.lens.doctor.detectors.slips.shared_copies import SharedCopies
from backlight.lens.doctor.detectors.slips.softmax_dims import SoftmaxDims
from backlight.lens.doctor.detectors.slips.td_errors import TdErrors
from backlight.lens.doctor.detectors.slips.temperatures import Temperatures
from backlight.lens.doctor.detectors.slips.unused_values import UnusedValues
from backlight.lens.doctor.detectors.slips.written import Written
from backlight.lens.doctor.detectors.totals import Totals
from backlight.lens.doctor.detectors.training.clipping import Clipping
from backlight.lens.doctor.detectors.training.constructions import Constructions
from backlight.lens.doctor.detectors.training.directions import Directions
from backlight.lens.doctor.detectors.training.evaluation import Evaluation
from backlight.lens.doctor.detectors.training.foreign_gradients import ForeignGradients
from backlight.lens.doctor.detectors.training.growing_graphs import GrowingGraphs
from backlight.lens.doctor.detectors.training.loss_arguments import LossArguments
from backlight.lens.doctor.detectors.training.no_effect import NoEffect, ThrownUpdates
from backlight.lens.doctor.detectors.training.penalties import Penalties
from backlight.lens.doctor.detectors.training.remade_optimizers import OwnOptimizers, RemadeOptimizers
from backlight.lens.doctor.detectors.training.repeated_layers import RepeatedLayers
from backlight.lens.doctor.detectors.training.roots import Roots
from backlight.lens.doctor.detectors.training.sampling import Sampling
from backlight.lens.doctor.detectors.training.scalers import Scalers
from backlight.lens.doctor.detectors.training.schedules import Schedules
from backlight.lens.doctor.detectors.training.states import States
from backlight.lens.doctor.detectors.training.steps import Steps
from backlight.lens.doctor.detectors.training.symmetry import Symmetry
from backlight.lens.doctor.detectors.training.unheld import Attributes, Unheld
from backlight.lens.doctor.detectors.vanishing import Vanishing
from backlight.lens.doctor.flow import Flow
from backlight.lens.doctor.history import History
from backlight.lens.doctor.monkeypatches import Patches
from backlight.lens.doctor.origins import Origins
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.engines import Engine

DETECTORS: tuple[type[Detector], ...] = (
    *(History, Origins, CausingLines, Gradients, Legal, Flow, Constructions, Roots, Scalers, States, Attributes),
    *(Accumulation, CutOff, GradModes, Losses, MemoryWrites, ModuleSlips, NonFinite, Optimizers, Rebinding, Rebuilt),
    *(Clipping, Evaluation, ForeignGradients, GrowingGraphs, LossArguments, NoEffect, ThrownUpdates, RemadeOptimizers),
    *(Sampling, Schedules, Symmetry, Unheld, OwnOptimizers, RepeatedLayers, Penalties, Steps),
    *(UnreadAttributes, Ratios, SharedCopies, Written, Loaders, MixedRows, PolicyWeights),
    *(SoftmaxDims, LateMasks, TdErrors, Averages, Comparisons, UnusedValues),
    *(DivergenceSigns, PaddedTargets, Plateaus, QuantileSigns, RankedPairs, RepeatedSeeds, Temperatures),
    *(ConstantTerms, Futures, InvertedMasks, LastSteps, Leaks, Reach, ShuffledRows, Teachers),
    *(Aliases, BatchFirst, ClassBalance, Overlaps, OwnSimilarity),
    *(Codes, NoiseTargets, OwnStatistics, Returns, Scales),
    *(DetachedStates, FrozenStatistics, LogScales, SingleSoftmax, Augmentations, HeldOutRows),
    *(CarriedStates, FittedLabels, HeldOutEdges, Mixups, PixelScales, RepeatedDraws, TrainedRows),
    *(AttentionScores, FocalWeights, OwnSoftmax, PositionCodes, SameGoals, Variances),
    *(SavedHooks, Totals, Trends, EmptySteps, DeadTraining, FunctionBackwards, Vanishing, Embeddings, Directions),
    CoverageCounter,
)
NO_EVENTS = {"calls", "every_call", "only_notes", "only_nodes", "only_recorded", "values"}
EVENTS = tuple(
    name for name in {**vars(Watcher), **vars(Detector)} if not name.startswith("_") and name not in NO_EVENTS
)
DEPTH = 3  # how deep tensors may lie in lists and dicts
WRAPPED = "is_functorch_wrapped_tensor"
READS_ONLY = {"grad", "__repr__", "__format__", "__len__", "__hash__"}  # calls that few detectors want
IN_PLACE_OPERATORS = {"iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div", "truediv": "div"}


class _PythonSender:
    """Passes an event on to detectors, unless one of them runs; one that fails is given up, and the others go on."""

    def __init__(self, watch: "EngineWatch", listeners: list | tuple):
        self.watch, self.listeners = watch, listeners

    def __call__(self, *args) -> None:
        watch = self.watch
        if watch.busy:
            return
        watch.busy, watch.read = True, {}
        try:
            for listener in tuple(self.listeners):
                try:
                    listener(*args)
                except Exception as problem:
                    watch._give_up(listener.__self__, problem)
        finally:
            watch.busy, watch.read = False, None


Sender = _PythonSender if core is None else core.Sender


class EngineWatch(Watcher):
    """See NOTE [One watcher, many detectors].

    Args:
        session: gets the findings.
        engine: what is watched.

    Attributes:
        name, inputs, outs: of the current call: its plain name, its tensors.
        stepping: how many optimizers' steps run, one inside the other.
        failed: the names of detectors that made a mistake of their own, and what it was.
    """

    def __init__(self, session, engine: Engine):
        self.session = session
        self.engine = engine
        self.thread = threading.get_ident()
        self.busy = False  # whether a detector runs
        self.read: dict[int, tuple] | None = None  # by id, tensors that were read in this event, and their values
        self.stepping = 0
        self.name, self.inputs, self.outs = "", [], []
        self.optimizers: WeakIdDict[None] = WeakIdDict()
        self.patches = Patches(self)
        self.failed: dict[str, Exception] = {}
        kinds = [kind for kind in DETECTORS if session.notes or not kind.only_notes]
        self.detectors: dict[type[Detector], Any] = {kind: kind(self) for kind in kinds}
        self.flow: Flow = self.detectors[Flow]
        self.listeners: dict[str, list] = {event: [] for event in EVENTS}
        for kind, one in self.detectors.items():
            for event in _events_of(kind):
                self.listeners[event].append(getattr(one, event))
        calls = self.listeners.pop("called")
        self.listeners["called"] = [one for one in calls if not one.__self__.every_call]
        self.listeners["every_call"] = [one for one in calls if one.__self__.every_call]
        self._after: dict[tuple[int, str], list] = {}  # a patched function's owner, by its id, and name
        self._of_name: dict[str, tuple] = {}  # a call's name -> who wants it
        self._tensor = engine.module.Tensor
        self._recording = engine.module.is_grad_enabled
        self._is_wrapped = getattr(getattr(getattr(engine.module, "_C", None), "_functorch", None), WRAPPED, None)
        for event in vars(Watcher):
            if self.listeners.get(event) and event != "called":
                setattr(self, event, Sender(self, self.listeners[event]))
        self._send = {event: Sender(self, listeners) for event, listeners in self.listeners.items()}

    def _give_up(self, detector: Detector, problem: Exception) -> None:
        self.failed[type(detector).__name__] = problem
        self._of_name.clear()
        for listeners in self.listeners.values():
            listeners[:] = [one for one in listeners if one.__self__ is not detector]

    def called(self, call: Call) -> None:
        """Pass a call to the listeners that want it; to most nothing of what an optimizer computes in its step."""
        if self.busy:
            return
        if self.stepping and not self._recording():
            return
        self._send["every_call"](call)
        if call.name in READS_ONLY:
            return
        self.inputs, self.outs = self.tensors_in(call.args), self.tensors_in(call.out)
        if call.kwargs:
            self.inputs += self.tensors_in(call.kwargs)
        known = self._of_name.get(call.name)
        if known is None:
            plain = call.name.strip("_")
            plain = IN_PLACE_OPERATORS.get(plain, plain)
            known = self._of_name[call.name] = plain, Sender(self, self._receivers_of({call.name, plain}))
        self.name = known[0]
        known[1](call)
        self.inputs, self.outs = [], []

    def _receivers_of(self, names: set[str]) -> tuple:
        return tuple(
            one for one in self.listeners["called"] if one.__self__.calls is None or names & one.__self__.calls
        )

    def tensors_in(self, value: Any, depth: int = DEPTH) -> list:
        """Return the plain tensors in a value: itself, or in lists, tuples and dicts."""
        if isinstance(value, self._tensor):
            return [value] if self.is_plain(value) else []
        if depth == 0 or not isinstance(value, (list, tuple, dict)):
            return []
        found = []
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, self._tensor):
                if self.is_plain(one):
                    found.append(one)
            elif isinstance(one, (list, tuple, dict)):
                found += self.tensors_in(one, depth - 1)
        return found

    def is_plain(self, tensor: Any) -> bool:
        """Return whether a tensor has a shape and values in memory: no sparse, nested, meta, lazy one, no vmap's."""
        if self.flow.known(tensor) is not None:
            return True
        if getattr(tensor, "is_nested", False) or getattr(tensor, "is_meta", False):
            return False
        if getattr(tensor, "is_quantized", False) or getattr(tensor, "is_sparse", False):
            return False
        if self._is_wrapped is not None and self._is_wrapped(tensor):
            return False
        return not type(tensor).__name__.startswith("Uninitialized")

    def notify(self, event: str, *args) -> None:
        """Pass one of the detectors' own events on, unless it comes from another thread or from a detector."""
        if not self.busy and threading.get_ident() == self.thread:
            with self.patches.unseen():
                self._send[event](*args)

    def after(self, owner: Any, name: str, listener: Callable) -> None:
        """Call a detector's `listener(frame, out, args, kwargs)` after each call of a function, until the end.

        `frame` is the caller's, `out` what the function returned, the others what it was called with.
        """

        key, send = (id(owner), name), Sender(self, (listener,))
        if key in self._after:
            self._after[key].append(send)
            return
        all_to_send = self._after[key] = [send]

        def patch(original: Callable) -> Callable:
            @wraps(original)
            def patched(*args, **kwargs):
                out = original(*args, **kwargs)
                if not self.busy:
                    frame = sys._getframe(1)
                    while frame.f_code is patched.__code__:  # of another doctor
                        frame = frame.f_back
                    with self.patches.unseen():
                        for send in all_to_send:
                            send(frame, out, args, kwargs)
                return out

            return patched

        self.session.patch(owner, name, patch)

    def begin_step(self) -> None:
        """An optimizer's step, or its zero_grad(), begins: what it computes unrecorded is of no interest."""
        self.stepping += 1
        self.only_recorded = True
        self.engine.wants_changed()

    def end_step(self) -> None:
        """It has ended."""
        self.stepping -= 1
        self.only_recorded = self.stepping > 0
        self.engine.wants_changed()

    def remember(self, optimizer: Any) -> None:
        """Remember an optimizer, without keeping it alive."""
        if optimizer not in self.optimizers:
            self.optimizers[optimizer] = None

    def optimised(self) -> dict[int, Any]:
        """Return the parameters of the optimizers that the program made or used and still has, by their ids."""
        groups = [group for one in self.optimizers.alive() for group in one.param_groups]
        return {id(param): param for group in groups for param in group["params"]}

    def begin(self) -> None:
        """Patch optimizers, `.grad` and backward(), and let the detectors begin."""
        self.patches.begin()
        for detector in self.detectors.values():
            detector.begin()

    def paused(self) -> None:
        """Take away what stands in the engine, while compiled code runs."""
        self.patches.end()
        self.session.pause()

    def resumed(self) -> None:
        """Put it back."""
        self.session.resume()
        self.patches.hook_steps()

    def end(self, problem: BaseException | None) -> None:
        """Let the detectors look at what is left."""
        self.busy = True
        self.patches.end()
        for kind, detector in self.detectors.items():
            if not {kind.__name__, Flow.__name__} & set(self.failed):
                try:
                    detector.end(problem)
                except Exception as failure:
                    self.failed[kind.__name__] = failure


@cache
def _events_of(kind: type[Detector]) -> frozenset[str]:
    """Return the events that a detector overrides."""
    return frozenset(
        event for event in EVENTS if getattr(kind, event, None) not in (None, getattr(Detector, event, None))
    )
