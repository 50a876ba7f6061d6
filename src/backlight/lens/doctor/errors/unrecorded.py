"""backward() of a tensor without a graph: the line that cut it off, or why nothing was recorded."""

import ast
from collections.abc import Iterator

from backlight.lens.doctor import corrections
from backlight.lens.doctor.detectors.second_order import not_recorded
from backlight.lens.doctor.errors.scene import Scene, shown
from backlight.lens.doctor.origins import Cut, Origins
from backlight.lens.doctor.rule_index import rule
from backlight.lens.finding import Finding

COPIES = frozenset({"tensor", "as_tensor", "asarray", "new_tensor", "from_numpy", "Tensor", "FloatTensor"})
WITHOUT_HISTORY = frozenset({"detach", "data", "item", "tolist", "numpy", "__array__", "__float__", "__int__"})


def without_graph(scene: Scene) -> Finding:
    """Return what a root without a graph is the sign of."""
    root = _root(scene)
    if root is None:
        return rule("BL208").found(place=scene.place, evidence=(scene.said,))
    second = not_recorded(scene, root)
    if second is not None:
        return second
    cut = next(_cuts(scene, root), None)
    if cut is not None:
        return _cut_off(scene, cut)
    frozen = next((text for one in _origins(scene) for text in one.all_frozen()), None)
    if frozen is not None:
        return rule("BL411").found(place=scene.place, evidence=(scene.said, frozen))
    return rule("BL208").found(place=scene.place, evidence=(scene.said, f"its shape is {list(root.shape)}"))


def _root(scene: Scene):
    """Return the tensor that backward was to start from."""
    given = scene.local("tensors", "outputs", "self")
    return given[0] if isinstance(given, (tuple, list)) and given else given


def _origins(scene: Scene) -> list[Origins]:
    return [one for one in scene.session.detectors if isinstance(one, Origins)]


def _cuts(scene: Scene, tensor) -> Iterator[Cut]:
    for origins in _origins(scene):
        yield from origins.cuts_before(tensor)


def _cut_off(scene: Scene, cut: Cut) -> Finding:
    """Return the finding for a root whose graph ends at a cut."""
    spot = cut.spot
    where = f"{cut.name} at {shown(spot.place)} returned a tensor without a graph, and was given one that has one"
    name, corrected, reason = "BL209", None, ()
    if not cut.recording:
        name, reason = "BL211", ("recording was off there",)
        if corrections.rebinds(spot.statement):
            name, corrected = "BL410", _in_place(spot)
    elif cut.name in COPIES:
        name, corrected = "BL210", _uncopied(spot) if cut.of_tensor else None
        scene.session.drop("BL505", spot.place)  # which would have it copied with other words
    elif cut.name in WITHOUT_HISTORY:
        reason = (f"{cut.name} is a way out of the graph",)
    return rule(name).found(
        place=scene.place, evidence=(scene.said, where, *reason), corrected=corrected, corrected_at=spot.place
    )


def _in_place(spot) -> str | None:
    """`w = w - 0.1 * w.grad` → `w -= 0.1 * w.grad`, which keeps the leaf."""
    text, edit = corrections.as_in_place(spot), corrections.replace(spot.statement, "")
    return None if text is None or edit is None else spot.edited((*edit[:3], text))


def _uncopied(spot) -> str | None:
    """`torch.tensor(x.sum())` → `x.sum()`."""
    call = spot.call
    named = call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in COPIES
    return corrections.without_call(spot) if named and not call.keywords else None
