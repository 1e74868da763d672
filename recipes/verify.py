#!/usr/bin/env python3
"""Is the Flash-Attention of this environment right, used and fast? Prints one JSON object a line.

Run it with the environment's own interpreter: python verify.py [--quick|--full] [--line fa2|fa3|fa4] [--text]
It needs nothing but this folder: the supervisor below uses the standard library, the worker it starts imports torch. A crash, a
hang or an illegal memory access of the worker becomes a finding with its case, and the run goes on in a new process.

Lines: {"kind": "stage", "id", "status": "begin"} · {"kind": "check", "stage", "id", "status": "ok|failed|not_run|skipped", "text",
"seconds", "data"} · {"kind": "stage", "id", "status", "seconds", "text"} · {"kind": "note|warning", "id", "text"} · {"kind": "card",
"data"} · {"kind": "count", "stages"} · {"kind": "figures", "rows"} · {"kind": "verdict", "text"} · {"kind": "done", "status", …}."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Nothing beside this script may hide a package: its folder leaves the path, and only our own parts are loaded from it, by place.
sys.path[:] = [p for p in sys.path if p and os.path.abspath(p) != HERE]

import importlib.util   # noqa: E402


def load_parts():
    spec = importlib.util.spec_from_file_location("fainstall_verifying", os.path.join(HERE, "verifying", "__init__.py"),
                                                  submodule_search_locations=[os.path.join(HERE, "verifying")])
    module = importlib.util.module_from_spec(spec)
    sys.modules["fainstall_verifying"] = module
    spec.loader.exec_module(module)


load_parts()

if __name__ == "__main__":
    from fainstall_verifying import supervisor  # type: ignore

    sys.exit(supervisor.main(os.path.abspath(__file__), sys.argv[1:]))
