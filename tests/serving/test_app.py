"""The service answers what the model predicts, and refuses everything else with JSON."""

import asyncio
import time

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")


import ratoon  # noqa: E402
from ratoon.errors import InvalidParameterError  # noqa: E402
from ratoon.serving import Limits, create_app, from_environment  # noqa: E402


class Client:
    """Sends requests to an application without a network."""

    def __init__(self, app, url="http://127.0.0.1:8000"):
        self.app, self.url = app, url

    def request(self, method, path, **request):
        async def send():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self.url) as client:
                return await client.request(method, path, **request)

        return asyncio.run(send())

    def get(self, path, **request):
        return self.request("GET", path, **request)

    def post(self, path, **request):
        return self.request("POST", path, **request)


def client_of(estimator, **limits):
    return Client(create_app(estimator, limits=Limits(**limits)))


@pytest.fixture(scope="module")
def client(classifier):
    return client_of(classifier, rows=100, body_bytes=50_000)


def refused(answer, status, code):
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["message"]
    return error["message"]


def test_predictions_are_those_of_the_model(client, classifier, samples):
    body = {"rows": samples.tolist(), "probabilities": True}
    answer = client.post("/predict", json=body).json()
    assert answer["predictions"] == classifier.predict(samples).tolist()
    assert answer["probabilities"] == classifier.predict_proba(samples).tolist()
    assert answer["classes"] == ["case", "control"]


def test_a_regressor_answers_with_numbers(regressor, samples):
    client = client_of(regressor)
    answer = client.post("/predict", json={"rows": samples[:3].tolist()}).json()
    assert answer == {"predictions": regressor.predict(samples[:3]).tolist()}
    body = {"rows": samples[:3].tolist(), "probabilities": True}
    refused(client.post("/predict", json=body), 422, "probabilities")


def test_records_are_matched_by_name(named, samples):
    client = client_of(named)
    records = [dict(zip("fedcba", row[::-1].tolist(), strict=True)) for row in samples[:5]]
    answer = client.post("/predict", json={"records": records}).json()
    rows = client.post("/predict", json={"rows": samples[:5].tolist()}).json()
    assert answer == rows
    del records[2]["c"]
    assert "record 2 lacks" in refused(
        client.post("/predict", json={"records": records}), 422, "features"
    )
    records[2].update(c=1.0, extra=2.0)
    assert "'extra'" in refused(client.post("/predict", json={"records": records}), 422, "features")


def test_the_model_and_its_health_can_be_asked_for(client, classifier):
    assert client.get("/health").json() == {"status": "ok"}
    facts = client.get("/model").json()
    assert facts["n_features"] == 6
    assert facts["classes"] == ["case", "control"]
    assert facts["connections"] == classifier.network_.n_connections


def test_the_openapi_page_describes_requests_and_errors(client):
    page = client.get("/openapi.json").json()
    operation = page["paths"]["/predict"]["post"]
    assert {"200", "413", "415", "422", "503"} <= operation["responses"].keys()
    assert "rows" in str(page["components"]["schemas"])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "rows"),
        ({"rows": [], "records": []}, "rows"),
        ({"rows": []}, "rows"),
        ({"rows": [[1.0, 2.0]]}, "features"),
        ({"rows": [[1.0] * 6, [1.0] * 7]}, "features"),
        ({"rows": [["1"] * 6]}, "body"),
        ({"rows": [[True] * 6]}, "body"),
        ({"rows": [[None] * 6]}, "body"),
        ({"rows": "text"}, "body"),
        ({"rows": [[1.0] * 6], "other": 1}, "body"),
        ([], "body"),
        ({"records": [{"a": 1.0}]}, "records"),
    ],
)
def test_samples_that_do_not_fit_are_refused(client, body, code):
    refused(client.post("/predict", json=body), 422, code)


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"rows": [[NaN, 1, 1, 1, 1, 1]]}',
        b'{"rows": [[Infinity, 1, 1, 1, 1, 1]]}',
        b'{"rows": [[1e400, 1, 1, 1, 1, 1]]}',
        b'{"rows": [[' + b"9" * 6000 + b", 1, 1, 1, 1, 1]]}",
        b"[" * 20_000,
        b'{"rows": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"rows": [[1, 1, 1, 1, 1, 1]]} trailing',
    ],
    ids=["empty", "cut", "bytes", "NaN", "inf", "1e400", "digits", "open", "nested", "trailing"],
)
def test_hostile_json_is_refused_and_the_service_goes_on(client, content, samples):
    answer = client.post("/predict", content=content, headers=JSON)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["message"]
    assert client.post("/predict", json={"rows": samples[:1].tolist()}).status_code == 200


def test_values_far_outside_training_are_refused(client):
    answer = client.post("/predict", json={"rows": [[1e300] * 6]})
    assert answer.status_code in (200, 422)
    assert "Infinity" not in answer.text
    assert "NaN" not in answer.text


