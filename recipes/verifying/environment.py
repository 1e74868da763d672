"""The first stage, without torch: one torch, one flash-attn, the files that were installed, nothing that hides them."""

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import sys

from . import lines

BUNDLED = {   # packages that carry a copy of their own: what runs there is not what was verified here
    "xformers": ["_C_flashattention.so", "flash_attn_3"], "vllm": ["vllm_flash_attn"], "sgl_kernel": ["flash_attn.py", "flash_ops.abi3.so"],
    "transformer_engine": [], "kernels": [],
}


def normal(name):
    return re.sub(r"[-_.]+", "-", name or "").lower()


def by_name():
    found, seen = {}, set()
    for d in importlib.metadata.distributions():
        where = os.path.realpath(str(getattr(d, "_path", id(d))))
        if where in seen:   # a folder that is in the path twice
            continue
        seen.add(where)
        try:
            found.setdefault(normal(d.metadata["Name"]), []).append(d)
        except (KeyError, TypeError):
            continue
    return found


def unlike(path, hash_, size, deep):
    """Why a file is not the one that was installed; "" when it is."""
    try:
        real = os.stat(path).st_size
    except OSError:
        return "is gone"
    if size is not None and real != size:
        return "has %s bytes, %s were installed" % (format(real, ","), format(size, ","))
    if not hash_ or hash_.mode != "sha256" or (real > 8 << 20 and not deep):
        return ""
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            h.update(block)
    found = base64.urlsafe_b64encode(h.digest()).rstrip(b"=").decode()
    return "" if found == hash_.value.rstrip("=") else "is another file than the one that was installed (its hash differs)"


def files_of(dist, deep):
    """(files that are not what was installed, paths of the binaries)."""
    wrong, binaries = [], []
    for f in dist.files or ():
        path = str(dist.locate_file(f))
        if path.endswith((".pyc", ".pyo")) or "__pycache__" in path:
            continue
        if re.search(r"\.(so|pyd)(\.\d+)*$", path):
            binaries.append(os.path.abspath(path))
        why = unlike(path, f.hash, f.size, deep) if f.hash else ""
        if why:
            wrong.append("%s %s" % (f, why))
    return wrong, binaries


def is_below(path, folder):
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def found_at(module):
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    return spec.origin or next(iter(spec.submodule_search_locations or ()), None)


def check(line, expect, deep, caller_path, caller_dir):
    """Findings: (id, ok, text, more)."""
    found = by_name()
    out = [("python", True, "Python %s, %s" % (platform.python_version(), sys.executable), {"python": platform.python_version()})]
    torches = found.get("torch", [])
    if not torches and found_at("torch"):   # a vendor's build without a list of its files
        out.append(("torch", True, "torch without package metadata at %s" % found_at("torch"), {"note": True}))
    else:
        out.append(one_of("torch", torches, "torch", expect.get("torch")))
    names = lines.LINES[line]["packages"]
    dists = [d for n in names for d in found.get(normal(n), [])]
    out.append(one_of("flash-attn", dists, lines.LINES[line]["title"], expect.get("flash_attn")))
    if len(dists) == 1:
        out += files(dists[0], deep) + shadow(line, dists[0], caller_path, caller_dir)
    copies = [p for p in BUNDLED if normal(p) in found and (not BUNDLED[p] or any(
        os.path.exists(str(found[normal(p)][0].locate_file(os.path.join(p, f)))) for f in BUNDLED[p]))]
    if copies:
        out.append(("copies", True, "%s brings a copy of Flash-Attention of its own: what it runs is not what is verified here" % (
            ", ".join(copies)), {"note": True}))
    return out


def one_of(id_, dists, title, expected):
    versions = [d.version for d in dists]
    if not dists:
        return (id_, False, "%s is not in this environment" % title, {"versions": []})
    if len(dists) > 1:
        where = ", ".join("%s %s in %s" % (d.metadata["Name"], d.version, os.path.dirname(str(d._path))) for d in dists)
        return (id_, False, "%d of %s are installed: %s; the first in the path wins" % (len(dists), title, where), {"versions": versions})
    public = versions[0].split("+")[0]
    if expected and public != expected.split("+")[0] and not public.startswith(expected.split("+")[0] + ".post"):
        return (id_, False, "%s is %s, chosen was %s" % (dists[0].metadata["Name"], versions[0], expected), {"versions": versions})
    return (id_, True, "%s %s" % (dists[0].metadata["Name"], versions[0]), {"versions": versions})


def files(dist, deep):
    if dist.read_text("RECORD") is None:
        return [("files", True, "%s was installed without a list of its files (editable or by another tool): not compared" % (
            dist.metadata["Name"]), {"note": True})]
    wrong, binaries = files_of(dist, deep)
    text = "%d files are as installed" % len(dist.files or ()) if not wrong else "%s%s" % (
        wrong[0], " (and %d more)" % (len(wrong) - 1) if len(wrong) > 1 else "")
    return [("files", not wrong, text, {"binaries": binaries, "wrong": wrong[:20]})]


def shadow(line, dist, caller_path, caller_dir):
    """Is the module found where its package was installed, and would it be from where the user stands?"""
    module = lines.LINES[line]["modules"][0].split(".")[0]
    for name in lines.LINES[line]["modules"]:
        if found_at(name.split(".")[0]):
            module = name.split(".")[0]
            break
    site = str(dist.locate_file(""))
    where = found_at(module)
    out = []
    if where is None:
        out.append(("found", False, "%s %s is installed, and no module %s is found" % (dist.metadata["Name"], dist.version, module), {}))
    elif not is_below(where, site) and dist.read_text("RECORD") is not None:
        out.append(("found", False, "import %s finds %s, not the %s of %s" % (module, where, dist.metadata["Name"], site), {}))
    else:
        out.append(("found", True, "%s is %s" % (module, where), {}))
    for folder in [p for p in (caller_path or "").split(os.pathsep) if p] + ([caller_dir] if caller_dir else []):
        for name in dict.fromkeys((module, "torch")):
            hit = next((h for h in (os.path.join(folder, name, "__init__.py"), os.path.join(folder, name + ".py")) if os.path.exists(h)), "")
            if hit and not is_below(hit, site):
                out.append(("hidden " + name, True, "%s would be imported instead of the installed %s by a program started in %s" % (
                    hit, name, folder), {"warning": "module_shadowed"}))
    return out
