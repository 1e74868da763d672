#!/usr/bin/env python3
"""Which ready file of Flash-Attention fits this Python, torch and card, and what speaks against each other one?

    python check_flash_attn.py                 this machine; run it with the Python that has the torch
    python check_flash_attn.py --all           every file, not only those of the last torch that could fit
    python check_flash_attn.py --facts FILE    a machine described by `fainstall detect --json`
    python check_flash_attn.py --json

Needs nothing but the standard library; torch is asked where it is there. Installs nothing, opens no connection. Exit status: 0: a file
fits; 3: none does; 4: this machine cannot be judged (no torch).
Written by `fainstall recipe export check`: rules and files are the knowledge of the day named below."""

import argparse
import json
import os
import platform
import re
import subprocess
import sys

DATA = None


# ---- versions and rules, as fainstall reads them

def version_key(text):
    """2.8.3rc1 < 2.8.3 < 2.8.3.post1 < 2.8.4; a local label does not count."""
    out = []
    for part in re.findall(r"\d+|[a-z]+", text.split("+")[0].lower()):
        if part.isdigit():
            out.append((1, int(part)))
        else:
            out.append((1, 0.5) if part == "post" else (0, part))
    return out


def compare(a, b):
    a, b = version_key(a), version_key(b)
    for x, y in zip(a + [(1, 0)] * (len(b) - len(a)), b + [(1, 0)] * (len(a) - len(b))):
        if x != y:
            return -1 if x < y else 1
    return 0


OPS = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "<": lambda a, b: compare(a, b) < 0, "<=": lambda a, b: compare(a, b) <= 0,
    ">": lambda a, b: compare(a, b) > 0, ">=": lambda a, b: compare(a, b) >= 0,
    "in": lambda a, b: bool(words(a) & words(b)),
    "has": lambda a, b: words(b) <= words(a), "lacks": lambda a, b: not words(b) & words(a),
}


def words(text):
    return set(re.split(r"[ ,]+", text.strip())) - {""}


def test(rule, v):
    """(True, False or None for unknown, needed, found) of `fact op value and …`."""
    result = (True, "", "")
    for term in rule.split(" and ") if rule else []:
        fact, op, *rest = term.split(None, 2)
        a = v.get(fact)
        if op in ("known", "unknown"):
            truth, b = (a is not None) == (op == "known"), ""
        else:
            b = v.get(rest[0][1:]) if rest[0].startswith("$") else "" if rest[0] == '""' else rest[0]
            truth = None if a is None or b is None else OPS[op](a, b)
        if truth is False:
            return False, ("%s %s" % (op, b)) if op in OPS and op not in ("==", "in", "has") else b, a
        if truth is None and result[0]:
            result = (None, b, a)
    return result


def broken(on, v):
    """The first rule of this kind that is broken: (id, needed, found, text); None: none is."""
    for id_, when, need, text in DATA["rules"][on]:
        if test(when, v)[0] is not True:
            continue
        truth, needed, found = test(need, v)
        if truth is False:
            return id_, needed, found or "none", text
    return None


# ---- this machine

def run(*argv, seconds=20):
    try:
        p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return p.stdout.decode("utf-8", "replace") if p.returncode == 0 else ""


def torch_here():
    """What torch says of itself; in a process of its own, as a broken one may end it."""
    code = ("import json, torch\nc = torch.cuda\nd = {'version': str(torch.__version__), 'cuda': torch.version.cuda, 'hip': torch.version.hip,"
            "'abi': bool(torch.compiled_with_cxx11_abi()), 'cards': []}\n"
            "if c.is_available():\n for i in range(c.device_count()):\n  p = c.get_device_properties(i)\n"
            "  d['cards'].append([p.name, getattr(p, 'gcnArchName', '').split(':')[0] if torch.version.hip else '%d%d' % (p.major, p.minor)])\n"
            "print(json.dumps(d))")
    try:
        return json.loads(run(sys.executable, "-c", code, seconds=180).strip().split("\n")[-1])
    except ValueError:
        return torch_by_its_file()


def torch_by_its_file():
    """A torch that cannot be imported is there all the same; its C++ ABI stays unknown then."""
    for folder in sys.path:
        try:
            with open(os.path.join(folder, "torch", "version.py"), encoding="utf-8") as f:
                said = dict(re.findall(r"^(__version__|cuda|hip)\b[^=]*= *'([^']*)'", f.read(), re.M))
        except OSError:
            continue
        if "__version__" in said:
            return {"version": said["__version__"], "cuda": said.get("cuda"), "hip": said.get("hip"), "abi": None, "cards": []}
    return None


def facts_here():
    t = torch_here()
    f = {"os": {"Linux": "linux", "Windows": "windows", "Darwin": "darwin"}.get(platform.system(), platform.system().lower()),
         "machine": {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine()),
         "python": platform.python_version(),
         "python_abi": "cp%d%d%s" % (sys.version_info[0], sys.version_info[1], getattr(sys, "abiflags", "")), "gpus": []}
    libc = platform.libc_ver()
    if libc[0] == "glibc":
        f["glibc"] = libc[1]
    for line in run("nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader").splitlines():
        name, cap, driver = (x.strip() for x in line.rsplit(",", 2))
        f["gpus"].append({"vendor": "nvidia", "name": name, "arch": cap.replace(".", "")})
        f["driver"] = driver
    if t:
        f.update(torch=t["version"], torch_cuda=t["cuda"] or "", torch_hip=t["hip"] or "")
        if t["abi"] is not None:
            f["torch_cxx11abi"] = t["abi"]
        if t["cards"]:
            f["gpus"] = [{"vendor": "amd" if t["hip"] else "nvidia", "name": n, "arch": a} for n, a in t["cards"]]
    return f


# ---- judging

