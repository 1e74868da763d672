"""Prints what fainstall must know of the Python that runs it, as one line of JSON: folders, version, distributions.

With names as arguments also "closure": those and all that they need here, by their own metadata, and "missing": what is
needed and not installed. Without a reader of requirements (that of pip, or packaging) both are left out.
"""
import json
import os
import sys
import sysconfig
from importlib import metadata


def normal(name):
    return "-".join(filter(None, name.lower().replace("_", "-").replace(".", "-").split("-")))


def distributions():
    """The first of each name on sys.path: the one that Python would import."""
    found = {}
    for dist in metadata.distributions():
        name = dist.metadata["Name"]
        if name:
            found.setdefault(normal(name), dist)
    return found


def tags(dist):
    """What its wheel's name said: "cp311-cp311-manylinux_2_28_x86_64"."""
    text = dist.read_text("WHEEL") or ""
    return [line[4:].strip() for line in text.splitlines() if line.startswith("Tag:")]


def requirement_reader():
    try:
        from pip._vendor.packaging.requirements import Requirement
    except ImportError:
        from packaging.requirements import Requirement
    return Requirement


def closure(found, wanted):
    read = requirement_reader()
    seen, names, missing = set(), [], []
    queue = [(normal(r.name), frozenset(r.extras)) for r in map(read, wanted)]
    while queue:
        name, extras = queue.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if name not in found:
            if name not in missing:
                missing.append(name)
            continue
        if name not in names:
            names.append(name)
        for text in found[name].requires or []:
            r = read(text)
            if r.marker and not any(r.marker.evaluate({"extra": e}) for e in extras or {""}):
                continue
            queue.append((normal(r.name), frozenset(r.extras)))
    return {"closure": sorted(names), "missing": sorted(missing)}


def main():
    paths = sysconfig.get_paths()
    found = distributions()
    wanted = sys.argv[1:]
    out = {
        "version": "%d.%d.%d" % sys.version_info[:3],
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "site": paths["purelib"],
        "scripts": paths["scripts"],
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "externally_managed": os.path.exists(os.path.join(paths["stdlib"], "EXTERNALLY-MANAGED")),
        "distributions": [
            {"name": d.metadata["Name"], "version": d.version, "path": str(getattr(d, "_path", ""))} for d in found.values()
        ],
    }
    if wanted:
        try:
            out.update(closure(found, wanted))
            out["tags"] = {name: tags(found[name]) for name in out["closure"]}
        except ImportError:
            pass
    print(json.dumps(out))


main()
