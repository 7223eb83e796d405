"""What an upstream lists beside tools: prompts, resources, templates of resources, and skills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.gateway.protocol.definitions import PromptDefinition, ResourceDefinition, TemplateDefinition
from truename.gateway.protocol.skills import SKILLS_EXTENSION, SkillDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.protocol.definitions import Definition, JsonShape

__all__ = ["KINDS", "NOTHING", "Kind", "Lists"]


class Kind(NamedTuple):
    """A list that a server may have: who announces it, how it is asked for, what its entries are, and their key."""

    capability: str
    method: str
    field: str
    shape: type[JsonShape]
    key: str
    words: str


KINDS: Final[Mapping[str, Kind]] = {
    "prompts": Kind("prompts", "prompts/list", "prompts", PromptDefinition, "name", "prompts"),
    "resources": Kind("resources", "resources/list", "resources", ResourceDefinition, "uri", "resources"),
    "templates": Kind(
        "resources", "resources/templates/list", "resourceTemplates", TemplateDefinition, "uriTemplate", "templates"
    ),
    "skills": Kind(SKILLS_EXTENSION, "skills/list", "skills", SkillDefinition, "uri", "skills"),
}


@dataclass(frozen=True)
class Lists:
    """The lists of one server, verbatim and in its order; the fields are the keys of `KINDS`."""

    prompts: tuple[Definition, ...] = ()
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()
    skills: tuple[Definition, ...] = ()


NOTHING: Final = Lists()
