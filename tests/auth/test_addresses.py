"""Addresses: what an address is, in whatever form it is written, and who may lead the gateway where."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.auth.network.addresses import (
    AddressRefused,
    NetworkPolicy,
    NetworkZone,
    address_of,
    host_of,
    network_zone_of,
)

_KINDS = {
    "8.8.8.8": NetworkZone.PUBLIC,
    "2606:4700::1111": NetworkZone.PUBLIC,
    "10.1.2.3": NetworkZone.PRIVATE,
    "172.16.0.1": NetworkZone.PRIVATE,
    "192.168.1.1": NetworkZone.PRIVATE,
    "100.64.0.1": NetworkZone.PRIVATE,
    "fd12:3456::1": NetworkZone.PRIVATE,
    "fec0::1": NetworkZone.PRIVATE,
    "127.0.0.1": NetworkZone.LOOPBACK,
    "127.255.255.254": NetworkZone.LOOPBACK,
    "::1": NetworkZone.LOOPBACK,
    "::ffff:127.0.0.1": NetworkZone.LOOPBACK,
    "::127.0.0.1": NetworkZone.LOOPBACK,
    "64:ff9b::7f00:1": NetworkZone.LOOPBACK,
    "64:ff9b:1::a00:1": NetworkZone.PRIVATE,
    "2002:7f00:1::": NetworkZone.LOOPBACK,
    "2002:0a00:0001::": NetworkZone.PRIVATE,
    "::ffff:169.254.169.254": None,
    "64:ff9b::a9fe:a9fe": None,
    "169.254.169.254": None,
    "169.254.1.1": None,
    "fe80::1": None,
    "fd00:ec2::254": None,
    "100.100.100.200": None,
    "168.63.129.16": None,
    "fd00:ec2::23": None,
    "fd00:42::42": None,
    "::ffff:0:169.254.169.254": None,
    "::ffff:0:127.0.0.1": NetworkZone.LOOPBACK,
    "0.0.0.0": None,
    "::": None,
    "224.0.0.1": None,
    "ff02::1": None,
    "255.255.255.255": None,
    "240.0.0.1": None,
}


@pytest.mark.parametrize(("text", "kind"), _KINDS.items())
def test_an_address_is_as_near_as_what_it_reaches(text: str, kind: NetworkZone | None) -> None:
    assert network_zone_of(ip_address(text)) is kind


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("2852039166", "169.254.169.254"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("0251.0376.0251.0376", "169.254.169.254"),
        ("0xA9.254.0251.254", "169.254.169.254"),
        ("169.254.169.254.", "169.254.169.254"),
        ("[fe80::1%25eth0]", "fe80::1"),
        ("[::1]", "::1"),
        ("0", "0.0.0.0"),
        ("0000000000000001", "0.0.0.1"),
    ],
)
def test_every_form_of_an_address_that_a_resolver_takes_is_read(host: str, address: str) -> None:
    assert address_of(host) == ip_address(address)


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "1.2.3.4.5",
        "1.2.3.4.0",
        "X127.0.0.1",
        "127.0.0.1X",
        "00000000000000001",
        "256.1.1.1",
        "1.2.3.256",
        "0x",
        "08.1.1.1",
        "1..2",
        "",
        "-1",
        "1e3",
        "٣.1.1.1",
        "4294967296",
    ],
)
def test_a_name_is_no_address(host: str) -> None:
    assert address_of(host) is None


@given(st.integers(0, 2**32 - 1))
def test_an_address_is_the_same_in_all_its_forms(number: int) -> None:
    plain = IPv4Address(number)
    a, b, c, d = plain.packed
    forms = (
        str(number),
        hex(number),
        f"0{number:o}" if number else "0",
        f"{a}.{b}.{c * 256 + d}",
        f"0x{a:x}.{b}.{c}.{d}",
    )
    carried = (
        f"::ffff:{plain}",
        f"64:ff9b::{c * 0 + a:02x}{b:02x}:{c:02x}{d:02x}",
        f"2002:{a:02x}{b:02x}:{c:02x}{d:02x}::",
    )
    assert {address_of(form) for form in forms} == {plain}
    assert {network_zone_of(IPv6Address(form)) for form in carried} == {network_zone_of(plain)}


@pytest.mark.parametrize(
    ("named_by", "leads_to", "is_allowed"),
    [
        (NetworkZone.PUBLIC, "8.8.8.8", True),
        (NetworkZone.PUBLIC, "10.0.0.1", False),
        (NetworkZone.PUBLIC, "127.0.0.1", False),
        (NetworkZone.PRIVATE, "10.0.0.1", True),
        (NetworkZone.PRIVATE, "127.0.0.1", False),
        (NetworkZone.LOOPBACK, "127.0.0.1", True),
        (NetworkZone.LOOPBACK, "169.254.169.254", False),
    ],
)
def test_nobody_leads_nearer_than_where_they_are(named_by: NetworkZone, leads_to: str, is_allowed: bool) -> None:
    assert NetworkPolicy.of_named_by(named_by).permits(ip_address(leads_to)) is is_allowed


def test_one_bad_address_among_good_ones_is_enough() -> None:
    with pytest.raises(AddressRefused, match=r"resolves to 169\.254\.169\.254, which is a metadata service"):
        NetworkPolicy(NetworkZone.LOOPBACK).check("two.example", [ip_address("8.8.8.8"), ip_address("169.254.169.254")])


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("10.0.0.1", "private"),
        ("169.254.169.254", "a metadata service"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("240.0.0.1", "reserved"),
    ],
)
def test_a_refusal_says_what_the_address_is(address: str, kind: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        NetworkPolicy().check("two.example", [ip_address("8.8.8.8"), ip_address(address)])

    assert caught.value.host == "two.example"
    assert caught.value.problem == f"resolves to {address}, which is {kind}"


def test_who_names_a_host_reaches_the_networks_that_are_allowed_besides() -> None:
    reach = NetworkPolicy.of_named_by(NetworkZone.PUBLIC, [ip_network("10.0.0.0/8")])

    assert reach.permits(ip_address("10.0.0.1"))
    assert not reach.permits(ip_address("192.168.0.1"))


def test_an_allowed_network_is_reached_whatever_it_is() -> None:
    reach = NetworkPolicy(NetworkZone.PUBLIC, (ip_network("169.254.10.0/24"),))
    reach.check("lab.example", [ip_address("169.254.10.7")])
    with pytest.raises(AddressRefused):
        reach.check("lab.example", [ip_address("169.254.11.7")])


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://Example.COM./mcp", ("https", "example.com", 443)),
        ("http://[::1]:8080/x", ("http", "::1", 8080)),
        ("https://a/" + "x" * 8_182, ("https", "a", 443)),
    ],
)
def test_a_host_is_read(url: str, found: tuple[str, str, int]) -> None:
    assert host_of(url) == found


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://example.com",
        "https://",
        "https://good.example@evil.example/",
        "https://evil.example\\@good.example/",
        "https://ex\nample.com/",
        "https://good.example\\.evil.example/",
        "https://example.com:99999/",
        "https://[::1/",
        "https://a/" + "x" * 8_183,
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        host_of(url)
