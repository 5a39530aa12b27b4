"""Who offers what: plugins are found, each is loaded in its own try, and every variant keeps its origin."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from zoo.faults import Fault, SpecError, nearest
from zoo.hooks import API, SLOTS, Variant

from . import hooks

GROUP = "zoo"
HOME = "transformer-zoo"
"""The distribution whose plugins stay when third-party plugins are left out."""


class NotFound(SpecError):
    """No variant answers to a name, or more than one does."""


class PluginError(SpecError):
    """A plugin that is needed does not work."""


@dataclass(frozen=True)
class Origin:
    """Where variants come from. For a plugin file, distribution is its file name and version begins its sha256."""

    plugin: str
    distribution: str
    version: str
    source: str

    def __str__(self) -> str:
        return f"'{self.plugin}' ({self.distribution} {self.version})"


@dataclass(frozen=True)
class Plugin(Origin):
    """What became of one plugin. `status` is ok, broken, incompatible or disabled; `cause` says why."""

    status: str = "ok"
    cause: str = ""
    variants: int = 0
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.plugin

    def __str__(self) -> str:
        verb = {"broken": "failed to load: ", "incompatible": "", "disabled": "is disabled by ", "ok": "works"}
        return f"plugin {super().__str__()} {verb[self.status]}{self.cause}"


@dataclass(frozen=True)
class Entry(Origin):
    """A variant and where it comes from."""

    variant: Variant

    @property
    def owners(self) -> tuple[str, str, str]:
        """What may stand before the colon in front of its name."""
        return ("", self.plugin, self.distribution)


class Registry:
    """The variants on offer and the plugins that were looked at."""

    def __init__(self, entries: Iterable[Entry], plugins: Iterable[Plugin]):
        order = {slot: i for i, slot in enumerate(SLOTS)}
        self.entries = sorted(entries, key=lambda e: (order[e.variant.slot], e.variant.name, e.distribution, e.plugin))
        self.plugins = list(plugins)

    @property
    def broken(self) -> list[Plugin]:
        """Plugins that were to be loaded and could not be."""
        return [p for p in self.plugins if p.status in ("broken", "incompatible")]

    def variants(self, slot: str | None = None, glob: str | None = None) -> list[Entry]:
        """Entries of a slot whose name, or `plugin:name`, matches. Raises `NotFound` for a slot that is none."""
        if slot is not None and slot not in SLOTS:
            raise NotFound(f"there is no slot '{slot}'{nearest(slot, SLOTS)}")
        found = [e for e in self.entries if slot in (None, e.variant.slot)]
        if glob is None:
            return found
        return [e for e in found if any(fnmatchcase(n, glob) for n in (e.variant.name, f"{e.plugin}:{e.variant.name}"))]

    def find(self, slot: str, name: str) -> Entry:
        """The one entry called `name`, `plugin:name` or `distribution:name`. Raises `NotFound`."""
        owner, _, bare = name.rpartition(":")
        found = [e for e in self.variants(slot) if e.variant.name == bare and owner in e.owners]
        if len(found) == 1:
            return found[0]
        raise NotFound(self._clash(slot, bare, found) if found else self._missing(slot, owner, bare))

    def spelling(self, entry: Entry) -> str:
        """The name that `find` takes for this entry: bare while unique, else after its plugin or distribution."""
        key = (entry.variant.slot, entry.variant.name)
        rivals = [e for e in self.entries if (e.variant.slot, e.variant.name) == key]
        if len(rivals) == 1:
            return entry.variant.name
        unique = len({e.plugin for e in rivals}) == len(rivals)
        return f"{entry.plugin if unique else entry.distribution}:{entry.variant.name}"

    def load(self, entry: Entry) -> Callable[..., Any]:
        """Import what the entry stands for. Raises `PluginError` from the original error."""
        target = entry.variant.target
        try:
            return _import(target) if isinstance(target, str) else target
        except (Exception, SystemExit) as error:
            what = f"{entry.variant.slot} '{entry.variant.name}' of plugin {Origin.__str__(entry)}"
            raise PluginError(f"{what} cannot be loaded: {_summarise(error)}") from error

    def _clash(self, slot: str, name: str, found: list[Entry]) -> str:
        owners = " and ".join(map(Origin.__str__, found))
        ways = " or ".join(f"'{self.spelling(e)}'" for e in found)
        return f"{'two' if len(found) == 2 else len(found)} plugins offer {slot} '{name}': {owners}; write {ways}"

    def _missing(self, slot: str, owner: str, name: str) -> str:
        asked = [p for p in self.plugins if owner in ("", p.plugin, p.distribution)]
        if owner and not asked:
            return f"there is no plugin '{owner}'{nearest(owner, [p.plugin for p in self.plugins])}"
        said = f"plugin '{owner}' offers no {slot} '{name}'" if owner else f"no {slot} is called '{name}'"
        elsewhere = [e.variant.slot for e in self.entries if e.variant.name == name and owner in e.owners]
        if elsewhere:
            said += f"; '{name}' is for the slot '{elsewhere[0]}'"
        else:
            said += nearest(name, [e.variant.name for e in self.variants(slot) if owner in e.owners])
        return "; ".join([said, *(str(p) for p in asked if p.status != "ok")])


def discover(
    *,
    plugins: bool = True,
    disable: Iterable[str] = (),
    files: Iterable[str | Path] = (),
    require: Iterable[str] = (),
    strict: bool = False,
) -> Registry:
    """Find and load every plugin: entry points of the group `zoo`, then `files` of Python.

    `plugins=False` leaves out all that does not come with the zoo. `disable`, to which `ZOO_DISABLE_PLUGINS` adds,
    holds names of plugins or distributions. `require` holds requirements such as `zoo-x>=0.2`; where one is not met,
    or a file is missing, `SpecError` is raised with the path `("require" or "files", index)`. A plugin that fails is
    kept as a record and harms nothing else, unless `strict`: then `PluginError` is raised.
    """
    off = dict.fromkeys(os.environ.get("ZOO_DISABLE_PLUGINS", "").replace(",", " ").split(), "ZOO_DISABLE_PLUGINS")
    loader = _Loader(plugins, off | dict.fromkeys(disable, "request"))
    points = [(_describe_entry_point(point), point.load) for point in metadata.entry_points(group=GROUP)]
    for plugin, fetch in sorted(points, key=lambda pair: (pair[0].distribution, pair[0].plugin)):
        loader.load(plugin, fetch)
    faults = []
    for i, path in enumerate(map(Path, files)):
        try:
            source = path.read_bytes()
        except OSError as error:
            faults.append(Fault(f"plugin file {path} cannot be read: {error.strerror}", ("files", i)))
        else:
            loader.load(_describe_file(path, source), partial(_execute, path, source), path)
    faults += [
        Fault(text, ("require", i))
        for i, wish in enumerate(require)
        if (text := _check_requirement(wish, loader.plugins))
    ]
    if faults:
        raise SpecError(faults)
    registry = Registry(loader.entries, loader.plugins)
    if strict and registry.broken:
        raise PluginError(Fault(str(plugin)) for plugin in registry.broken)
    return registry


class _Loader:
    """Loads plugins one by one: what goes wrong in one ends in its record."""

    def __init__(self, third_party: bool, off: Mapping[str, str]):
        self.third_party = third_party
        self.off = off
        self.manager = pluggy.PluginManager("zoo")
        self.manager.add_hookspecs(hooks)
        self.entries: list[Entry] = []
        self.plugins: list[Plugin] = []

    def load(self, plugin: Plugin, fetch: Callable[[], Any], path: Path | None = None) -> None:
        """Fetch the plugin object and take in what it offers; one that is here already is passed over."""
        if reason := self.disabled(plugin):
            self.plugins.append(replace(plugin, status="disabled", cause=reason))
            return
        if path and any(os.path.realpath(path) == os.path.realpath(f) for f in self.files()):
            return
        module = None
        try:
            with contextlib.redirect_stdout(sys.stderr):  # what a plugin prints must not end up in our JSON
                module = fetch()
                if any(module is known for known in self.manager.get_plugins()):
                    return
                variants = self.register(module, f"{plugin.distribution}:{plugin.plugin}")
        except _Incompatible as error:
            self.plugins.append(replace(plugin, status="incompatible", cause=str(error)))
        except (Exception, SystemExit) as error:
            if module is not None and self.manager.is_registered(module):
                self.manager.unregister(module)
            self.plugins.append(replace(plugin, status="broken", cause=_summarise(error), error=error))
        else:
            self.plugins.append(replace(plugin, variants=len(variants)))
            origin = (plugin.plugin, plugin.distribution, plugin.version, plugin.source)
            self.entries += [Entry(*origin, variant) for variant in variants]

    def disabled(self, plugin: Plugin) -> str:
        """Why this plugin is left out, or nothing."""
        if not self.third_party and plugin.distribution != HOME:
            return "--no-plugins"
        return self.off.get(plugin.plugin) or self.off.get(plugin.distribution) or ""

    def files(self) -> list[str]:
        """The files that plugins were loaded from."""
        return [plugin.__file__ for plugin in self.manager.get_plugins() if getattr(plugin, "__file__", None)]

    def register(self, module: Any, key: str) -> list[Variant]:
        """Give the plugin to pluggy, check its hooks, and collect what it offers."""
        api = getattr(module, "zoo_api", getattr(sys.modules.get(getattr(module, "__module__", "")), "zoo_api", API))
        if api != API:
            raise _Incompatible(f"was written for plugin API {api}; this zoo has {API}")
        if self.manager.has_plugin(key):
            raise PluginError("another plugin of this name is loaded already; rename one")
        try:
            self.manager.register(module, key)
        except pluggy.PluginValidationError as error:
            raise PluginError("its zoo_variants has arguments; it is called with none") from error
        callers = self.manager.get_hookcallers(module) or []
        for caller in callers:  # what check_pending() would find, in words that help
            if not caller.has_spec():
                raise PluginError(f"'{caller.name}' is no hook of the zoo; did you mean 'zoo_variants'?")
        calls = [call for caller in callers for call in caller.get_hookimpls() if call.plugin is module]
        if not calls:
            raise PluginError("it has no hook; is @zoo.hookimpl missing above its zoo_variants?")
        if any(call.kwargnames for call in calls):
            raise PluginError("its zoo_variants has arguments; it is called with none")
        return _collect_variants([call.function() for call in calls])


class _Incompatible(Exception):
    """A plugin was written for another version of the contract."""


def _collect_variants(offers: list[Any]) -> list[Variant]:
    """What the hooks returned, if it can be used. Raises `PluginError` that says what cannot."""
    variants: list[Variant] = []
    for offer in offers:
        if not isinstance(offer, Iterable) or isinstance(offer, str | bytes):
            raise PluginError(f"its zoo_variants returned {offer!r:.60}; it should return a list of zoo.Variant")
        variants += offer
    seen = set()
    for variant in variants:
        if fault := _find_fault(variant):
            raise PluginError(fault)
        if (variant.slot, variant.name) in seen:
            raise PluginError(f"it offers {variant.slot} '{variant.name}' twice")
        seen.add((variant.slot, variant.name))
    return variants


def _find_fault(variant: Any) -> str:
    if not isinstance(variant, Variant):
        return f"its zoo_variants returned {variant!r:.60} among its variants; each should be a zoo.Variant"
    slot, name, target = variant.slot, variant.name, variant.target
    if slot not in SLOTS:
        return f"it offers {name!r} for the slot {slot!r}, and there is none{nearest(slot, SLOTS)}"
    if not isinstance(name, str) or not name or any(c == ":" or c.isspace() for c in name):
        return f"it offers a {slot} called {name!r}; a name should be a text without spaces and colons"
    if not (all(target.partition(":")) if isinstance(target, str) else callable(target)):
        return f"the target of {slot} '{name}' is {target!r}; it should be 'module:name', a class or a function"
    if not isinstance(variant.fixed, Mapping):
        return f"the fixed options of {slot} '{name}' are {variant.fixed!r}; they should be a mapping"
    return ""


def _describe_entry_point(point: metadata.EntryPoint) -> Plugin:
    distribution, version = (point.dist.name, point.dist.version) if point.dist else ("", "")
    return Plugin(point.name, distribution or "unnamed", version or "", point.value)


def _describe_file(path: Path, source: bytes) -> Plugin:
    digest = hashlib.sha256(source).hexdigest()
    return Plugin(path.stem, path.name, f"sha256:{digest[:12]}", f"{path} sha256:{digest}")


def _execute(path: Path, source: bytes) -> ModuleType:
    """The module of a plugin file, made from the very bytes that were hashed, and once for each content."""
    path = path.resolve()
    name = f"zoo_file_{hashlib.sha256(str(path).encode() + source).hexdigest()[:16]}"
    if name not in sys.modules:
        module = ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module  # before it runs: dataclasses look themselves up
        try:
            exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _import(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    found: Any = importlib.import_module(module)
    for step in name.split("."):
        if not hasattr(found, step):
            raise PluginError(f"{module} has no '{step}'{nearest(step, dir(found))}")
        found = getattr(found, step)
    if not callable(found):
        raise PluginError(f"{target} is of type {type(found).__name__}, which cannot be called")
    return found


def _check_requirement(wish: str, plugins: list[Plugin]) -> str:
    """Why a requirement such as `zoo-x>=0.2` is not met, or nothing."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        wanted = Requirement(wish)
    except InvalidRequirement:
        return f"'{wish}' is no requirement; write it as for pip, for example 'zoo-x>=0.2'"
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return f"'{wish}' is required and not installed; pip install '{wish}' brings it"
    if not wanted.specifier.contains(version, prereleases=True):
        return f"'{wish}' is required, and {wanted.name} {version} is installed"
    own = [p for p in plugins if canonicalize_name(p.distribution) == canonicalize_name(wanted.name)]
    failed = [str(p) for p in own if p.status != "ok"]
    return "; ".join([f"'{wish}' is required", *failed]) if failed else ""


def _summarise(error: BaseException) -> str:
    """An error in one line; our own need no type in front."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return text if isinstance(error, PluginError) else f"{kind}: {text}" if text else kind
