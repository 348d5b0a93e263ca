"""Units of parameters, from their declaration to every table, picture and file."""

from __future__ import annotations

import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError

TITLES = ["distance (Mpc)", "speeds[0] (km/s)", "speeds[1] (km/s)", "lensed"]


def log_density(distance, speeds, lensed):
    return -0.5 * ((distance - 5) ** 2 + speeds @ speeds + lensed**2)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("units") / "run.surrokit"
    parameters = {
        "distance": sk.real(unit="Mpc"),
        "speeds": sk.positive(2, unit="km/s"),
        "lensed": sk.interval(0, 1),
    }
    target = sk.potential(log_density=log_density, parameters=parameters)
    settings = {"sampler": "random-walk", "warmup": 50, "draws": 30, "progress": False}
    sk.sample(target, seed=1, path=path, **settings)
    return path


def test_they_are_in_tables_and_pictures_of_a_run_from_a_file(file, tmp_path):
    run = sk.open_run(file)
    assert run.titles == TITLES
    assert run.labels[0] == "distance"
    lines = str(run.summary(["speeds", "distance"])).splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == [*TITLES[1:3], TITLES[0]]
    run.save(tmp_path / "draws.csv")
    header = (tmp_path / "draws.csv").read_text().splitlines()[0]
    assert header == ",".join(["chain", "draw", *TITLES])


def test_they_are_on_axes_and_in_the_report(file, tmp_path):
    pytest.importorskip("matplotlib")
    run = sk.open_run(file)
    assert run.plot.marginals(["distance"]).axes[0].get_title(loc="left") == TITLES[0]
    run.report(tmp_path / "run.html")
    assert TITLES[0] in (tmp_path / "run.html").read_text()


def test_they_are_attributes_for_arviz_and_pandas(file, tmp_path):
    pytest.importorskip("arviz")
    xarray = pytest.importorskip("xarray")
    run = sk.open_run(file)
    assert run.to_arviz()["posterior"]["distance"].attrs["units"] == "Mpc"
    run.save(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", group="posterior", engine="h5netcdf") as read:
        assert [read[name].attrs.get("units") for name in read] == ["Mpc", "km/s", None]
    pytest.importorskip("pandas")
    assert run.to_pandas().attrs["units"] == {"distance": "Mpc", "speeds": "km/s"}


@pytest.mark.parametrize("unit", [3, "", "m\x00"])
def test_a_unit_that_is_no_text_is_refused(unit):
    with pytest.raises(ConfigurationError, match="unit of a parameter must be text"):
        sk.ordered(2, unit=unit)
