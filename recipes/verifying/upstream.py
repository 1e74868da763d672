"""Upstream's own tests and benchmark, unmodified, from a folder with its repository: copied into a private folder, so that nothing
of the source tree is in the path and what runs is what is installed. Standard library only; pytest runs in a child (pytests.py)."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from . import lines

BENCHMARK = "benchmarks/benchmark_flash_attention.py"
# Line and back end -> upstream's tests of it.
TESTS = {"fa2": "tests/test_flash_attn.py", "fa2 ck": "tests/test_flash_attn_ck.py", "fa2 triton": "tests/test_flash_attn_triton_amd.py",
         "fa3": "hopper/test_flash_attn.py", "fa4": "tests/cute/test_flash_attn.py"}
ONLY = {"fa2": "for NVIDIA cards", "fa2 ck": "for AMD's Composable Kernel", "fa2 triton": "for AMD's Triton back end"}
MOST_DEATHS = 6
MOST_FAILED = 50   # named one by one; more tell nothing new
LIMIT_TEST_S, LIMIT_COLLECT_S, LIMIT_BENCHMARK_S = 180, 900, 900
AGREES = 0.05      # relative difference of two measurements of one thing in one run
WRONG = 0.25
SHAPE = re.compile(r"### causal=(True|False), headdim=(\d+), batch_size=(\d+), seqlen=(\d+) ###")
SPEED = re.compile(r"(\S+) fwd: ([\d.]+|nan) TFLOPs/s, bwd: ([\d.]+|nan) TFLOPs/s, fwd \+ bwd: ([\d.]+|nan) TFLOPs/s")


def backend(line, hip):
    if line != "fa2" or not hip:
        return line
    return "fa2 triton" if os.environ.get("FLASH_ATTENTION_TRITON_AMD_ENABLE", "FALSE") == "TRUE" else "fa2 ck"


def version_in(folder):
    try:
        with open(os.path.join(folder, "flash_attn", "__init__.py"), encoding="utf-8") as f:
            found = re.search(r'^__version__ = "([^"]+)"', f.read(), re.M)
    except OSError:
        return ""
    return found.group(1) if found else ""


def copy(folder, names, into):
    """The files named and the .py files beside them; returns {name: sha256} of those named that are there."""
    sums = {}
    for name in names:
        source = os.path.join(folder, name)
        if not os.path.isfile(source):
            continue
        there = os.path.join(into, os.path.dirname(name))
        os.makedirs(there, exist_ok=True)
        beside = [f for f in os.listdir(os.path.dirname(source)) if f.endswith(".py") and not f.startswith("conftest")]
        for f in beside if name.startswith("tests/") or name.startswith("hopper/") else [os.path.basename(name)]:
            shutil.copyfile(os.path.join(os.path.dirname(source), f), os.path.join(there, f))
        with open(source, "rb") as f:
            sums[name] = hashlib.sha256(f.read()).hexdigest()
    with open(os.path.join(into, "pytest.ini"), "w", encoding="utf-8") as f:
        f.write("[pytest]\n")   # a root of its own: no configuration from above
    return sums


def rows_of(text):
    """The benchmark's own figures: [{causal, d, b, s, what, forward, backward, both}] in TFLOP/s; NaN, its word for no room, is left out."""
    rows, shape = [], None
    for line in text.splitlines():
        m = SHAPE.search(line)
        if m:
            shape = {"causal": m.group(1) == "True", "d": int(m.group(2)), "b": int(m.group(3)), "s": int(m.group(4))}
        m = SPEED.search(line)
        if m and shape and "nan" not in m.groups():
            rows.append(dict(shape, what=m.group(1), forward=float(m.group(2)), backward=float(m.group(3)), both=float(m.group(4))))
    return rows


def compare(theirs, mine):
    """Rows of both for the same shapes, with the ratio ours / upstream's of each direction."""
    out = []
    for t in theirs:
        m = next((x for x in mine if all(x[k] == t[k] for k in ("causal", "d", "b", "s"))), None)
        if t["what"] != "Flash2" or m is None:
            continue
        row = {k: t[k] for k in ("causal", "d", "b", "s")}
        for k in ("forward", "backward", "both"):
            if t[k] > 0:
                row[k] = {"upstream": t[k], "here": round(m[k], 2), "ratio": round(m[k] / t[k], 4)}
        out.append(row)
    return out


def differences(compared):
    """(how far off, the row, which figure), the furthest last."""
    return sorted(((abs(r[k]["ratio"] - 1), r, k) for r in compared for k in ("forward", "backward", "both") if k in r), key=lambda d: d[0])


def shape_words(r):
    return "d%d, %d x %s tokens%s" % (r["d"], r["b"], format(r["s"], ","), ", causal" if r["causal"] else "")


