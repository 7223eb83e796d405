"""Import an entry of the MCP registry (``server.json``): its package or remote address becomes a server.

Whoever publishes an entry is not trusted: its texts are never references to variables that exist already, its names
of packages and versions are of a form that no program reads as an option, and only known runtimes are started.
Source: schema 2025-09-29 of modelcontextprotocol/registry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from truename.clients.importers.reading import ConfigReading, TakenKeys
from truename.config.servers import ServerConfig
from truename.errors import ConfigError, excerpt
from truename.policy.registry_names import REGISTRY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from truename.clients.importers.reading import ImportedConfig

__all__ = ["PACKAGES", "registry_entry"]

Values = dict[str, Any]
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_.-]{1,100})\}")
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,254}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
# Variables with which npx, uvx, docker, their runtimes or the loader run other code, or take a package from elsewhere.
_STEERING: Final = re.compile(
    r"(LD|DYLD|NPM|UV|PIP|DOCKER)_\w+|GIT_(SSH|CONFIG|EXEC|PROXY|ASKPASS)\w*"
    r"|NODE_(OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|COMPILE_CACHE)"
    # PYTHONWARNINGS names a module to import, and one of the standard library starts BROWSER.
    r"|PYTHON(PATH|HOME|STARTUP|USERBASE|EXECUTABLE|PLATLIBDIR|BREAKPOINT|WARNINGS|PYCACHEPREFIX)|BROWSER"
    r"|OPENSSL_(CONF|ENGINES|MODULES)|GCONV_PATH|GLIBC_TUNABLES"
    r"|(HTTPS?|ALL)_PROXY|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE"
    r"|PATH|PATHEXT|HOME|USERPROFILE|(LOCAL)?APPDATA|XDG_\w+|SHELL|COMSPEC|BASH_ENV|ENV|IFS|PERL5(OPT|LIB)|RUBY(OPT|LIB)"
    r"|(JAVA_TOOL|JDK_JAVA|_JAVA)_OPTIONS",
    re.ASCII | re.IGNORECASE,
)
_MOST: Final = 200
# Fields for people, and about the entry itself.
_ABOUT: Final = (
    *("$schema", "title", "description", "version", "websiteUrl", "repository", "icons", "_meta", "status", "name"),
    *("packages", "remotes"),
)


@dataclass(frozen=True, kw_only=True)
class PackageRuntime:
    """How packages of one kind are started; ``named`` is the whole form of a legal identifier."""

    command: str
    named: re.Pattern[str]
    words: Callable[[str, str | None], tuple[str, ...]]
    before: tuple[str, ...] = ()


def _at(separator: str) -> Callable[[str, str | None], tuple[str, ...]]:
    return lambda identifier, version: (f"{identifier}{separator}{version}" if version else identifier,)


def _image(identifier: str, version: str | None) -> tuple[str, ...]:
    is_tagged = "@" in identifier or ":" in identifier.rpartition("/")[2]
    return (identifier if is_tagged or not version else f"{identifier}:{version}",)


_RUNTIMES: Final = MappingProxyType(
    {
        "npm": PackageRuntime(
            command="npx",
            named=re.compile(r"(@[a-z0-9~][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*"),
            words=_at("@"),
            before=("-y",),
        ),
        "pypi": PackageRuntime(
            command="uvx",
            named=re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"),
            words=_at("@"),
        ),
        "oci": PackageRuntime(
            command="docker",
            named=re.compile(
                r"[a-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
                r"(@sha256:[0-9a-f]{64})?"
            ),
            words=_image,
            before=("run", "-i", "--rm"),
        ),
    }
)
_REMOTES: Final[dict[str, Literal["http", "sse"]]] = {"streamable-http": "http", "sse": "sse"}
PACKAGES: Final = (*_RUNTIMES, "remote")
"""What can be imported of an entry."""


def registry_entry(
    values: dict[str, object],
    path: Path | str,
    package: str | None = None,
    *,
    package_host: str | None = None,
    named: str | None = None,
) -> ImportedConfig:
    """Import the entry's package of this kind, ``remote``, or, without ``package``, the only one that can be used.

    A package that names the host of its registry is imported only if that is ``package_host``: the program that starts
    it asks the registry that it is configured with, where somebody else may have a package of this name.

    ``named`` is the name that a registry was asked for: an entry with another one is refused.

    Raises `ConfigError` if the entry has no legal name, or nothing or several things to choose from.
    """
    reading = ConfigReading("registry", "MCP registry", path)
    top = _unwrapped(values)
    name = top.text("name") or ""
    if not REGISTRY_NAME.fullmatch(name):
        problem = f"{excerpt(name)} is not a name of the form io.github.owner/server"
        raise ConfigError(
            file=str(path), key=top.where("name"), problem=problem, remedy="Correct the entry, or ask its publisher."
        )
    if named is not None and name.lower() != named.lower():
        problem = f"the entry is {excerpt(name)}, and the registry was asked for {excerpt(named)}"
        raise ConfigError(file=str(path), key=top.where("name"), problem=problem, remedy="Check the registry.")
    entry = _EntryReading(name, reading, package_host)
    found = [*entry.packages(top), *entry.remotes(top)]
    top.ignore(*_ABOUT)
    reading.rest(top, server=entry.key)
    reading.server(*_chosen(found, package, (str(path), top.where("packages")), entry.refused))
    return reading.result()


def _unwrapped(values: dict[str, object]) -> TakenKeys:
    inner = values.get("server")
    return TakenKeys(inner, "server") if isinstance(inner, dict) else TakenKeys(values, "")


Choice = tuple[str, ServerConfig, str]


class RefusedChoice(NamedTuple):
    """Why a package or an address of an entry cannot be imported, and the path of its key."""

    problem: str
    where: str


def _chosen(
    found: list[Choice], package: str | None, at: tuple[str, str], refused: list[RefusedChoice]
) -> tuple[ServerConfig, str]:
    file, key = at
    fitting = [one for one in found if package in {None, one[0]}]
    kinds = ", ".join(dict.fromkeys(kind for kind, _, _ in found))
    if not fitting and package is not None and found:
        raise ConfigError(file=file, key=key, problem=f"it has no {package}", remedy=f"Choose one of: {kinds}.")
    if not fitting:
        problem = ": ".join(("nothing of it can be imported", *(one.problem for one in refused[:1])))
        raise ConfigError(
            file=file,
            key=refused[0].where if refused else key,
            problem=problem,
            remedy="Add the server to the configuration by hand, if you trust it.",
        )
    if package is None and len({kind for kind, _, _ in fitting}) > 1:
        raise ConfigError(file=file, key=key, problem=f"it offers {kinds}", remedy="Choose one with --package.")
    _, server, where = fitting[0]
    return server, where


class _EntryReading:
    def __init__(self, name: str, reading: ConfigReading, package_host: str | None) -> None:
        self.name = name
        self.refused: list[RefusedChoice] = []
        self._package_host = package_host
        self.key = name.rpartition("/")[2]
        self._reading = reading
        self._prefix = re.sub(r"[^A-Z0-9]+", "_", self.key.upper()).strip("_") or "SERVER"
        if self._prefix[0].isdigit():
            self._prefix = f"MCP_{self._prefix}"

    def packages(self, top: TakenKeys) -> Iterable[Choice]:
        for number, item in enumerate(top.items("packages")[:_MOST]):
            taken = TakenKeys(item, f"{top.where('packages')}[{number}]")
            kind = taken.text("registryType") or taken.text("registry_type") or ""
            try:
                server = self._package(kind, taken)
            except ValueError as error:
                self.refused.append(RefusedChoice(str(error), taken.where("")))
                fact = f"Package {number + 1} of {excerpt(self.name)} was not imported: {error}."
                self._reading.leave("server", fact, taken.where(""), server=self.key)
                continue
            taken.ignore("fileSha256", "transport")
            self._reading.rest(taken, server=self.key)
            yield kind, server, taken.where("")

    def remotes(self, top: TakenKeys) -> Iterable[Choice]:
        for number, item in enumerate(top.items("remotes")[:_MOST]):
            taken = TakenKeys(item, f"{top.where('remotes')}[{number}]")
            try:
                server = self._remote(taken)
            except ValueError as error:
                self.refused.append(RefusedChoice(str(error), taken.where("")))
                fact = f"Remote {number + 1} of {excerpt(self.name)} was not imported: {error}."
                self._reading.leave("server", fact, taken.where(""), server=self.key)
                continue
            self._reading.rest(taken, server=self.key)
            yield "remote", server, taken.where("")

    def _package(self, kind: str, taken: TakenKeys) -> ServerConfig:
        runtime = _RUNTIMES.get(kind)
        if runtime is None:
            raise ValueError(f"packages of type {excerpt(kind)} are not supported")
        identifier, version = taken.text("identifier") or "", taken.text("version")
        if not runtime.named.fullmatch(identifier) or len(identifier) > 400:
            raise ValueError(f"{excerpt(identifier)} is not a name of a package of type {kind}")
        if version is not None and not _VERSION.fullmatch(version):
            raise ValueError(f"{excerpt(version)} is not a version")
        if (hint := taken.text("runtimeHint")) not in {None, runtime.command}:
            raise ValueError(f"its runtime {excerpt(hint or '')} is not {runtime.command}")
        self._check_host(taken.text("registryBaseUrl"), runtime.command)
        self._check_host(taken.text("registry_base_url"), runtime.command)
        transport = taken.inside("transport").text("type")
        if transport not in {None, "stdio"}:
            raise ValueError(f"it speaks {excerpt(transport or '')}, and has to be started by hand")
        env = dict(self._values(taken.items("environmentVariables"), _VARIABLE, "variable"))
        self._check_variables(env)
        options = [*self._arguments(taken.items("runtimeArguments"))]
        if options:
            shown = excerpt(" ".join(options))
            fact = f"The package of {excerpt(self.name)} gives {runtime.command} options of its own: {shown}."
            self._reading.leave("access", fact, taken.where("runtimeArguments"), server=self.key)
        # A container has only those variables that are named.
        passed = [word for name in env for word in ("-e", name)] if kind == "oci" else []
        words = runtime.words(identifier, version)
        own = self._arguments(taken.items("packageArguments"))
        args = (*runtime.before, *passed, *options, *words, *own)
        return self._server(command=runtime.command, args=args, env=MappingProxyType(env))

    def _check_variables(self, env: Values) -> None:
        """Raise `ValueError` for a variable of programs that start packages, unless its value is the user's own."""
        for name, text in env.items():
            if _STEERING.fullmatch(name) and text != self._reference(name):
                raise ValueError(f"it sets {excerpt(name)}, which can run other code or take packages from elsewhere")

    def _check_host(self, address: str | None, command: str) -> None:
        """Raise `ValueError` for a package whose registry is not the one that the user named."""
        if not address:
            return
        host = urlsplit(address).hostname
        if host is None:
            raise ValueError(f"{excerpt(address)} is not the address of a registry")
        if host != (self._package_host or "").lower():
            whose = f"it comes from {excerpt(host)}, and {command} asks the registry of its own settings"
            raise ValueError(f"{whose}; if that is the same one, name it with --package-host")

    def _remote(self, taken: TakenKeys) -> ServerConfig:
        kind = taken.text("type") or ""
        if kind not in _REMOTES:
            raise ValueError(f"{excerpt(kind)} is not a known transport")
        variables = taken.object("variables")
        url = self._filled(taken.text("url") or "", variables)
        host = urlsplit(taken.text("url") or "")
        if host.scheme != "https" or not host.hostname or "{" in host.netloc or "@" in host.netloc:
            raise ValueError(f"{excerpt(host.geturl())} is not an https address with a host")
        headers = dict(self._values(taken.items("headers"), re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}"), "header"))
        return self._server(url=url, type=_REMOTES[kind], headers=MappingProxyType(headers))

    def _server(self, **fields: Any) -> ServerConfig:
        return ServerConfig(key=self.key, registry_name=self.name, **fields)

    def _values(self, items: Iterable[object], named: re.Pattern[str], what: str) -> Iterable[tuple[str, str]]:
        for item in list(items)[:_MOST]:
            values: Values = item if isinstance(item, dict) else {}
            name = values.get("name")
            if not isinstance(name, str) or not named.fullmatch(name):
                raise ValueError(f"{excerpt(str(name))} is not a name of a {what}")
            text = self._input(values, name)
            if text is not None:
                yield name, text

    def _arguments(self, items: Iterable[object]) -> Iterable[str]:
        for item in list(items)[:_MOST]:
            values: Values = item if isinstance(item, dict) else {}
            name = values.get("name") if values.get("type") == "named" else None
            hint = name or values.get("valueHint") or "argument"
            text = self._input(values, str(hint))
            if name is None:
                yield from [] if text is None else [text]
                continue
            flag = _plain(name)
            if not flag.startswith("-"):
                raise ValueError(f"{excerpt(flag)} is not a named argument")
            has_value = any(key in values for key in ("value", "default", "valueHint", "isRequired", "isSecret"))
            if text is not None or not has_value:
                yield flag
            if text is not None:
                yield text

    def _input(self, values: Values, name: str) -> str | None:
        """Return the text of an input: fixed, a default, or a reference to a variable that the user sets."""
        if values.get("isSecret") is True:
            # A value that is published is no secret; a template says how the secret is sent.
            written = values.get("value")
            is_template = isinstance(written, str) and _PLACEHOLDER.search(written)
            return self._filled(str(written), values.get("variables")) if is_template else self._reference(name)
        if isinstance(value := values.get("value"), str):
            return self._filled(value, values.get("variables"))
        if isinstance(default := values.get("default"), str | int | float):
            return _plain(str(default).lower() if isinstance(default, bool) else str(default))
        return self._reference(name) if values.get("isRequired") is True else None

    def _filled(self, text: str, variables: object) -> str:
        """Return a template with its variables filled in; braces that name none stay."""
        known = variables if isinstance(variables, dict) else {}

        def fill(match: re.Match[str]) -> str:
            one = known.get(match[1])
            if not isinstance(one, dict):
                return match[0]
            found = self._input(one, match[1])
            return self._reference(match[1]) if found is None or "{" in str(one.get("value", "")) else found

        return _PLACEHOLDER.sub(fill, _plain(text))

    def _reference(self, name: str) -> str:
        """Return a reference that begins with the server's key: an entry cannot name a variable that is set already."""
        word = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")[:100] or "VALUE"
        return f"${{{self._prefix}_{word}}}"


def _plain(text: object) -> str:
    """Return a text of the entry. Raises `ValueError` for one that is, or may become, a reference."""
    if not isinstance(text, str) or len(text) > 4_000 or not text.isprintable() or "$" in text:
        raise ValueError(f"{excerpt(str(text))} holds a dollar sign, or what cannot be printed")
    return text
