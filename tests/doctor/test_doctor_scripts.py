"""Programs that a writer who never saw the doctor's rules made: each mistake is found at its line, the rest is silent.

`# here` marks the lines that a diagnosis may point to. What the doctor does not find, and what it finds at another
line, is listed by name: a change that finds more has to say so here.
"""

import contextlib
import re
import tomllib
from pathlib import Path

import pytest
import torch as pytorch
from paths import TESTS
from under_the_doctor import ENGINES, engine_called, run

from backlight.adapters.torch_engine import torch_engine
from backlight.lens.doctor.doctor_block import DoctorBlock
from backlight.lens.doctor.step_limit import StepLimit, StepsReachedError
from backlight.lens.finding import NOTE, Finding

SCRIPTS = TESTS / "doctor_scripts"
INDEX = tomllib.loads((SCRIPTS / "index.toml").read_text(encoding="utf-8"))
MISSED = {"point_diffusion", "review_sentiment", "song_triplets"}  # what they do may be meant
MISSED |= {"river_level", "two_views"}  # these, too
ELSEWHERE: set[str] = set()  # found where it shows, not where it was written
RULES = {
    "ad_policy": "BL777", "attack_steps": "BL409", "attention_pooling": "BL304", "bearing_severity": "BL765",
    "banana_flow": "BLA24",
    "bike_demand": "BL735", "blob_vae": "BL758", "board_policy": "BL802", "body_and_head": "BL412",
    "caption_ranker": "BL728", "cart_actor_critic": "BL305", "cartpole_ac": "BL305", "char_lstm": "BL206",
    "char_stream": "BL206", "churn_model": "BL736", "cleared_gradients": "BL705", "concrete_mix": "BL776",
    "contrast_queue": "BL206", "corridor_agent": "BL217", "credit_risk": "BL008", "cubic_notebook": "BL706",
    "decay_curve": "BL703", "deep_encoder": "BL768", "deep_tabular": "BL729", "denoiser": "BL009",
    "digits_cnn": "BL217", "dqn_grid": "BL732", "early_stop": "BL736", "energy_forecast": "BL721",
    "expert_router": "BL707", "face_attributes": "BL204", "face_embeddings": "BL802", "face_pairs": "BL802",
    "film_layer": "BL218", "forget_bias_leaf": "BL303", "fuel_use": "BL711", "galaxy_gan": "BL607",
    "graph_nodes": "BL721", "grid_dqn": "BL769", "heatmaps": "BL101", "history_of_graphs": "BL709",
    "house_prices": "BL711", "house_prices_again": "BL211", "image_codec": "BL725", "intent_detector": "BL720",
    "iris_like": "BL720", "iris_mlp": "BL006", "keyword_audio": "BL008", "lbfgs_no_closure": "BL782",
    "leaf_disease": "BL722", "leaf_disease_again": "BL722", "letters_gan": "BL204", "line_by_hand": "BL302",
    "linear_by_hand": "BL409", "lion_like": "BL770", "load_forecast": "BL711", "loan_default_notebook": "BL008",
    "mae_report": "BL501", "mean_teacher_semi": "BL301", "memory_bank": "BL405", "mf_ratings": "BL767",
    "molecule_messages": "BL218", "multi_label_tags": "BL013", "name_model": "BL778", "news_topics": "BL211",
    "one_batch_forever": "BL780", "optimizer_each_step": "BL759", "oscillator": "BL603", "pendulum_ddpg": "BL301",
    "persample_norms": "BL017", "pet_classifier": "BL708", "plain_sgd_rebind": "BL409", "plate_reader": "BL212",
    "pose_tasks": "BL733", "ppo_balance": "BL218", "price_history": "BL709", "probe_head": "BL708",
    "product_search": "BL611", "proto_memory": "BL405", "r1_critic_gan": "BL603", "rain_intensity": "BL802",
    "rain_yield": "BL802", "resume_run": "BL002", "review_tokens": "BL730", "ring_gan": "BL705",
    "running_total_backward": "BL206", "salary_model": "BL724", "saliency_frozen_input": "BL901", "same_units": "BL757",
    "scaled_tanh_op": "BL908", "seismic_pick": "BL707", "self_attention": "BL004", "sensor_anomaly": "BL707",
    "seq_tagger": "BL750", "sine_fit": "BL002", "sine_hyper": "BL774", "sine_meta": "BL705",
    "snapshot_with_cache": "BL405", "soft_shrink_fn": "BL908", "spam_logistic": "BL705", "spectral_filter": "BL508",
    "spectrum_vae": "BLA15", "speech_mask_denoiser": "BL304", "spiral_net": "BL705", "squareplus_act": "BL915",
    "staged_heads": "BL110", "surface_fit": "BL757", "swish_net": "BL915", "teacher_student": "BL775",
    "temperature_net": "BL723", "text_cnn": "BL766", "tile_gan": "BL738", "tiny_senet": "BL304",
    "token_mapper": "BL739", "traffic_signs": "BL740", "transfer_flowers": "BL411", "tumor_score": "BL725",
    "two_targets": "BL707", "two_tower": "BL731", "used_up_parameters": "BL702", "view_mixes_rows": "BL781",
    "waves_gan": "BL204", "weight_gradient_shape": "BL907", "weighted_rows": "BL201", "wide_deep": "BL728",
    "wine_classes": "BL713", "wine_quality": "BL703",
    "road_segmentation": "BL781", "sensor_drift": "BLA02", "forced_pinn": "BL607",
    "cell_masks": "BL781",
    "digit_ctc": "BLA08", "contrastive_pairs": "BLA03",
}  # fmt: skip
HEALTHY = [*sorted((SCRIPTS / "fixed").glob("*.py")), *sorted((SCRIPTS / "healthy").glob("*.py"))]


