"""Files damaged by accident, and forged files."""

import io
import json

import numpy as np
import pytest

from ratoon.errors import FormatError
from ratoon.storage import Document, read_document
from ratoon.storage.container import digest_place, writer
from ratoon.storage.read import read_source
from ratoon.storage.rules import Violation
from ratoon.topology import Topology
from tests.storage.cases import a_document, a_small_document, from_bytes, seal, to_bytes


def is_refused(raw):
    try:
        read_source(io.BytesIO(raw), len(raw))
    except Violation:
        return True
    return False


def test_every_truncation_is_refused():
    raw = to_bytes(a_document())
    assert len(raw) <= 8192
    assert not is_refused(raw)
    accepted = [n for n in range(len(raw)) if not is_refused(raw[:n])]
    assert accepted == []


def test_every_flipped_bit_is_refused():
    raw = bytearray(to_bytes(a_small_document()))
    assert not is_refused(bytes(raw))
    accepted = []
    for place in range(len(raw)):
        for bit in range(8):
            raw[place] ^= 1 << bit
            if not is_refused(bytes(raw)):
                accepted.append((place, bit))
            raw[place] ^= 1 << bit
    assert accepted == []


def test_bytes_added_at_the_end_are_refused():
    raw = to_bytes(a_small_document())
    for n in (1, 7, 8, 64):
        assert is_refused(raw + b"\0" * n)
        assert is_refused(seal(raw + b"\0" * n))


def test_a_file_that_shrinks_or_grows_while_it_is_read_is_refused():
    raw = to_bytes(a_small_document())
    with pytest.raises(Violation, match="too short"):
        read_source(io.BytesIO(raw[:-1]), len(raw))
    with pytest.raises(Violation, match="too long"):
        read_source(io.BytesIO(raw + b"\0"), len(raw))


def test_messages_name_the_file_and_the_rule(tmp_path):
    path = tmp_path / "model.ratoon"
    raw = to_bytes(a_document())
    for damaged, rule in [
        (b"", "rule 1,"),
        (b"\x07" + raw[1:], "rule 2,"),
        (raw[:8] + b"[" + raw[9:], "rule 3,"),
        (raw[:-1] + bytes([raw[-1] ^ 1]), "rule 4, .*damaged|damaged.*rule 4,"),
        (raw[:-8], "rule 8,"),
    ]:
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=rf"model\.ratoon: .*({rule})"):
            read_document(path)


# ---------------------------------------------------------------------- sealed by an attacker