def values_of(f):
    """The names that rules speak of."""
    v = {k: f[k] for k in ("os", "machine", "glibc", "driver") if isinstance(f.get(k), str)}
    python, abi = f.get("python") or "", f.get("python_abi") or ""
    if python:
        v["python_minor"] = ".".join(python.split(".")[:2])
        v["free_threaded"] = "yes" if abi.endswith("t") else "no"
        v["python_tag"] = v["python_minor"].replace(".", "") + ("t" if abi.endswith("t") else "")
    torch = f.get("torch") or ""
    if torch:
        public = torch.split("+")[0]
        v["torch_version"], v["torch_minor"] = public, ".".join(public.split(".")[:2])
        v["torch_is_release"] = "yes" if re.match(r"^[0-9.]+$", public) and ".nv" not in torch and "git" not in torch else "no"
        cuda, hip = f.get("torch_cuda") or "", f.get("torch_hip") or ""
        v["torch_vendor"] = "nvidia" if cuda else "amd" if hip else "none"
        if cuda:
            v["build_cuda"], v["build_cuda_major"] = cuda, cuda.split(".")[0]
        if "torch_cxx11abi" in f:
            v["torch_abi"] = "new" if f["torch_cxx11abi"] else "old"
    cards = [g for g in f.get("gpus") or [] if g.get("arch")]
    if cards:
        v["vendor"] = cards[0].get("vendor", "nvidia")
    return v, cards


def with_file(v, row):
    w = dict(v)
    for key, value in zip(DATA["columns"], row):
        if value is not None:
            w[key] = value
    line = DATA["lines"].get(w["line"], {})
    release = DATA["releases"].get(w["line"] + " " + w["version"], {})
    w.update({k: x for k, x in line.items() if k not in w})
    w.update({k: x for k, x in release.items() if k not in w})
    w["route"] = "wheel"
    return w


def judge(v, cards, row):
    """None: nothing speaks against it; else (rule, needed, found, text)."""
    w = with_file(v, row)
    why = broken("file", w) or broken("release", w)
    if why or not cards:
        return why
    last = None
    for c in cards:
        x = dict(w, arch=c["arch"], card_codes=DATA["archs"].get(c["arch"], c["arch"]), vendor=c.get("vendor", "nvidia"))
        last = broken("release_card", x) or broken("file_card", x)
        if last is None:
            return None
    return last


def name_of(row, v):
    tag = v.get("python_tag", "")
    name = row[DATA["columns"].index("name")] or ""
    return name.replace("cp777t", "cp" + tag).replace("cp777", "cp" + tag.rstrip("t"))


def url_of(row, v):
    url = row[DATA["columns"].index("url")]
    tag = v.get("python_tag", "")
    return url.replace("cp777t", "cp" + tag).replace("cp777", "cp" + tag.rstrip("t")) if url else ""


def look(f, everything):
    v, cards = values_of(f)
    place = {k: i for i, k in enumerate(DATA["columns"])}
    fits, against = [], []
    for row in DATA["files"]:
        why = judge(v, cards, row)
        entry = {"line": row[place["line"]], "version": row[place["version"]], "source": row[place["source"]], "file": name_of(row, v),
                 "url": url_of(row, v), "order": row[place["order"]]}
        if why is None:
            fits.append(entry)
        elif everything or why[0] not in ("platform", "machine", "python"):
            against.append(dict(entry, rule=why[0], needed=why[1], found=why[2], text=why[3]))
    fits.sort(key=lambda e: version_key(e["version"]), reverse=True)
    fits.sort(key=lambda e: (e["line"], e["order"]))   # upstream's own before others'
    return v, cards, fits, against


def tell(v, cards, fits, against, everything):
    print("Python %s, torch %s%s, %s; knowledge of %s" % (
        v.get("python_minor", "?"), v.get("torch_version", "none"), " (CUDA %s)" % v["build_cuda"] if "build_cuda" in v else "",
        ", ".join("%s (%s)" % (c.get("name", "card"), c["arch"]) for c in cards) or "no card seen: whether the code runs on yours is not judged",
        DATA["checked"]))
    if not fits:
        print("No ready file fits. Build it from source, or take another torch: the reasons below say which.")
    for e in fits[:12]:
        print("fits: %s %s, %s\n      %s" % (e["line"], e["version"], e["source"], e["url"] or e["file"]))
    reasons = {}
    for e in against:
        reasons.setdefault((e["line"], e["rule"], e["needed"], e["found"], e["text"]), []).append(e)
    most = sorted(reasons.items(), key=lambda x: -len(x[1]))
    for (line, rule, needed, found, text), es in most if everything else most[:12]:
        print("not %s, %d files: %s, needed %s, found %s (%s)%s" % (line, len(es), rule, needed, found, text, "".join(
            "\n      " + e["file"] for e in (es if everything else es[:1]))))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--facts", metavar="FILE", help="a machine described by `fainstall detect --json`")
    p.add_argument("--all", action="store_true", help="every file and every reason")
    p.add_argument("--json", action="store_true")
    o = p.parse_args()
    if o.facts:
        with open(o.facts, encoding="utf-8") as file:
            facts = json.load(file)
    else:
        facts = facts_here()
    v, cards, fits, against = look(facts, o.all)
    if "torch_version" not in v:
        print("There is no torch in this Python (%s), or it cannot be imported: a file is built for one torch. Install torch first." % (
            os.path.basename(sys.executable) if not o.facts else o.facts), file=sys.stderr)
        return 4
    if o.json:
        print(json.dumps({"schema": "fainstall.check/1", "values": v, "fits": fits, "against": against}, indent=1))
    else:
        tell(v, cards, fits, against, o.all)
    return 0 if fits else 3


if __name__ == "__main__":
    sys.exit(main())