class Upstream:
    """The stage. `book` and `tell` as in supervisor.py; measure(shapes) -> rows of our own harness, [] when it could not."""

    def __init__(self, o, book, tell, work, card, profile, start_worker):
        self.o, self.book, self.tell, self.work, self.card, self.profile, self.start_worker = o, book, tell, work, card, profile, start_worker
        self.figures = {"tests": [], "benchmark": [], "agreement": []}
        self.deaths = 0

    def check(self, id_, status, text, since, **data):
        self.book.check("upstream", id_, status, text, time.monotonic() - since, data=data)

    def run(self, measure):
        self.book.stage("upstream")
        since, folder = time.monotonic(), self.o.upstream
        if not folder:
            self.check("repository", "not_run", self.o.upstream_why or "needs upstream's repository in a folder", since)
            return
        if not os.path.isdir(os.path.join(folder, "tests")) and not os.path.isdir(os.path.join(folder, "benchmarks")):
            self.check("repository", "not_run", "%s holds neither tests nor benchmarks: needs upstream's repository (the source archive has no "
                       "benchmarks)" % folder, since)
            return
        with tempfile.TemporaryDirectory(prefix="fainstall-upstream-") as private:
            names = [TESTS[k] for k in TESTS if k.split()[0] == self.o.line] + [BENCHMARK] * (self.o.line == "fa2")
            sums = copy(folder, names, private)
            self.repository(folder, sums, since)
            chosen = backend(self.o.line, self.card.get("hip"))
            for key, name in TESTS.items():
                if key.split()[0] != self.o.line:
                    continue
                since = time.monotonic()
                if key != chosen:
                    self.check(name, "skipped", "only %s" % ONLY[key], since)
                elif name not in sums:
                    self.check(name, "not_run", "needs %s, which %s does not have" % (name, folder), since)
                else:
                    self.tests(private, name, since)
            if self.o.line == "fa2" and BENCHMARK in sums:
                self.benchmark(private, measure)
            elif self.o.line == "fa2":
                self.check(BENCHMARK, "not_run", "needs %s, which %s does not have" % (BENCHMARK, folder), time.monotonic())

    def repository(self, folder, sums, since):
        has, version = version_in(folder), self.work.get("version", "")
        text = "%s%s; %d files run unmodified, outside it" % (self.o.upstream_from or folder, ", version %s" % has if has else "", len(sums))
        if has and version and version.split("+")[0].split(".post")[0] != has.split(".post")[0]:
            self.tell("warning", id="upstream_other_version", text="upstream's tests are those of %s, installed is %s" % (has, version))
        self.check("repository", "ok", text, since, sha256=sums)

    # ---- tests

    def tests(self, private, name, since):
        if subprocess.run([sys.executable, "-c", "import pytest"], capture_output=True, stdin=subprocess.DEVNULL, check=False,
                          cwd=private).returncode:
            self.check(name, "not_run", "needs pytest in this environment: %s -m pip install pytest" % sys.executable, since)
            return
        # A run that dies goes on behind the test that did it.
        count = {"passed": 0, "failed": 0, "skipped": 0, "refused": 0}
        plan, errors, done = {}, [], 0
        limit = self.o.limit or LIMIT_TEST_S
        while True:
            w = self.start_worker({"pytest": name, "folder": private, "start": done, "tests": self.o.upstream_tests, "line": self.o.line,
                                   "profile": self.profile, "most_failed": MOST_FAILED - count["failed"]}, private)
            at, how = None, ""
            try:
                while True:
                    m = w.next(limit if at else LIMIT_COLLECT_S)
                    if m is None:
                        break
                    if m["kind"] == "plan":
                        plan = plan or m
                    elif m["kind"] == "begin":
                        at = m["id"]
                    elif m["kind"] == "error":
                        errors.append(m["text"])
                    elif m["kind"] == "end":
                        at, done = None, done + 1
                        count[m["status"]] += 1
                        self.progress(done, plan["chosen"])
                        if m["status"] == "failed":
                            self.check(m["id"], "failed", m["text"], time.monotonic() - m["seconds"])
            except TimeoutError:
                w.stop()
                how = "hung: no answer within %d s" % (limit if at else LIMIT_COLLECT_S)
            status = w.wait() if not how else 0
            if at:
                count["failed"] += 1
                done += 1
                self.check(at, "failed", how or ended(status), time.monotonic())
            if at or status == 86:
                self.deaths += 1
            stopped = count["failed"] >= MOST_FAILED or self.deaths >= MOST_DEATHS
            if not (at or status == 86) or stopped or not plan or done >= plan["chosen"]:
                break
        self.close_tests(name, since, plan, count, errors, done, how or ended(status))

    def close_tests(self, name, since, plan, count, errors, done, how):
        if not plan or errors:
            self.check(name, "failed", "could not be collected: %s" % (errors[0] if errors else how), since)
            return
        seconds = time.monotonic() - since
        left = plan["left_out"]
        row = dict(count, file=name, chosen=plan["chosen"], of=plan["of"], left_out=left, seconds=round(seconds, 1), functions=plan["functions"])
        self.figures["tests"].append(row)
        text = "%s passed, %s failed, %s skipped by itself" % tuple(format(count[k], ",") for k in ("passed", "failed", "skipped"))
        text += "; %s refused in words, as this build lacks it" % format(count["refused"], ",") if count["refused"] else ""
        text += "; chosen %s of %s in %d functions" % (format(plan["chosen"], ","), format(plan["of"], ","), len(plan["functions"]))
        if left:
            text += "; %s left out with this build (%s)" % (format(sum(left.values()), ","), ", ".join(
                "%s %s" % (k, format(left[k], ",")) for k in sorted(left, key=lambda k: -left[k])))
        if done < plan["chosen"]:
            text += "; stopped after %s of them: %s" % (format(done, ","), "%d failures" % count["failed"] if self.deaths < MOST_DEATHS else how)
        ran = count["passed"] + count["failed"]
        self.check(name, "failed" if count["failed"] or done < plan["chosen"] else "ok" if ran else "not_run", text, since, tests=row)

    def progress(self, done, total):
        self.tell("progress", stage="upstream", done=done, total=total)

    # ---- benchmark

    def benchmark(self, private, measure):
        since = time.monotonic()
        needs = [dict(op="dense", dtype="fp16", d=d, backward=True) for d in (64, 128)]
        lacks = list(dict.fromkeys(w for w in (lines.lack(self.o.line, self.profile, c) for c in needs) if w))
        if lacks:
            self.check(BENCHMARK, "not_run", "it measures fp16 with head dims 64 and 128, forward and backward; this build was made without %s"
                       % " and ".join(lacks), since)
            return
        try:
            text, status, tail = self.run_benchmark(private)
        except subprocess.TimeoutExpired:
            self.check(BENCHMARK, "failed", "did not end within %d s" % LIMIT_BENCHMARK_S, since)
            return
        rows = rows_of(text)
        self.figures["benchmark"] = rows
        mine = [r for r in rows if r["what"] == "Flash2"]
        if status or not mine:
            self.check(BENCHMARK, "failed", "%s: %s" % (ended(status) if status else "printed no figures", tail), since, rows=rows)
            return
        best = {k: max(r[k] for r in mine) for k in ("forward", "backward", "both")}
        self.check(BENCHMARK, "ok", "%d shapes; at most %.0f TFLOP/s forward, %.0f backward, %.0f both" % (
            len(mine), best["forward"], best["backward"], best["both"]), since, rows=rows)
        self.agreement(mine, measure)

    def run_benchmark(self, private):
        env = dict(os.environ, PYTHONUNBUFFERED="1")
        started, out, count = time.monotonic(), [], 0
        p = subprocess.Popen([sys.executable, os.path.join(private, BENCHMARK)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             stdin=subprocess.DEVNULL, env=env, cwd=private, start_new_session=True)
        try:
            for line in p.stdout:
                out.append(line)
                if SHAPE.search(line):
                    count += 1
                    self.progress(count, 24)
                if time.monotonic() - started > LIMIT_BENCHMARK_S:
                    raise subprocess.TimeoutExpired(p.args, LIMIT_BENCHMARK_S)
            status = p.wait(60)
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()
        last = next((x.strip() for x in reversed(out) if x.strip()), "")
        return "".join(out), status, last[:300]

    def agreement(self, theirs, measure):
        """The same shapes by our own harness, at once: do two ways of measuring agree?"""
        since = time.monotonic()
        if self.o.device == "cpu":
            self.check("agreement", "not_run", "needs a card", since)
            return
        rows = measure([{k: r[k] for k in ("causal", "d", "b", "s")} for r in theirs])
        compared = compare(theirs, rows)
        off = differences(compared)
        self.figures["agreement"] = compared
        if not off:
            self.check("agreement", "not_run", "our own harness measured none of these shapes", since)
            return
        worst, r, k = off[-1]
        middle = off[len(off) // 2][0]
        near = sum(x[0] <= AGREES for x in off)
        text = "%d of %d figures within 5 %% of upstream's own, half of them within %.1f %%; furthest: %s %s, %.0f TFLOP/s there, %.0f here (%.1f %%)" % (
            near, len(off), 100 * middle, shape_words(r), k, r[k]["upstream"], r[k]["here"], 100 * worst)
        if near < len(off):
            self.tell("note", id="upstream_speed_differs", text="%d of %d figures are more than 5 %% from upstream's own benchmark in this run"
                      % (len(off) - near, len(off)))
        self.check("agreement", "ok" if middle <= AGREES and worst <= WRONG else "failed", text, since, compared=compared,
                   largest=round(worst, 4), median=round(middle, 4), within=near, of=len(off))


def ended(status):
    return "the process ended with status %d" % status if status >= 0 else "the process was ended by signal %d" % -status


def summary(figures):
    """The stage in words, from what was run."""
    parts = []
    for t in figures["tests"]:
        parts.append("%s: %s of %s passed, %s skipped" % (t["file"], format(t["passed"], ","), format(t["chosen"], ","), format(t["skipped"], ",")))
    off = differences(figures["agreement"])
    if off:
        parts.append("its benchmark and ours differ by at most %.1f %%" % (100 * off[-1][0]))
    elif figures["benchmark"]:
        parts.append("%d figures of its benchmark" % len(figures["benchmark"]))
    return "; ".join(parts)