def rebuilt(change_header=None, change_config=None, payload=None, document=None):
    """Take a file apart, change parts of it, and seal it again."""
    raw = to_bytes(document or a_document())
    length = int.from_bytes(raw[:8], "little")
    header, body = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    if change_config:
        config = json.loads(header["__metadata__"]["config"])
        change_config(config)
        header["__metadata__"]["config"] = json.dumps(config)
    if change_header:
        change_header(header)
    if payload:
        body = payload(body, header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return seal(len(text).to_bytes(8, "little") + text + body)


def refusal(raw):
    with pytest.raises(Violation) as found:
        from_bytes(raw)
    return str(found.value)


def test_a_rebuilt_file_without_changes_is_accepted():
    from_bytes(rebuilt())


def set_words(name, dtype, changes):
    def change(body, header):
        first, last = header[name]["data_offsets"]
        words = np.frombuffer(body[first:last], dtype=dtype).copy()
        for index, value in changes.items():
            words[index] = value
        return body[:first] + words.tobytes() + body[last:]

    return change


LAYER = "networks.0.layers.0"


@pytest.mark.parametrize(
    ("name", "dtype", "changes", "rule"),
    [
        ("starts", "<i8", {0: 1}, 10),
        ("starts", "<i8", {-1: 10**12}, 10),
        ("starts", "<i8", {0: -1}, 10),
        ("packed", "<u4", {0: 6 << 16}, 11),
        ("packed", "<u4", {0: 5}, 11),
        ("packed", "<u4", {-1: 0xFFFFFFFF}, 11),
        ("packed", "<u4", {0: 0, 1: 0}, 11),
        ("weights", "<f4", {2: np.nan}, 12),
        ("bias", "<f4", {2: np.inf}, 12),
        ("state.0", "<f4", {0: -np.inf}, 12),
        ("state.1", "<f4", {0: -1e-30}, 12),
        ("bias_state.1", "<f4", {0: -1.0}, 12),
    ],
)
def test_bad_numbers_are_refused_even_with_a_valid_digest(name, dtype, changes, rule):
    name = f"{LAYER}.{name}"
    raw = rebuilt(payload=set_words(name, dtype, changes), document=a_document(n_states=2))
    assert f"rule {rule}," in refusal(raw)


def test_tile_starts_that_decrease_are_refused():
    document = Document({}, networks=a_document(widths=(2000, 5)).networks)
    assert document.networks[0].layers[0].topology.starts.size > 3
    raw = rebuilt(payload=set_words(f"{LAYER}.starts", "<i8", {1: 10**6}), document=document)
    assert "rule 10," in refusal(raw)


def layer_entry(**values):
    return lambda config: config["networks"][0]["layers"][0].update(values)


@pytest.mark.parametrize(
    "change",
    [
        layer_entry(activation="__import__('os')"),
        layer_entry(activation=3),
        layer_entry(init="zeros"),
        layer_entry(n_in=0),
        layer_entry(n_in=2**31),
        layer_entry(n_in=True),
        layer_entry(n_in=6.0),
        layer_entry(n_connections=31),
        layer_entry(n_connections=-1),
        layer_entry(n_states=3),
        layer_entry(tile_in=0),
        layer_entry(tile_in=17),
        layer_entry(tile_out=2**17),
        layer_entry(grouped=1),
        layer_entry(slope=1e300),
        layer_entry(slope="0"),
        layer_entry(dropout=1.0),
        layer_entry(dropout=1 - 2**-40),  # rounds to 1 in float32
        layer_entry(dropout=-0.1),
        layer_entry(extra=1),
        lambda config: config["networks"][0]["layers"][0].pop("slope"),
        lambda config: config["networks"][0].update(dtype="float16"),
        lambda config: config["networks"][0].update(clip=-1),
        lambda config: config["networks"][0].update(layers=[]),
        lambda config: config["networks"][0]["layers"].reverse(),
        lambda config: config.update(networks={}),
        lambda config: config.update(extra=1),
        lambda config: config.update(content=[]),
        lambda config: config["arrays"]["counts"].update(type="O"),
        lambda config: config["arrays"]["counts"].update(chars=3),
        lambda config: config["arrays"]["counts"].update(shape=[-1]),
        lambda config: config["arrays"]["classes"].update(chars=2**30),
        lambda config: config["arrays"].update({"../x": config["arrays"]["counts"]}),
    ],
)
def test_impossible_configuration_is_refused(change):
    assert "rule 5," in refusal(rebuilt(change_config=change))


def test_text_that_expands_beyond_the_limit_is_refused():
    names = Document({}, {"a": np.array(["x"] * 2000)})
    raw = rebuilt(change_config=lambda c: c["arrays"]["a"].update(chars=2**20), document=names)
    assert "rule 5," in refusal(raw)


@pytest.mark.parametrize(
    ("name", "dtype", "changes"),
    [
        ("texts.classes.offsets", "<i8", {1: 100}),
        ("texts.classes.offsets", "<i8", {1: -1}),
        ("texts.classes.offsets", "<i8", {0: 1}),
        ("texts.classes.bytes", "u1", {0: 0xFF}),
        ("texts.names.bytes", "u1", {0: 0xC3}),
        ("arrays.flags", "u1", {0: 2}),
    ],
)
def test_bad_text_and_truth_values_are_refused(name, dtype, changes):
    assert "rule 12," in refusal(rebuilt(payload=set_words(name, dtype, changes)))


def entry(**values):
    return lambda header: header[f"{LAYER}.packed"].update(values)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda h: h.pop(f"{LAYER}.bias"), 6),
        (lambda h: h.update({"more": h[f"{LAYER}.bias"]}), 6),
        (entry(dtype="I32"), 7),
        (entry(dtype="F8_E4M3"), 7),
        (entry(shape=[14]), 7),
        (entry(shape=[15, 1]), 7),
        (entry(shape=[15.0]), 7),
        (entry(shape=[True]), 7),
        (entry(shape=[2**60, 2**60]), 7),
        (entry(data_offsets=[0, 4]), 7),
        (entry(data_offsets=[4, 0]), 7),
        (entry(data_offsets=[1, 61]), 7),
        (entry(data_offsets=[0, 60]), 8),  # over another tensor
        (entry(data_offsets=[2**52, 2**52 + 60]), 8),
        (entry(extra=1), 7),
    ],
)
def test_impossible_tensors_are_refused(change, rule):
    assert f"rule {rule}," in refusal(rebuilt(change_header=change))


