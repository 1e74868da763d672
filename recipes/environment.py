"""Prints what fainstall must know of the Python that runs it, as one line of JSON: folders, version, distributions."""
import json
import os
import sys
import sysconfig
from importlib import metadata


def distributions():
    """The first of each name on sys.path: the one that Python would import."""
    seen = set()
    for dist in metadata.distributions():
        name = dist.metadata["Name"]
        key = (name or "").lower().replace("_", "-").replace(".", "-")
        if not name or key in seen:
            continue
        seen.add(key)
        yield {"name": name, "version": dist.version, "path": str(getattr(dist, "_path", ""))}


paths = sysconfig.get_paths()
print(
    json.dumps(
        {
            "version": "%d.%d.%d" % sys.version_info[:3],
            "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
            "site": paths["purelib"],
            "scripts": paths["scripts"],
            "prefix": sys.prefix,
            "base_prefix": sys.base_prefix,
            "externally_managed": os.path.exists(os.path.join(paths["stdlib"], "EXTERNALLY-MANAGED")),
            "distributions": list(distributions()),
        }
    )
)
