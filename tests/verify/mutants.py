#!/usr/bin/env python3
"""Runs recipes/verify.py against the stand-in of standin/, good and with each planted fault. Needs an interpreter with torch; no card.

usage: mutants.py [-j N] [NAME…]        (all of them without a name; N at a time)"""

import base64
import concurrent.futures
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VERIFY = os.path.join(HERE, "..", "..", "recipes", "verify.py")

# name of the fault -> the stage that must fail, and a word that must stand in what it says
FAULTS = {
    "scale": ("numbers", "error"),
    "causal_shifted": ("numbers", "error"),
    "window_off_by_one": ("numbers", "error"),
    "gqa_heads": ("numbers", "error"),
    "dropout_ignored": ("numbers", "dropped"),
    "alibi_negated": ("numbers", "error"),
    "softcap_ignored": ("numbers", "error"),
    "dv_wrong": ("numbers", "dv"),
    "dk_dropped": ("numbers", "dk"),
    "nondeterministic": ("numbers", "differs from run to run"),
    "nan_tail": ("numbers", "error"),
    "lse_wrong": ("numbers", "logsumexp"),
    "varlen_neighbour": ("numbers", "error"),
    "kv_swapped": ("numbers", "error"),
    "cache_one_too_many": ("numbers", "error"),
    "append_lost": ("numbers", "cache"),
    "rotary_halves": ("numbers", "error"),
    "page_table_ignored": ("numbers", "error"),
    "other_device": ("numbers", "device is meta"),
    "wrong_dtype": ("numbers", "dtype"),
    "math": ("used", "math"),
    "memory": ("speed", "like standard attention|standard attention"),
    "slow": ("speed", "x the time of torch's own flash kernel"),
    "segfault": ("numbers", "SIGSEGV"),
    "illegal_access": ("numbers", "illegal memory access"),
    "hang": ("numbers", "hung"),
    "import_dies": ("import", "SIGSEGV"),
    "import_error": ("import", "undefined symbol"),
    "swapped_package": ("environment", "another file"),
    "file_gone": ("environment", "is gone"),
    "two_packages": ("environment", "are installed"),
    "left_out_silently": ("numbers", "without a word"),
}
# Of upstream's own tests, in tests/verify/upstream: what must be said. Needs pytest.
UPSTREAM = {
    "upstream good": "",
    "upstream wrong": "AssertionError: planted",
    "upstream dies": "ended by signal 11",
    "upstream illegal": "illegal memory access",
    "upstream hangs": "hung: no answer",
}
# Faults whose cases are not in --quick, and which cases show them.
NEED_NORMAL = {"lse_wrong": "lse", "kv_swapped": "kvpacked", "append_lost": "append", "rotary_halves": "rotary",
               "page_table_ignored": "paged"}
GO_ON = {"segfault", "illegal_access", "hang"}   # one case dies, the others must still be run


def make_site(folder, fault):
    """The stand-in as an installed distribution, with the hashes of its files."""
    shutil.copytree(os.path.join(HERE, "standin", "flash_attn"), os.path.join(folder, "flash_attn"),
                    ignore=shutil.ignore_patterns("__pycache__"))
    info = os.path.join(folder, "flash_attn-2.8.3.dist-info")
    os.mkdir(info)
    with open(os.path.join(info, "METADATA"), "w") as f:
        f.write("Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.8.3\n")
    path = os.path.join(folder, "flash_attn", "__init__.py")
    with open(path, "rb") as f:
        data = f.read()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    with open(os.path.join(info, "RECORD"), "w") as f:
        f.write("flash_attn/__init__.py,sha256=%s,%d\nflash_attn-2.8.3.dist-info/RECORD,,\n" % (digest, len(data)))
        if fault == "file_gone":
            f.write("flash_attn_2_cuda.so,sha256=%s,100\n" % digest)
    if fault == "swapped_package":
        with open(path, "wb") as f:
            f.write(data.replace(b"2.8.3", b"2.8.4", 1))
    if fault == "two_packages":
        shutil.copytree(info, os.path.join(folder, "flash_attn-2.7.4.dist-info"))
    if fault in ("left_out_silently", "left_out_honestly"):
        with open(os.path.join(info, "fainstall.json"), "w") as f:
            json.dump({"profile": "training", "dtypes": ["bf16"], "head_dims": ["128"], "backward": True, "features": "all"}, f)