# On backlight a program is examined as `backlight doctor --steps` does; on PyTorch to its end, with the same detectors.
STEPS = 60
NOT_ON_BACKLIGHT = {"alternating_factors"}  # sparse gradients


@pytest.fixture(autouse=True)
def recording():
    """Switch recording on again, which some programs leave off; run small programs in one thread, which is faster."""
    threads = pytorch.get_num_threads()
    pytorch.set_num_threads(1)
    yield
    pytorch.set_num_threads(threads)
    pytorch.set_grad_enabled(True)


def named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def findings_in(block: DoctorBlock) -> list[Finding]:
    return [one for one in block.session.findings if one.level != NOTE]


def lines_of(found: list[Finding]) -> set[int]:
    """Return the lines that findings point to."""
    lines = {place.line for one in found for place in (one.place, one.corrected_at) if place is not None}
    return lines | {int(line) for one in found for line in re.findall(r":(\d+)\b", " ".join(one.evidence))}


class UntilFound(StepLimit):
    """Ends a program after the optimizer step at which its mistake has been found: nothing later could undo that.

    Args:
        rule: what it is found by.
        here: the lines that a diagnosis may point to.
    """

    block: DoctorBlock

    def __init__(self, rule: str | None, here: set[int]):
        super().__init__(1)
        self.rule, self.here = rule, here

    def stepped(self, *event) -> None:
        found = findings_in(self.block)
        if self.rule in [one.rule for one in found] and lines_of(found) & self.here:
            raise StepsReachedError


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", sorted((SCRIPTS / "broken").glob("*.py")), ids=named)
def test_a_mistake_is_found_at_its_line(path: Path, monkeypatch):
    monkeypatch.setattr("sys.argv", [str(path)])
    source = path.read_text(encoding="utf-8")
    here = {number for number, line in enumerate(source.splitlines(), 1) if "# here" in line}
    limit = UntilFound(RULES.get(path.stem), here)
    limit.block = block = DoctorBlock(engines=[torch_engine()], limit=limit)
    with contextlib.suppress(Exception, StepsReachedError):
        run(source, "torch", block)
    assert [watch.failed for watch in block.session.watches if watch.failed] == []
    found = findings_in(block)
    assert bool(found) == (path.stem not in MISSED)
    if found:
        assert RULES[path.stem] in [one.rule for one in found]
        assert bool(lines_of(found) & here) or path.stem in ELSEWHERE


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("path", HEALTHY, ids=named)
def test_what_is_right_ends_in_no_finding(path: Path, engine: str, monkeypatch):
    monkeypatch.setattr("sys.argv", [str(path)])
    if engine == "backlight" and path.stem in NOT_ON_BACKLIGHT:
        pytest.skip("it uses what backlight does not have")
    limit = StepLimit(STEPS) if engine == "backlight" else None
    block = DoctorBlock(engines=[engine_called(engine)], limit=limit)
    with contextlib.suppress(StepsReachedError):
        run(path.read_text(encoding="utf-8"), engine, block, name=str(path))
    assert block.session.findings == []


def test_each_script_is_described_and_has_its_correction():
    broken = {path.stem for path in (SCRIPTS / "broken").glob("*.py")}
    assert broken == {path.stem for path in (SCRIPTS / "fixed").glob("*.py")} == RULES.keys() | MISSED
    assert {one["name"] for one in INDEX["script"]} == broken