def metadata(**values):
    return lambda header: header["__metadata__"].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (metadata(format="pt"), "not a ratoon file"),
        (metadata(format_version="2"), "upgrade ratoon"),
        (metadata(format_version="2", extra="x"), "upgrade ratoon"),
        (metadata(format_version="0"), "no format version"),
        (metadata(format_version="1.0"), "no format version"),
        (metadata(format_version=1), "values that are not strings"),
        (metadata(kind="pickle"), "the kind must be one of"),
        (metadata(writer=""), "the writer"),
        (metadata(extra="x"), "must have the keys"),
        (metadata(digest="sha256:"), "no digest"),
        (lambda h: h.pop("__metadata__"), "no metadata"),
        (lambda h: h.update(__metadata__=[]), "no metadata"),
    ],
)
def test_impossible_metadata_is_refused(change, message):
    found = refusal(rebuilt(change_header=change))
    assert message in found
    assert "rule 4," in found


def test_the_digest_must_appear_exactly_once():
    digest = "sha256:" + "1" * 64
    raw = digest.encode()
    assert digest_place(b"abc" + raw, digest) == 10
    for header in (b"", raw + raw):
        with pytest.raises(Violation, match="exactly once"):
            digest_place(header, digest)


def test_a_checkpoint_of_another_minor_version_is_refused_and_a_model_is_not():
    for kind in ("model", "checkpoint"):
        raw = rebuilt(change_header=metadata(writer="ratoon 93.1.0"), document=a_document(kind))
        if kind == "model":
            assert from_bytes(raw).kind == "model"
        else:
            found = refusal(raw)
            assert "written by ratoon 93.1.0" in found
            assert writer() in found


def test_a_checkpoint_of_another_patch_version_is_accepted():
    same_minor = writer().rsplit(".", 1)[0] + ".99"
    change = metadata(writer=same_minor)
    assert from_bytes(rebuilt(change_header=change, document=a_document("checkpoint")))


def test_a_file_of_another_kind_than_requested_is_refused():
    with pytest.raises(Violation, match="this is a model, not a checkpoint"):
        from_bytes(to_bytes(a_document()), kind="checkpoint")


@pytest.mark.parametrize(
    "header",
    [
        b'{"a":1,"a":1}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e999}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":99999999999999999999}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
        b'{"a":"\n"}',
        b'{"a":' + b"[" * 9 + b"]" * 9 + b"}",
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":1}x',
        b' {"a":1}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":1}\n',
        b'{"a":1' + b" " * 9 + b"}" + b" " * 16,
        b"[]",
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_headers_that_are_not_strict_json_are_refused(header):
    header += b" " * (-len(header) % 8)
    assert "rule 3," in refusal(len(header).to_bytes(8, "little") + header)


@pytest.mark.parametrize("header", [b"{}", b'{"a":1}', b'{"__metadata__":{}}'])
def test_headers_without_metadata_are_refused(header):
    header += b" " * (-len(header) % 8)
    assert "rule 4," in refusal(len(header).to_bytes(8, "little") + header)


@pytest.mark.parametrize("length", [0, 1, 2**20 + 8, 2**63, 2**64 - 1, 12])
def test_impossible_header_lengths_are_refused(length):
    raw = length.to_bytes(8, "little") + b"{}" * 50
    assert "rule 2," in refusal(raw)


# ---------------------------------------------------------------------------------- limits


def limited_document():
    network = a_document().networks[0]
    for layer in network.layers:
        everything = np.arange(layer.n_connections)
        layer.allowed = layer.topology.regrow(everything, 2, seed=0).topology
    return Document({}, {}, [network])


def test_a_limit_is_read_as_it_was_written():
    document = limited_document()
    again = from_bytes(to_bytes(document)).networks[0]
    for ours, theirs in zip(again.layers, document.networks[0].layers, strict=True):
        assert ours.allowed == theirs.allowed
        assert ours.topology == theirs.topology


def test_a_connection_outside_a_stored_limit_is_refused():
    document = limited_document()
    layer = document.networks[0].layers[0]
    layer.allowed = Topology.from_positions(layer.shape, np.sort(layer.topology.positions)[1:])
    with pytest.raises(Violation, match=r"1 of 15 .* allows none\. .rule 14"):
        from_bytes(to_bytes(document))


def test_every_truncation_and_many_flipped_bits_of_a_limited_document_are_refused():
    raw = to_bytes(limited_document())
    assert [n for n in range(len(raw)) if not is_refused(raw[:n])] == []
    config = raw.index(b"allowed")
    for place in range(config, config + 80):
        broken = bytearray(raw)
        broken[place] ^= 1
        assert is_refused(bytes(broken))
        is_refused(seal(bytes(broken)))  # whatever it says: no other error, no crash
