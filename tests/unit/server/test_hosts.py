"""Without these, a web page of a stranger could talk to a local server under its own name."""

import pytest

from armillary.server.http.hosts import HostCheck, is_loopback


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:8081",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:8081",
        "host.docker.internal:8081",
        "Box.Example:8081",
    ],
)
def test_names_that_are_answered(host: str) -> None:
    check = HostCheck(["box.example"])
    assert check.refuses(host) is None
    assert check.refuses(host) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "evil:localhost",
        "[::1]evil.example",
        "[::1].evil.example:80",
        "localhost:80:90",
        "localhost:",
        "localhost/x",
        "localhost@evil.example",
        "local host",
    ],
)
def test_names_that_are_not_and_how_to_allow_them(host: str) -> None:
    why = HostCheck().refuses(host)
    assert why is not None
    assert "--allow-host" in why


def test_a_server_with_a_key_of_its_own_answers_to_any_name() -> None:
    assert HostCheck(enforce=False).refuses("anything") is None


def test_what_is_kept_is_bounded() -> None:
    check = HostCheck()
    for port in range(2_000):
        assert check.refuses(f"localhost:{port}") is None
    assert len(check._known) <= 256


def test_loopback() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.9.9.9", "localhost", "::1"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "localhost.evil"]))
