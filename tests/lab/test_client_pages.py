"""The pages of the most used clients say what the tables say."""

from __future__ import annotations

import pytest

from lab.client_pages import CLIENTS, FOLDER, renewed
from truename.clients.table import config_files


@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_page_is_up_to_date(client: str) -> None:
    page = (FOLDER / f"{client}.md").read_text("utf-8")

    assert page == renewed(page, client), "run `python -m lab.client_pages`"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_page_says_how_to_connect_and_to_undo(client: str) -> None:
    page = (FOLDER / f"{client}.md").read_text("utf-8")

    assert config_files(client)
    assert f"\n$ truename connect {client} " in page
    assert f"\n$ truename disconnect {client} " in page


def test_there_is_a_page_for_each_of_the_ten_and_one_about_their_versions() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == sorted([*CLIENTS, "versions"])
