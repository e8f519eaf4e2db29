"""The peers' side of each workload, called as their own examples call them."""

import importlib.metadata
import platform
import random
from collections.abc import Callable
from typing import Any

import diffprivlib.mechanisms as dpl
import numpy as np
import opendp.prelude as dp
from bench.worker import Job, serve
from bench.workloads import DPL, MFL, OPENDP, PURE
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Aggregator_MI, L_SUE_Client
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

SEED = 20240607
EPSILON = 1.0

Values = list[int]
Work = Callable[[], object]


def _values(users: int, size: int, first: int = 0) -> Values:
    """Return a list: its plain integers are what the peers take fastest."""
    draw = random.Random(SEED)  # noqa: S311  protects nobody
    return [draw.randrange(first, first + size) for _ in range(users)]


def _each(call: Callable[[Any], object], values: list[Any]) -> Work:
    return lambda: [call(value) for value in values]


def _mfl_unary(users: int) -> Work:
    values = _values(users, 100)
    return lambda: [UE_Client(v, 100, EPSILON) for v in values]


def _mfl_symmetric(users: int) -> Work:
    values = _values(users, 100)
    return lambda: [UE_Client(v, 100, EPSILON, False) for v in values]


def _mfl_unary_aggregate(users: int) -> Work:
    reports = [UE_Client(v, 100, EPSILON) for v in _values(users, 100)]
    return lambda: UE_Aggregator_MI(reports, EPSILON)


def _mfl_unary_end_to_end(users: int) -> Work:
    values = _values(users, 100)
    return lambda: UE_Aggregator_MI([UE_Client(v, 100, EPSILON) for v in values], EPSILON)


def _mfl_kary_end_to_end(users: int) -> Work:
    values = _values(users, 100)
    return lambda: GRR_Aggregator_MI([GRR_Client(v, 100, EPSILON) for v in values], 100, EPSILON)


def _mfl_kary(users: int) -> Work:
    values = _values(users, 16)
    return lambda: [GRR_Client(v, 16, EPSILON) for v in values]


def _mfl_subset(users: int) -> Work:
    values = _values(users, 16)
    return lambda: [SS_Client(v, 16, EPSILON) for v in values]


def _mfl_hashing(users: int) -> Work:
    values = _values(users, 100)
    return lambda: [LH_Client(v, 100, EPSILON) for v in values]


def _mfl_hashing_aggregate(users: int) -> Work:
    reports = [LH_Client(v, 100, EPSILON) for v in _values(users, 100)]
    return lambda: LH_Aggregator_MI(reports, 100, EPSILON)


def _mfl_memoised(users: int) -> Work:
    values = _values(users, 5)
    return lambda: [L_SUE_Client(v, 5, 2.0, 1.0) for v in values]


def _mfl_memoised_end_to_end(users: int) -> Work:
    values = _values(users, 5)
    return lambda: L_SUE_Aggregator_MI([L_SUE_Client(v, 5, 2.0, 1.0) for v in values], 2.0, 1.0)


def _pure(client: Any, users: int, size: int) -> Work:
    return _each(client.privatise, _values(users, size, first=1))


def _pure_aggregate(client: Any, make_server: Callable[[], Any], users: int) -> Work:
    reports = [client.privatise(value) for value in _values(users, 100, first=1)]
    return lambda: _served(make_server(), reports)


def _pure_end_to_end(client: Any, make_server: Callable[[], Any], users: int) -> Work:
    values = _values(users, 100, first=1)
    return lambda: _served(make_server(), [client.privatise(value) for value in values])


def _served(server: Any, reports: list[Any]) -> object:
    server.aggregate_all(reports)
    return server.estimate_all(range(1, 101), suppress_warnings=True)


def _unary_server() -> Any:
    return UEServer(EPSILON, 100, use_oue=True)


def _opendp_bits(users: int) -> Work:
    space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    # Flips with probability f / 2; this f is the symmetric rate at epsilon 1 for one-hot rows.
    flip = 2 / (np.exp(EPSILON / 2) + 1)
    measurement = dp.m.make_randomized_response_bitvec(*space, f=flip)
    packed = [(1 << v).to_bytes(13, "little") for v in _values(users, 100)]
    return _each(measurement, packed)


def _opendp_response(users: int) -> Work:
    measurement = dp.m.make_randomized_response_bool(float(1 / (1 + np.exp(-EPSILON))))
    return _each(measurement, [bool(v) for v in _values(users, 2)])


def _opendp_laplace(users: int) -> Work:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement, values = dp.m.make_laplace(*space, scale=1000.0), _values(users, 1001)
    return lambda: measurement(values)


def _opendp_gaussian(users: int) -> Work:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    # The classical scale for sensitivity 1000, epsilon 1, delta 1e-6.
    scale = float(1000 * np.sqrt(2 * np.log(1.25 / 1e-6)))
    measurement, values = dp.m.make_gaussian(*space, scale=scale), _values(users, 1001)
    return lambda: measurement(values)


