"""The FastAPI application around a `ModelService`.

No postponed annotations here: FastAPI evaluates those of the endpoints, whose types are local.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ratoon
from ratoon.errors import InvalidParameterError
from ratoon.nesting import check_json_depth
from ratoon.serving.service import Limits, ModelService, RequestRefused

MODEL = "RATOON_SERVE_MODEL"
"""Environment variable with the path of the model, for servers that import the application."""

DISCARDED = 8
"""Bodies up to so many times the limit are read and discarded before they are refused."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def create_app(
    estimator: Any, *, limits: Limits | None = None, hosts: tuple[str, ...] | None = LOOPBACK
) -> Any:
    """Return an ASGI application that serves a fitted estimator.

    ``GET /health``, ``GET /model``, ``POST /predict``, and the OpenAPI page under ``/docs``.  All
    errors are JSON objects ``{"error": {"code", "message"}}``.

    Parameters
    ----------
    estimator : SparseMLPClassifier or SparseMLPRegressor
        Fitted.
    limits : Limits, optional
        Limits of requests.
    hosts : tuple of str or None
        Accepted values of the ``Host`` header; None for all.  By default those of this machine,
        so that pages in a browser cannot reach the service under another name.

    Returns
    -------
    fastapi.FastAPI
    """
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
    from starlette.exceptions import HTTPException

    service = ModelService(estimator, limits)
    most = service.limits
    workers = ThreadPoolExecutor(most.concurrency, thread_name_prefix="predict")

    class Samples(BaseModel):
        """Samples as rows of numbers in the order of training, or as records by name."""

        model_config = ConfigDict(extra="forbid", strict=True)

        rows: list[list[FiniteFloat]] | None = Field(None, max_length=most.rows)
        records: list[dict[str, FiniteFloat]] | None = Field(None, max_length=most.rows)
        probabilities: bool = False

    class Predictions(BaseModel):
        """Predictions, one per sample."""

        predictions: list[Any]
        probabilities: list[list[float]] | None = None
        classes: list[Any] | None = None

    class Problem(BaseModel):
        """An error."""

        error: dict[str, str]

    app = FastAPI(
        title="ratoon",
        version=ratoon.__version__,
        description=f"Predictions of a {type(estimator).__name__}.",
    )

    def refusal(status: int, code: str, message: str) -> JSONResponse:
        return JSONResponse({"error": {"code": code, "message": message}}, status)

    @app.exception_handler(RequestRefused)
    async def refused(request: Request, error: RequestRefused) -> JSONResponse:
        return refusal(error.status, error.code, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return refusal(400, "json", "the body is not valid JSON.")
        where = ".".join(str(part) for part in first["loc"][1:6])
        status = 413 if first["type"] == "too_long" else 422
        return refusal(status, "body", f"{where}: {first['msg']}"[:500])

    @app.exception_handler(HTTPException)
    async def known(request: Request, error: HTTPException) -> JSONResponse:
        return refusal(error.status_code, "request", str(error.detail))

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> JSONResponse:
        return refusal(500, "internal", "the prediction failed; see the log of the server.")

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Answer that the service is ready."""
        return {"status": "ok"}

    @app.get("/model")
    async def model() -> dict[str, Any]:
        """Describe the model: features, classes, connections, limits."""
        return service.describe()

    problems: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem} for status in (400, 408, 413, 415, 422, 503)
    }

    @app.post("/predict", response_model_exclude_none=True, responses=problems)
    async def predict(samples: Samples) -> Predictions:
        """Predict one or many samples."""

        def run() -> dict[str, Any]:
            return service.predict(
                samples.rows, samples.records, probabilities=samples.probabilities
            )

        waiting = asyncio.get_running_loop().run_in_executor(workers, run)
        try:
            return Predictions(**await asyncio.wait_for(waiting, most.seconds))
        except TimeoutError:
            raise RequestRefused(
                503, "busy", f"no prediction within {most.seconds:g} seconds; send fewer samples."
            ) from None

    app.add_middleware(RequestLimits, limits=most, hosts=hosts)
    return app


class RequestLimits:
    """ASGI middleware: limits the host, type, size and duration of a request before it is parsed.

    Parameters
    ----------
    app : ASGI application
        What answers accepted requests.
    limits : Limits
        Size and time.
    hosts : tuple of str or None
        Accepted hosts; None for all.
    """

    def __init__(self, app: Any, limits: Limits, hosts: tuple[str, ...] | None) -> None:
        self.app = app
        self.limits = limits
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        try:
            self._check(scope, headers)
            body = await asyncio.wait_for(self._body(receive, headers), self.limits.seconds)
            _check_depth(body)
        except TimeoutError:
            await _refuse(scope, send, RequestRefused(408, "slow", "the request took too long."))
            return
        except RequestRefused as refused:
            await _refuse(scope, send, refused)
            return
        except _Gone:
            return
        is_sent = False

        async def again() -> dict[str, Any]:
            nonlocal is_sent
            if is_sent:
                return await receive()
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self.hosts is not None and _name_of(host) not in self.hosts:
            raise RequestRefused(400, "host", "the service does not answer to this host name.")
        if scope["method"] != "POST":
            return
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if kind != b"application/json":
            raise RequestRefused(415, "type", "send application/json.")
        if b"content-encoding" in headers:
            raise RequestRefused(415, "encoding", "compressed requests are not accepted.")

    async def _body(self, receive: Receive, headers: dict[bytes, bytes]) -> bytes:
        most = self.limits.body_bytes
        too_large = RequestRefused(413, "size", f"a request may have at most {most:,} bytes.")
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > DISCARDED * most):
            raise too_large
        body, n_bytes = bytearray(), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            part = message.get("body", b"")
            n_bytes += len(part)
            if n_bytes <= most:
                body += part
            is_last = not message.get("more_body", False)
            # A client that is still sending when the connection is closed does not see the answer.
            if n_bytes > most and (is_last or n_bytes > DISCARDED * most):
                raise too_large
            if is_last:
                return bytes(body)


def _check_depth(body: bytes) -> None:
    """Raise if a request is nested deeply: parsers call themselves for every level."""
    try:
        check_json_depth(body.decode("latin-1"))
    except ValueError as error:
        raise RequestRefused(400, "body", f"the request is {error}.") from None


class _Gone(Exception):
    """The client has closed the connection."""


def _name_of(host: str) -> str:
    """Return the host without its port.

    >>> _name_of("localhost:8000"), _name_of("[::1]:8000"), _name_of("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


async def _refuse(scope: Scope, send: Send, refused: RequestRefused) -> None:
    from starlette.responses import JSONResponse

    content = {"error": {"code": refused.code, "message": str(refused)}}
    # The rest of the body is not read.
    answer = JSONResponse(content, refused.status, headers={"connection": "close"})

    async def nothing() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    await answer(scope, nothing, send)


def from_environment() -> Any:
    """Return the application of the model file that `RATOON_SERVE_MODEL` names.

    For servers that import an application::

        export RATOON_SERVE_MODEL=model.ratoon
        uvicorn --factory ratoon.serving:from_environment --workers 4

    All hosts are accepted, because such servers are usually behind another one.
    """
    path = os.environ.get(MODEL)
    if not path:
        raise InvalidParameterError(f"set the environment variable {MODEL} to a model file.")
    estimator = ratoon.load(path)
    return create_app(estimator.set_params(n_jobs=1), hosts=None)
