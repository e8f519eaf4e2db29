"""A sentinel that a client sends comes back nowhere: no answer, no log line, no traceback."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Annotated

import pytest
from fastapi import APIRouter, FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from redis.exceptions import ConnectionError as StoreGone

from live_apps import Caller
from noisefloor.errors import (
    BadFrame,
    BadParameter,
    BudgetExceeded,
    BusFull,
    LedgerAbsent,
    NoisefloorError,
    Shortage,
    SpendConflict,
)
from noisefloor_services.http import error_handlers, logs
from noisefloor_services.http.body_limits import BodyLimits
from noisefloor_services.http.policy import AnonymousAccess, Guard, Policy, Rule
from noisefloor_services.ledger.terms import ReleaseSealed
from noisefloor_services.security.credentials import Credentials

SENTINEL = "sentinel-7f3a9c"


class Report(BaseModel):
    model_config = ConfigDict(extra="forbid")

    cell: int = Field(ge=0, lt=10)
    name: str = Field(default="x", max_length=3)
    tags: dict[str, int] = Field(default_factory=dict)


class Away(NoisefloorError):
    retry_after_s = 7


RAISED: dict[str, tuple[Exception, int]] = {
    "budget": (BudgetExceeded(SENTINEL, [Shortage("epsilon", 1.0, 0.0)], SENTINEL), 409),
    "conflict": (SpendConflict(SENTINEL), 409),
    "parameter": (BadParameter("rows", SENTINEL, "> 0"), 422),
    "frame": (BadFrame("header", "is too short"), 422),
    "full": (BusFull(SENTINEL), 503),
    "away": (Away(SENTINEL), 503),
    "ledger": (LedgerAbsent(SENTINEL), 503),
    "sealed": (ReleaseSealed(SENTINEL), 409),
    "other": (NoisefloorError(SENTINEL), 400),
    "store": (StoreGone(SENTINEL), 503),
    "fault": (RuntimeError(SENTINEL), 500),
    "busy": (HTTPException(503, "Too many."), 503),
    "http": (HTTPException(404, "There is no such epoch."), 404),
}


def an_app() -> FastAPI:
    app = FastAPI()
    error_handlers.install_error_handlers(app)

    @app.post("/reports")
    def report(report: Report) -> int:
        return report.cell

    router = APIRouter()

    @router.get("/epochs/{epoch}")
    def epoch(epoch: Annotated[int, Path(le=5)], kind: Annotated[str, Query(max_length=2)]) -> str:
        return kind

    app.include_router(router)

    @app.get("/raise/{which}")
    def fail(which: str) -> None:
        raise RAISED[which][0]

    return app


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    before, level = logging.root.handlers[:], logging.root.level
    logs.configure_logging("INFO", stream)
    yield stream
    logging.captureWarnings(capture=False)
    logging.root.handlers[:] = before
    logging.root.setLevel(level)


@pytest.fixture
def client(lines: io.StringIO) -> Caller:
    rules: dict[str, Rule] = {
        "POST /reports": AnonymousAccess.DEVICE,
        "GET /epochs/{epoch}": AnonymousAccess.DEVICE,
        "GET /raise/{which}": AnonymousAccess.DEVICE,
    }
    guarded = Guard(BodyLimits(an_app()), Policy(rules), Credentials(()))
    return Caller(logs.AccessLog(guarded), raises=False)


HEADERS = {
    "User-Agent": SENTINEL,
    "X-Forwarded-For": SENTINEL,
    "Cookie": f"id={SENTINEL}",
    "Referer": f"http://{SENTINEL}",
}


def test_bad_input_is_reported_by_field_and_rule_without_the_input(
    client: Caller, lines: io.StringIO
) -> None:
    for body in (
        {"cell": SENTINEL},
        {"cell": 11, "name": SENTINEL},
        {"cell": 1, SENTINEL: 1},
        {"cell": 1, "tags": {SENTINEL: "x"}},
        {SENTINEL: {SENTINEL: SENTINEL}},
        [SENTINEL],
        SENTINEL,
    ):
        answer = client("POST", f"/reports?u={SENTINEL}", json=body, headers=HEADERS)
        assert answer.status_code == 422
        assert SENTINEL not in answer.text
        assert SENTINEL not in str(answer.headers)
    broken = f'{{"cell": {SENTINEL}'.encode()
    answer = client(
        "POST", "/reports", content=broken, headers={**HEADERS, "Content-Type": "application/json"}
    )
    assert (answer.status_code, SENTINEL in answer.text) == (422, False)
    answer = client("GET", f"/epochs/{SENTINEL}", params={"kind": SENTINEL}, headers=HEADERS)
    assert answer.json() == {
        "error": "bad-input",
        "detail": [
            {"where": "path.epoch", "rule": "int_parsing"},
            {"where": "query.kind", "rule": "string_too_long", "max_length": 2},
        ],
        "action": "drop",
    }
    assert SENTINEL not in lines.getvalue()


def test_an_unknown_field_is_called_unknown(client: Caller) -> None:
    answer = client("POST", "/reports", json={"cell": 10, SENTINEL: 1})
    assert answer.json()["detail"] == [
        {"where": "body.cell", "rule": "less_than", "lt": 10},
        {"where": "body.<unknown>", "rule": "extra_forbidden"},
    ]


@pytest.mark.parametrize("which", sorted(RAISED))
def test_errors_are_answered_by_their_kind_and_say_nothing_of_the_input(
    client: Caller, lines: io.StringIO, which: str
) -> None:
    answer = client("GET", f"/raise/{which}?{SENTINEL}", headers=HEADERS)
    assert answer.status_code == RAISED[which][1]
    assert SENTINEL not in answer.text
    assert ("Retry-After" in answer.headers) == (answer.status_code == 503)
    assert set(answer.json()) - {"short"} == {"error", "detail", "action"}
    assert SENTINEL not in lines.getvalue()


def test_paths_tokens_and_bodies_that_are_refused_come_back_nowhere(
    client: Caller, lines: io.StringIO
) -> None:
    refused = [
        client("GET", f"/{SENTINEL}", headers={"Authorization": f"Bearer {SENTINEL}"}),
        client(SENTINEL.upper(), "/reports"),
        client("POST", "/reports", content=SENTINEL.encode() * 100_000),
        client("POST", "/reports", content=b"x", headers={"Content-Encoding": SENTINEL}),
    ]
    assert [answer.status_code for answer in refused] == [401, 401, 413, 415]
    assert not any(SENTINEL in answer.text + str(answer.headers) for answer in refused)
    assert SENTINEL not in lines.getvalue().lower()


def test_an_access_line_has_the_route_and_nothing_of_the_caller(
    client: Caller, lines: io.StringIO
) -> None:
    client("GET", f"/epochs/3?kind=ab&{SENTINEL}", headers=HEADERS)
    (line,) = (json.loads(one) for one in lines.getvalue().splitlines() if "access" in one)
    assert set(line) == {
        *("time", "level", "logger", "message"),
        *("method", "route", "status", "duration_ms"),
    }
    assert (line["method"], line["route"], line["status"]) == ("GET", "/epochs/{epoch}", 200)


def test_paths_of_devices_leave_no_line(lines: io.StringIO) -> None:
    silent = Caller(logs.AccessLog(an_app(), unlogged={"/reports"}))
    assert silent("POST", "/reports", json={"cell": 1}).status_code == 200
    assert "noisefloor.access" not in lines.getvalue()
    silent("GET", "/reports")
    assert silent("GET", "/nothing").status_code == 404
    assert lines.getvalue().count("noisefloor.access") == 1


def test_a_traceback_has_types_and_places_and_no_texts(lines: io.StringIO) -> None:
    try:
        raise ValueError(SENTINEL)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
        logging.getLogger("noisefloor.worker").exception("a frame failed")
        logging.getLogger("asyncio").error(f"Task failed: {SENTINEL}", exc_info=True)
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert SENTINEL not in lines.getvalue()
    assert [line["exception"]["type"] for line in written] == ["ValueError"] * 3
    assert "test_silence.py" in written[0]["exception"]["places"][-1]
    assert written[0]["message"] == "Exception in ASGI application\n"


def test_others_are_quoted_without_their_arguments(lines: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").info("%s:%s - connected", SENTINEL, 80)
    logging.getLogger("uvicorn.error").warning(f"from {SENTINEL}")
    logging.getLogger("uvicorn.access").info("%s - GET", SENTINEL)
    logging.getLogger("httpx").warning("GET %s", SENTINEL)
    logging.getLogger("noisefloor.x").info("closed epoch %d", 3, extra={"fields": {"rows": 5}})
    logging.getLogger("noisefloored").info(SENTINEL)
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert SENTINEL not in lines.getvalue()
    assert written[0]["message"] == "%s:%s - connected"
    assert len(written) == 5
    assert (written[3]["message"], written[3]["rows"]) == ("closed epoch 3", 5)


def test_uvicorn_is_started_without_its_own_access_log() -> None:
    options = logs.uvicorn_options()
    assert options["access_log"] is False
    assert options["log_config"] is None
