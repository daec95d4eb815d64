"""`ratoon serve`: answer prediction requests over HTTP."""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import Annotated, Any

import typer

from ratoon.cli.options import ModelFile, QuietOption
from ratoon.cli.samples import load_model
from ratoon.cli.terminal import print_note
from ratoon.datasets.optional import require
from ratoon.errors import InvalidParameterError
from ratoon.serving.service import Limits

_HTTP_CONNECTIONS = 100


def serve(
    model: ModelFile,
    host: Annotated[
        str, typer.Option(help="Address to listen on. The default is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    max_body: Annotated[
        float, typer.Option(min=0.001, max=100_000, help="Most megabytes of a request.")
    ] = 10.0,
    max_rows: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Most samples of a request.")
    ] = 10_000,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Most seconds for a request.")
    ] = 10.0,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1024, help="Predictions computed at the same time.")
    ] = 4,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads of a prediction.")] = 1,
    quiet: QuietOption = False,
) -> None:
    """Serve a model over HTTP: POST /predict, GET /health, /model and /docs.

    For example:

      ratoon serve lung.ratoon

      curl -H 'Content-Type: application/json' -d '{"rows": [[0.1, 0.2]]}' localhost:8000/predict

    There is no encryption and no authentication: for other machines put a reverse proxy in front.
    """
    require("fastapi", "to serve a model", extra="serve")
    require("uvicorn", "to serve a model", extra="serve")
    import uvicorn

    from ratoon.serving.app import create_app

    estimator = load_model(model).set_params(n_jobs=threads)
    limits = Limits(round(max_body * 2**20), max_rows, timeout, concurrency)
    is_local = _is_loopback(host)
    if not is_local and not quiet:
        print_note(
            f"Listening on {host} without encryption or authentication; use a reverse proxy."
        )
    names = {"hosts": None} if not is_local else {}
    config = uvicorn.Config(
        create_app(estimator, limits=limits, **names),
        limit_concurrency=_HTTP_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=max(1, round(timeout)),
        server_header=False,
        log_config=_logging(quiet=quiet),
        access_log=not quiet,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_HTTP_CONNECTIONS)
    except (OSError, TypeError, ValueError) as error:
        number = getattr(error, "errno", None) or 0
        if number <= 0:  # the name could not be encoded or was not found
            raise InvalidParameterError(f"--host {host!r}: there is no such host.") from None
        raise OSError(number, os.strerror(number), f"{host}:{port}") from None
    with listening:
        if not quiet:
            shown = f"[{host}]" if ":" in host else host
            address = f"http://{shown}:{listening.getsockname()[1]}"
            print_note(f"Serving {model} on {address}, described at {address}/docs")
        uvicorn.Server(config).run(sockets=[listening])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _logging(*, quiet: bool) -> dict[str, Any]:
    """Return a configuration that writes all lines to stderr, with the time."""
    level = "WARNING" if quiet else "INFO"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"format": "%(asctime)s %(levelname)s %(message)s"}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "lines",
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {
            name: {"handlers": ["stderr"], "level": level, "propagate": False}
            for name in ("uvicorn", "uvicorn.access")
        },
    }
