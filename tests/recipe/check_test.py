"""The script of `recipe export check` against the resolver, on recorded hosts; on the first one with other torches, Pythons and cards
put in. Where the plan takes a file, the script must find it too and put none of another version before it; where the plan finds none,
the script must not either. check_test.py FAINSTALL HOST…"""

import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile


def ask(*argv):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return p.returncode, p.stdout.decode()


def load(fainstall, folder):
    path = folder + "/check_flash_attn.py"
    status, text = ask(fainstall, "recipe", "export", "check")
    assert status == 0, "recipe export check: exit %d" % status
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    spec = importlib.util.spec_from_file_location("check_flash_attn", path)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


TORCHES = [("2.4.1", "12.1", False), ("2.6.0", "12.4", False), ("2.7.1", "12.8", True), ("2.8.0", "12.8", True), ("2.9.1", "13.0", True),
           ("2.11.0", "13.0", True), ("2.15.0", "13.2", True)]


def variations():
    """(torch, cuda, abi), python, arch: a few that differ in each."""
    for torch, (python, arch, line) in itertools.product(TORCHES, [("3.10.4", "86", "fa2"), ("3.12.3", "90", "fa3"), ("3.13.1", "120", "fa2"),
                                                                   ("3.12.3", "75", "fa2")]):
        yield torch, python, arch, line


def sets_of(torch, python, arch):
    version, cuda, abi = torch
    tag = "cp" + "".join(python.split(".")[:2])
    words = ["torch=%s+cu%s" % (version, cuda.replace(".", "")), "torch_cuda=" + cuda, "torch_cxx11abi=" + ("true" if abi else "false"),
             "python=" + python, "python_abi=" + tag, "gpus.0.arch=" + arch]
    return [x for w in words for x in ("--set", w)]


def compare(check, fainstall, host, more, line):
    status, text = ask(fainstall, "plan", "--json", "--host", host, "--route", "wheel", "--line", line, "--keep-torch", *more)
    plan = json.loads(text)
    _, text = ask(fainstall, "detect", "--json", "--host", host, *more)
    facts = json.loads(text)
    v, _, fits, _ = check.look(facts, True)
    fits = [e for e in fits if e["line"] == line]
    if "torch_version" not in v:
        return None, ""
    wheel = plan["choice"].get("wheel", {}).get("name") if plan["choice"].get("route") == "wheel" else None
    if plan["status"] == "action" or plan["choice"].get("route") == "keep":   # it is there already, or something else must change first
        return None, ""
    if not wheel:
        return not fits, "the plan takes no file, the script %s" % (fits[0]["file"] if fits else "neither")
    names = [e["file"] for e in fits]
    ok = wheel in names and check.compare(fits[0]["version"], plan["choice"]["flash_attn"]) == 0
    return ok, "the plan takes %s, the script %s of %d" % (wheel, names[0] if names else "none", len(names))


def main():
    fainstall, hosts = sys.argv[1], sys.argv[2:]
    asked, answered, taken, wrong = 0, 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        check = load(fainstall, folder)
        for host in hosts:
            todo = [([], line) for line in ("fa2", "fa3", "fa4")]
            todo += [(sets_of(t, p, a), line) for t, p, a, line in variations()] if host == hosts[0] else []
            for more, line in todo:
                asked += 1
                ok, text = compare(check, fainstall, host, more, line)
                answered += ok is not None
                taken += "the plan takes no" not in text and ok is not None
                if ok is False:
                    wrong.append("%s %s %s: %s" % (host, line, " ".join(more[1::2]), text))
    for w in wrong[:20]:
        print(w)
    print("%d asked, %d answered by both (%d with a file), %d differ" % (asked, answered, taken, len(wrong)))
    failed = len(wrong) + (taken < 5)
    print("%d passed, %d failed" % (answered - len(wrong), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
