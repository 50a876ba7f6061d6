"""Units on Ray: killed workers lose nothing, and a cluster that is not there is one line."""

import pytest

pytest.importorskip("ray", reason="Ray is not installed here: make test-clusters")

# isort: split

from batch_units import make_case, merged

from backlight.errors import InputError
from backlight.explain.batch.sharding.engines import engine_named, run_units
from soak.engine_kills import play

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A job of twenty units."""
    return make_case(tmp_path_factory.mktemp("case"), 200, 10)


def test_units_on_two_actors_are_those_of_one_machine(case, tmp_path):
    out, stands = case.plan(tmp_path / "out"), []
    assert run_units(engine_named("ray://local:2"), out, watch=stands.append) == 20
    assert stands[-1].rows == 200 and stands[-1].bad == len(range(0, 200, 7))
    assert merged(out) == case.whole


def test_workers_killed_ten_times_on_ray_lose_and_double_nothing(case, tmp_path):
    assert set(play(case, "ray://local:2", tmp_path).values()) == {0}


def test_a_cluster_that_is_not_there_is_one_line(case, tmp_path):
    with pytest.raises(InputError, match=r"no Ray cluster replies at 127.0.0.1:1: start it with `ray start --head`"):
        run_units(engine_named("ray://127.0.0.1:1"), case.plan(tmp_path / "out"))