def _dpl_response(users: int) -> Work:
    mechanism = dpl.Binary(epsilon=EPSILON, value0="0", value1="1")
    return _each(mechanism.randomise, [str(v) for v in _values(users, 2)])


def _dpl_laplace(users: int) -> Work:
    mechanism = dpl.Laplace(epsilon=EPSILON, sensitivity=1000)
    return _each(mechanism.randomise, [float(v) for v in _values(users, 1001)])


def _dpl_choice(kind: Any, users: int) -> Work:
    scores = [v / 100 for v in _values(16, 101)]
    mechanism = kind(epsilon=EPSILON, sensitivity=1.0, utility=scores)
    return lambda: [mechanism.randomise() for _ in range(users)]


SETUPS: dict[tuple[str, str], tuple[int, Callable[[int], Work]]] = {
    (MFL, "OUE client, 100 bits"): (100_000, _mfl_unary),
    (MFL, "OUE client, one array"): (100_000, _mfl_unary),
    (MFL, "bit vector, 100 bits, symmetric"): (100_000, _mfl_symmetric),
    (MFL, "OUE aggregate, 100 bits"): (100_000, _mfl_unary_aggregate),
    (MFL, "OUE end to end, 100 bits"): (100_000, _mfl_unary_end_to_end),
    (MFL, "k-ary client, k=16"): (500_000, _mfl_kary),
    (MFL, "k-ary end to end, k=100"): (200_000, _mfl_kary_end_to_end),
    (MFL, "OLH client, 100 values"): (100_000, _mfl_hashing),
    (MFL, "OLH aggregate, 100 values"): (5_000, _mfl_hashing_aggregate),
    (MFL, "L-SUE client, 5 bits"): (200_000, _mfl_memoised),
    (MFL, "L-SUE end to end, 5 bits"): (200_000, _mfl_memoised_end_to_end),
    (MFL, "subset selection, k=16"): (100_000, _mfl_subset),
    (PURE, "OUE client, 100 bits"): (
        20_000,
        lambda n: _pure(UEClient(EPSILON, 100, use_oue=True), n, 100),
    ),
    (PURE, "OUE aggregate, 100 bits"): (
        100_000,
        lambda n: _pure_aggregate(UEClient(EPSILON, 100, use_oue=True), _unary_server, n),
    ),
    (PURE, "OUE end to end, 100 bits"): (
        20_000,
        lambda n: _pure_end_to_end(UEClient(EPSILON, 100, use_oue=True), _unary_server, n),
    ),
    (PURE, "k-ary client, k=16"): (300_000, lambda n: _pure(DEClient(EPSILON, 16), n, 16)),
    (PURE, "k-ary end to end, k=100"): (
        200_000,
        lambda n: _pure_end_to_end(DEClient(EPSILON, 100), lambda: DEServer(EPSILON, 100), n),
    ),
    (PURE, "OLH client, 100 values"): (
        100_000,
        lambda n: _pure(LHClient(EPSILON, 100, use_olh=True), n, 100),
    ),
    (PURE, "OLH aggregate, 100 values"): (
        5_000,
        lambda n: _pure_aggregate(
            LHClient(EPSILON, 100, use_olh=True), lambda: LHServer(EPSILON, 100, use_olh=True), n
        ),
    ),
    (OPENDP, "bit vector, 100 bits, symmetric"): (2_000, _opendp_bits),
    (OPENDP, "binary response"): (5_000, _opendp_response),
    (OPENDP, "discrete Laplace, scale 1000"): (20_000, _opendp_laplace),
    (OPENDP, "discrete Gaussian"): (10_000, _opendp_gaussian),
    (DPL, "binary response"): (50_000, _dpl_response),
    (DPL, "discrete Laplace, scale 1000"): (20_000, _dpl_laplace),
    (DPL, "permute and flip, 16 scores"): (
        10_000,
        lambda n: _dpl_choice(dpl.PermuteAndFlip, n),
    ),
    (DPL, "exponential, 16 scores"): (10_000, lambda n: _dpl_choice(dpl.Exponential, n)),
}


def _job(reports: int, setup: Callable[[int], Work]) -> Callable[[bool], Job]:
    def prepare(quick: bool) -> Job:
        users = reports // 5 if quick else reports
        work = setup(users)
        return Job(lambda _: work(), users)

    return prepare


def main() -> None:
    """Serve each peer's workloads under "library: workload"."""
    dp.enable_features("contrib")
    setups = {f"{lib}: {name}": _job(*setup) for (lib, name), setup in SETUPS.items()}
    about = {"python": platform.python_version()}
    for package in (MFL, PURE, DPL, OPENDP, "numpy", "numba", "xxhash"):
        about[package] = importlib.metadata.version(package)
    serve(setups, about)


if __name__ == "__main__":
    main()