# Later lines, each with the faults that its cases can show.
LINES = {"fa3": ["", "scale", "causal_shifted", "gqa_heads", "varlen_neighbour", "append_lost", "left_out_silently"],
         "fa4": ["", "scale", "causal_shifted", "window_off_by_one", "gqa_heads", "dv_wrong", "varlen_neighbour", "lse_wrong"]}


def make_later_site(folder, line):
    """FA3's or FA4's modules, with the numbers of the stand-in of FA2 inside."""
    name, version, package = {"fa3": ("flash_attn_3", "3.0.0", ""), "fa4": ("flash_attn_4", "4.0.0b36", "flash_attn/cute")}[line]
    shutil.copytree(os.path.join(HERE, "standin", line), os.path.join(folder, package) if package else folder, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    numbers = "flash_attn/cute/numbers.py" if line == "fa4" else "flash_attn_3_numbers.py"
    shutil.copyfile(os.path.join(HERE, "standin", "flash_attn", "__init__.py"), os.path.join(folder, numbers))
    info = os.path.join(folder, "%s-%s.dist-info" % (name, version))
    os.mkdir(info)
    with open(os.path.join(info, "METADATA"), "w") as f:
        f.write("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name.replace("_", "-"), version))
    with open(os.path.join(info, "RECORD"), "w") as f:
        f.write("%s,,\n%s-%s.dist-info/RECORD,,\n" % (numbers, name, version))


def verify(fault, arguments, line="fa2"):
    with tempfile.TemporaryDirectory() as folder:
        if line == "fa2":
            make_site(folder, fault)
        else:
            make_later_site(folder, line)
        upstream = fault.split()[1] if fault in UPSTREAM else ""
        paths = [folder] + [p for p in [os.environ.get("PYTESTS", "")] if p]
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), FA_FAULT="" if upstream else fault, FA_UPSTREAM_FAULT=upstream, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        started = time.monotonic()
        p = subprocess.run([sys.executable, VERIFY, "--device", "cpu", "--small"] + arguments, capture_output=True, text=True, env=env,
                           timeout=600, check=False)
        lines = [json.loads(x) for x in p.stdout.splitlines()]
        return p.returncode, lines, p.stderr, time.monotonic() - started


def failures(lines):
    return [x for x in lines if x["kind"] == "check" and x["status"] == "failed"]


def judge(fault):
    """"" when verify.py does what it should, else what is wrong with it."""
    if fault in UPSTREAM:
        return judge_upstream(fault)
    if fault.split()[0:1] and fault.split()[0] in LINES:
        return judge_line(*fault.split())
    quick = [] if fault == "good, normal" else ["--quick"]
    if fault in NEED_NORMAL:
        quick = ["--only", "numbers/.*" + NEED_NORMAL[fault]]
    if fault not in ("memory", "slow", "", "good, normal"):
        quick.append("--no-speed")
    if fault == "hang":
        quick += ["--limit", "6"]
    code, lines, err, seconds = verify("" if fault == "good, normal" else fault, quick)
    bad = failures(lines)
    said = "; ".join("%s/%s: %s" % (x["stage"], x["id"], x["text"]) for x in bad)[:500]
    if not lines or lines[-1]["kind"] != "done":
        return "no last line; stderr: %s" % err[-500:], seconds
    if fault in ("", "good, normal"):
        ran = sum(x["kind"] == "check" and x["stage"] == "numbers" for x in lines)
        return ("" if code == 0 and not bad and ran > 10 else "false alarm (%d, %d cases): %s" % (code, ran, said)), seconds
    stage, word = FAULTS[fault]
    hits = [x for x in bad if x["stage"] == stage and any(w in x["text"] for w in word.split("|"))]
    if code != 1 or not hits:
        return "not caught: exit %d, %s" % (code, said or "no failure"), seconds
    if fault in GO_ON:
        after = [x for x in lines[lines.index(hits[0]) + 1:] if x["kind"] == "check" and x["stage"] == "numbers" and x["status"] == "ok"]
        if len(after) < 3 or hits[0].get("case", {}).get("d") != 80:
            return "the run did not go on after it, or the wrong case was named: %s" % said, seconds
    return "", seconds


def judge_line(line, fault):
    """A fault of a later line is caught by the stage meant for it; a good one passes, and what it does not have is said."""
    fault = "" if fault == "good" else fault
    code, lines, err, seconds = verify(fault, ["--full", "--no-speed", "--only", "environment|import|kernels|numbers"] if line == "fa4" else [
        "--no-speed", "--only", "environment|import|kernels|numbers"], line)
    bad = failures(lines)
    said = "; ".join("%s/%s: %s" % (x["stage"], x["id"], x["text"]) for x in bad)[:500]
    if not lines or lines[-1]["kind"] != "done":
        return "no last line; stderr: %s" % err[-500:], seconds
    if not fault:
        absent = [x["text"] for x in lines if x.get("id") == "not in this line"]
        wanted = "ALiBi" if line == "fa3" else "a KV cache"
        ran = sum(x["kind"] == "check" and x["stage"] == "numbers" and x["status"] == "ok" for x in lines)
        return ("" if code == 0 and ran > 10 and absent and wanted in absent[0] else "exit %d, %d cases, %s: %s" % (
            code, ran, absent, said)), seconds
    stage, word = FAULTS[fault]
    hit = any(x["stage"] == stage and any(w in x["text"] for w in word.split("|")) for x in bad)
    return "" if code == 1 and hit else "not caught: exit %d, %s" % (code, said or "no failure"), seconds


def judge_upstream(fault):
    """Each test but the faulty one is run, and that one is named."""
    code, lines, err, seconds = verify(fault, ["--only", "upstream", "--upstream", os.path.join(HERE, "upstream"), "--limit", "15"])
    bad = [x["text"] for x in failures(lines) if "::test_flash_attn_last[dtype0-64]" in x["id"]]
    tests = next(iter(next((x for x in lines if x["kind"] == "figures"), {}).get("upstream", {}).get("tests", [])), {})
    word, wrong = UPSTREAM[fault], int(bool(UPSTREAM[fault]))
    if code != wrong or (tests.get("passed"), tests.get("failed"), tests.get("skipped")) != (82 - wrong, wrong, 16):
        return "exit %d, %s; stderr: %s" % (code, tests, err[-300:]), seconds
    return "" if not word or any(word in x for x in bad) else "not named: %s" % bad, seconds


def has_pytest():
    path = os.environ.get("PYTESTS", "")
    return subprocess.run([sys.executable, "-c", "import pytest"], env=dict(os.environ, PYTHONPATH=path), capture_output=True,
                          check=False).returncode == 0


def main():
    arguments = sys.argv[1:]
    jobs = int(arguments.pop(1)) if arguments[:1] == ["-j"] else 1
    if arguments[:1] and sys.argv[1] == "-j":
        arguments.pop(0)
    names = arguments or [""] + list(FAULTS) + ["good, normal"]
    if not arguments:
        names += ["%s %s" % (line, f or "good") for line in LINES for f in LINES[line]] + (list(UPSTREAM) if has_pytest() else [])
    if not arguments and not has_pytest():
        print("upstream's: not run, no pytest (PYTESTS=FOLDER names one)")
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, (why, seconds) in zip(names, pool.map(judge, names)):
            wrong += bool(why)
            print("%s %-20s %5.1f s  %s" % ("FAIL" if why else "ok  ", name or "good", seconds, why), flush=True)
    print("%d of %d as they should be" % (len(names) - wrong, len(names)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