def test_a_body_above_the_limit_is_refused_before_it_is_read(client):
    headers = {**JSON, "content-length": "999999999999999999999"}
    refused(client.post("/predict", content=b"", headers=headers), 413, "size")
    rows = {"rows": [[0.123456789] * 6] * 99, "pad": "x" * 50_000}
    refused(client.post("/predict", json=rows), 413, "size")


def test_a_body_without_a_declared_length_is_limited_too(client):
    async def parts():
        for _ in range(1000):
            yield b" " * 1000

    refused(client.post("/predict", content=parts(), headers=JSON), 413, "size")


@pytest.mark.parametrize(("n_parts", "most_read"), [(60, 60), (10_000, 450)])
def test_the_rest_of_a_large_body_is_read_and_discarded_up_to_a_limit(client, n_parts, most_read):
    n_read = 0

    async def parts():
        nonlocal n_read
        for _ in range(n_parts):
            n_read += 1
            yield b" " * 1000

    refused(client.post("/predict", content=parts(), headers=JSON), 413, "size")
    assert min(n_parts, 350) <= n_read <= most_read


def test_a_body_that_is_not_json_is_a_bad_request(client):
    for content in (b"{", b"rows=1", b'{"rows": [[1, 1, 1, 1, 1, 1]]} trailing'):
        refused(client.post("/predict", content=content, headers=JSON), 400, "json")


def test_more_rows_than_the_limit_are_refused(client):
    refused(client.post("/predict", json={"rows": [[0.0] * 6] * 101}), 413, "body")


def test_other_types_of_content_are_refused(client):
    headers = {"content-type": "text/plain"}  # what a page of another site can send
    refused(client.post("/predict", content=b"{}", headers=headers), 415, "type")
    headers = {**JSON, "content-encoding": "gzip"}
    refused(client.post("/predict", content=b"{}", headers=headers), 415, "encoding")


def test_other_host_names_are_refused(client):
    refused(client.get("/health", headers={"host": "evil.example"}), 400, "host")
    refused(client.get("/health", headers={"host": "localhost.evil.example"}), 400, "host")
    for host in ("localhost:8000", "[::1]:8000", "LOCALHOST"):
        assert client.get("/health", headers={"host": host}).status_code == 200


def test_unknown_paths_and_methods_answer_with_json(client):
    refused(client.get("/nowhere"), 404, "request")
    refused(client.get("/predict"), 405, "request")


def test_a_prediction_that_takes_too_long_is_given_up(classifier, samples, monkeypatch):
    client = client_of(classifier, seconds=0.2)
    predict = type(classifier).predict
    monkeypatch.setattr(
        type(classifier), "predict", lambda self, x: (time.sleep(0.6), predict(self, x))[1]
    )
    refused(client.post("/predict", json={"rows": samples[:1].tolist()}), 503, "busy")
    monkeypatch.undo()
    time.sleep(0.6)
    assert client.post("/predict", json={"rows": samples[:1].tolist()}).status_code == 200


def test_an_unexpected_error_shows_nothing_of_the_server(classifier, samples, monkeypatch):
    def fail(self, x):
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(type(classifier), "predict", fail)
    answer = client_of(classifier).post("/predict", json={"rows": samples[:1].tolist()})
    assert "secret" not in refused(answer, 500, "internal")


def test_a_server_can_import_the_application(classifier, samples, tmp_path, monkeypatch):
    classifier.save(tmp_path / "model.ratoon")
    monkeypatch.setenv("RATOON_SERVE_MODEL", str(tmp_path / "model.ratoon"))
    client = Client(from_environment(), "http://service.example")
    answer = client.post("/predict", json={"rows": samples[:2].tolist()}).json()
    assert answer["predictions"] == classifier.predict(samples[:2]).tolist()
    monkeypatch.delenv("RATOON_SERVE_MODEL")
    with pytest.raises(InvalidParameterError, match="RATOON_SERVE_MODEL"):
        from_environment()


@pytest.mark.parametrize("limits", [{"rows": 0}, {"seconds": -1}, {"body_bytes": float("inf")}])
def test_impossible_limits_are_refused(limits):
    with pytest.raises(InvalidParameterError, match="Limits"):
        Limits(**limits)


def test_the_predictions_of_many_clients_are_their_own(client, classifier, samples):
    from concurrent.futures import ThreadPoolExecutor

    expected = classifier.predict_proba(samples)

    def ask(number):
        body = {"rows": samples[number : number + 1].tolist(), "probabilities": True}
        return client.post("/predict", json=body).json()["probabilities"][0]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(len(samples))))
    np.testing.assert_array_equal(found, expected)
    assert ratoon.__version__ == client.get("/openapi.json").json()["info"]["version"]


def test_a_deeply_nested_request_is_refused_before_it_is_parsed(client):
    answer = client.post("/predict", content=b"[" * 17, headers=JSON)
    assert refused(answer, 400, "body")
    assert "nested more than 16 deep" in answer.json()["error"]["message"]
