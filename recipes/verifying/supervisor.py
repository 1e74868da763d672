"""Runs the stages: the first itself, the others in a worker that it watches. Prints what happens; decides the exit status."""

import argparse
import glob
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time

from . import cases, environment, lines, upstream, verdict

STAGES = ("environment", "import", "symbols", "kernels", "numbers", "used", "speed")   # and "upstream", where asked for
MOST_DEATHS = 6   # of the worker; then the rest is not run
MARKS = {"ok": "✓", "failed": "✗", "not_run": "-", "skipped": "-"}


def options_of(argv):
    p = argparse.ArgumentParser(prog="verify.py", description="Is the Flash-Attention of this environment right, used and fast?")
    mode = p.add_mutually_exclusive_group()
    mode.add_argument("--quick", action="store_const", dest="mode", const="quick", help="15 s: each thing once")
    mode.add_argument("--full", action="store_const", dest="mode", const="full", help="2 min: 300 cases and more, every size")
    p.add_argument("--line", choices=sorted(lines.LINES), help="default: the first of fa2, fa3, fa4 that is installed")
    p.add_argument("--text", action="store_true", help="lines for people instead of JSON")
    p.add_argument("--strict", action="store_true", help="what could not be run counts as failed")
    p.add_argument("--device", default="cuda", help="cuda, cuda:N; cpu is for testing this script with stand-in modules")
    p.add_argument("--kernels", default="", metavar="DIR", help="folder of the programs roofline and reference")
    p.add_argument("--expect-torch", default="", metavar="VER")
    p.add_argument("--expect-flash-attn", default="", metavar="VER")
    p.add_argument("--expected", default="", metavar="FILE", help="speed.json: what cards of this kind reach, with sources")
    p.add_argument("--caller-path", default="", help="PYTHONPATH of the user, looked at, not used")
    p.add_argument("--caller-dir", default="", help="working folder of the user, looked at, not used")
    p.add_argument("--limit", type=float, default=0, metavar="S", help="seconds that one case may take; default by mode")
    p.add_argument("--only", default="", metavar="REGEX", help="only items whose stage/id matches")
    p.add_argument("--case", default="", metavar="JSON", help="this one numeric case, as a finding names it")
    p.add_argument("--upstream", nargs="?", const="", default=None, metavar="DIR", help="upstream's own tests and benchmark, too, from its "
                   "repository in this folder")
    p.add_argument("--upstream-from", default="", metavar="TEXT", help="what that folder is")
    p.add_argument("--upstream-why", default="", metavar="TEXT", help="why there is no folder")
    p.add_argument("--upstream-tests", default="400", metavar="N|all", help="how many of upstream's parameter sets are run")
    p.add_argument("--no-speed", action="store_true")
    p.add_argument("--small", action="store_true", help="leave out long sequences")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    o = p.parse_args(argv)
    o.mode = o.mode or "normal"
    if o.upstream_tests != "all" and not re.fullmatch("[1-9][0-9]{0,6}", o.upstream_tests):
        p.error("--upstream-tests: a number or all")
    return o


class Printer:
    def __init__(self, text):
        self.text = text

    def __call__(self, kind, **what):
        if not self.text:
            print(json.dumps(dict(kind=kind, **what), ensure_ascii=True), flush=True)
            return
        if kind == "check":
            print("  %s %-11s %s: %s" % (MARKS.get(what["status"], " "), what["stage"], what["id"], what["text"]), flush=True)
        elif kind == "stage" and what["status"] != "begin":
            print("%s %-11s %s (%.1f s)" % (MARKS[what["status"]], what["id"].capitalize(), what["text"], what["seconds"]), flush=True)
        elif kind in ("note", "warning", "verdict"):
            print("  %s: %s" % (kind, what["text"]), flush=True)
        elif kind == "done":
            print(what["text"], flush=True)


class Book:
    """What was found so far. Opens and closes the stages around the checks."""

    def __init__(self, tell, title):
        self.tell, self.title, self.open, self.since = tell, title, None, 0.0
        self.measured, self.card = [], {}   # for the sentence about speed
        self.checks, self.ended, self.count = [], {}, {}
        self.reason = "an earlier stage stopped"   # for stages that are not reached
        self.stages, self.upstream = STAGES, None

    def stage(self, id_):
        if self.open == id_:
            return
        self.close()
        self.open, self.since = id_, time.monotonic()
        self.tell("stage", id=id_, status="begin", total=self.count.get(id_, 0))

    def check(self, stage, id_, status, text, seconds=0.0, **more):
        self.stage(stage)
        found = dict(stage=stage, id=id_, status=status, text=text, seconds=round(seconds, 4), **{k: v for k, v in more.items() if v})
        self.checks.append(found)
        self.tell("check", **found)

    def of(self, stage, status=None):
        return [c for c in self.checks if c["stage"] == stage and status in (None, c["status"])]

    def close(self):
        if self.open is None:
            return
        status, text = self.summary(self.open)
        self.end(self.open, status, text, time.monotonic() - self.since)
        self.open = None

    def end(self, stage, status, text, seconds=0.0):
        self.ended[stage] = status
        self.tell("stage", id=stage, status=status, text=text, seconds=round(seconds, 3))

    def not_reached(self):
        self.close()
        for s in self.stages:
            if s not in self.ended and s != "symbols":
                self.end(s, "not_run", self.reason)

    def summary(self, stage):
        all_, bad, good = self.of(stage), self.of(stage, "failed"), self.of(stage, "ok")
        if bad:
            more = " (and %d more)" % (len(bad) - 1) if len(bad) > 1 else ""
            return "failed", ("%d of %d cases wrong: " % (len(bad), len(all_)) if stage == "numbers" else "") + "%s: %s%s" % (
                bad[0]["id"], bad[0]["text"], more)
        if not good:
            return "not_run", all_[0]["text"] if all_ else self.reason
        return "ok", self.words(stage, good, all_)

    def words(self, stage, good, all_):
        if stage == "environment":
            return ", ".join(c["text"] for c in good if c["id"] in ("torch", "flash-attn")) + "; nothing hides them" * (
                not any("warning" in (c.get("data") or {}) for c in good))
        if stage == "import":
            return ", ".join("%s %.1f s" % (c["text"], c["seconds"]) for c in good)
        if stage == "kernels":
            return ", ".join(c["id"] for c in good)
        if stage == "used":
            seen = dict.fromkeys(c["text"].split(": ", 1)[1] for c in good if c["id"] in ("forward", "backward"))
            return "the profiler saw %s; no fallback" % " and ".join(seen)
        if stage == "speed":
            return verdict.sentence(self.title, self.measured, self.card) or "; ".join(c["text"] for c in good)
        if stage == "upstream":
            return upstream.summary(self.upstream)
        if stage == "numbers":
            worst = max(((c.get("data") or {}).get("ratio") or 0.0 for c in good if c.get("case")), default=0.0)
            left = sum("left_out" in (c.get("data") or {}) for c in good)
            skipped = len(self.of(stage, "not_run"))
            absent = "".join("; " + c["text"] for c in self.of(stage, "skipped") if c["id"] == "not in this line")
            return "%d of %d cases right, errors at most %.2f x those of plain attention in the same type%s%s" % (
                len(good), len(all_) - len(self.of(stage, "skipped")), worst, "; %d things left out of this build, each says so" % left if left else "",
                ("; %d not run" % skipped if skipped else "") + absent)
        return "; ".join(c["text"] for c in good)


def program_environment():
    """Programs of kernels/ find cuBLAS in the toolkit's folder or among the environment's nvidia wheels."""
    env = dict(os.environ)
    homes = [h for h in (env.get("CUDA_HOME"), env.get("CUDA_PATH"), "/usr/local/cuda") if h]
    folders = [os.path.join(h, "lib64") for h in homes]
    folders += [f for p in sys.path for f in glob.glob(os.path.join(p, "nvidia", "*", "lib"))]
    env["LD_LIBRARY_PATH"] = os.pathsep.join([f for f in folders if os.path.isdir(f)] + [x for x in [env.get("LD_LIBRARY_PATH")] if x])
    return env


def worker_environment():
    env = dict(os.environ)
    for name in ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "PYTORCH_NVCC"):
        env.pop(name, None)
    env.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")   # no pool of processes for one small graph
    return env


class Worker:
    """One worker process; next() gives its next line, or how it ended."""

    def __init__(self, script, options, folder=None):
        read, write = os.pipe()
        options = dict(options, fd=write)
        self.process = subprocess.Popen([sys.executable, script, "--worker", json.dumps(options)], pass_fds=[write],
                                        stdin=subprocess.DEVNULL, stdout=sys.stderr, env=worker_environment(), cwd=folder, start_new_session=True)
        os.close(write)
        self.fd, self.rest = read, b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(read, selectors.EVENT_READ)

    def next(self, limit):
        """A dict; None at its end; TimeoutError when it says nothing for so long."""
        deadline = time.monotonic() + limit
        while b"\n" not in self.rest:
            if not self.selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            data = os.read(self.fd, 1 << 16)
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def stop(self):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        status = self.process.wait()
        self.selector.close()
        os.close(self.fd)
        return status

    def wait(self):
        try:
            self.process.wait(20)   # a lost context may take its time to be torn down
        except subprocess.TimeoutExpired:
            pass
        return self.stop()


def how_it_died(status):
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = "signal %d" % -status
        return "the process was ended by %s" % name
    return "the process ended with status %d" % status


class Run:
    def __init__(self, script, o, tell):
        self.script, self.o, self.tell = script, o, tell
        self.book = Book(tell, lines.LINES[o.line]["title"])
        self.measured, self.card = self.book.measured, self.book.card
        self.decode, self.at, self.deaths, self.done_until = [], None, 0, -1
        self.profile = None   # of the build, as its import told
        self.upstream = None
        if o.upstream is not None:
            self.book.stages = STAGES + ("upstream",)
        self.work = {"line": o.line, "mode": o.mode, "device": o.device, "kernels": os.path.abspath(o.kernels) if o.kernels else "",
                     "limit": o.limit, "only": o.only, "case": json.loads(o.case) if o.case else None, "speed": not o.no_speed,
                     "small": o.small, "start": -1}

    def environment(self):
        started = time.monotonic()
        expect = {"torch": self.o.expect_torch, "flash_attn": self.o.expect_flash_attn}
        for id_, ok, text, data in environment.check(self.o.line, expect, self.o.mode != "quick", self.o.caller_path, self.o.caller_dir):
            self.book.check("environment", id_, "ok" if ok else "failed", text, time.monotonic() - started, data=data)
            started = time.monotonic()
            if data.get("warning"):
                self.tell("warning", id=data["warning"], text=text)
        self.book.close()
        missing = [c for c in self.book.of("environment", "failed") if not (c.get("data") or {}).get("versions", [1])]
        if missing:
            self.book.reason = missing[0]["text"]
        return not missing

    def take(self, m):
        """One line of the worker."""
        kind = m.pop("kind")
        if kind == "begin":
            self.at = m
            self.book.stage(m["stage"])
        elif kind == "check":
            self.at = None
            index = m.pop("index", None)
            self.done_until = index if index is not None else self.done_until
            self.keep(m)
            self.book.check(m.pop("stage"), m.pop("id"), m.pop("status"), m.pop("text"), m.pop("seconds"), **m)
        elif kind == "count":
            self.book.count = m["stages"]
            self.tell("count", stages=m["stages"])
        elif kind == "card":
            self.card.update(m["data"])
            self.tell("card", data=m["data"])
            self.look_at_card(m["data"])
        elif kind == "nocard":
            self.book.reason = m["text"]
        return kind

    def keep(self, m):
        data = m.get("data") or {}
        if m["stage"] == "import" and "profile" in data:
            self.profile, self.work["version"] = data["profile"], data.get("version") or ""
        if m["stage"] != "speed" or m["status"] == "not_run":
            return
        if m["id"] == "card":
            self.card.update({k: data[k] for k in ("matmul_tflops", "copy_gbs") if k in data})
        elif m["id"] == "decode":
            self.decode = data.get("rows", [])
        elif data.get("rows"):
            self.measured.append(data)

    def look_at_card(self, card):
        if 0 < card["free_mib"] < 0.8 * card["memory_mib"]:
            self.tell("note", id="card_in_use", text="%s of the card's %s MiB are free: another process may use it, sizes shrink and figures "
                      "may be low" % (format(card["free_mib"], ","), format(card["memory_mib"], ",")))
        if "MIG" in card["name"]:
            self.tell("note", id="mig_slice", text="this is a slice of a card (MIG): figures are those of the slice")

    def one_worker(self):
        """Runs a worker to its end. True when there is nothing more to do."""
        w = Worker(self.script, self.work)
        ended = False
        try:
            while True:
                m = w.next(self.at["limit"] if self.at else 300)
                if m is None:
                    break
                ended = self.take(m) in ("end", "nocard") or ended
        except TimeoutError:
            w.stop()
            return self.died("hung: no answer within %d s" % self.at["limit"] if self.at else "hung at its start")
        except (KeyboardInterrupt, BrokenPipeError):
            w.stop()
            raise
        status = w.wait()
        if ended and self.at is None:
            return True
        if self.at is None and status == 86:   # said itself that the card's context is lost
            self.deaths += 1
            return self.go_on()
        if self.at is None:
            return True   # it stopped after a finding that ends everything: an import
        return self.died(how_it_died(status))

    def died(self, how):
        """The item that was begun is the one that did it."""
        m, self.at = self.at or {"stage": "import", "id": "start", "index": -3}, None
        self.deaths += 1
        self.done_until = m.get("index", -3)
        data = {"died": True}
        if m.get("case") and self.o.mode != "quick" and self.deaths == 1 and not self.o.case:
            data["shrunk"] = self.shrink(m["case"], m.get("limit", 60))
        self.book.check(m["stage"], m["id"], "failed", how, m.get("limit", 0.0) if how.startswith("hung") else 0.0, case=m.get("case"), data=data)
        if m["stage"] == "import":
            self.book.reason = "the import did not survive"
            return True
        return self.go_on()

    def go_on(self):
        if self.deaths >= MOST_DEATHS:
            self.book.reason = "stopped after %d deaths" % self.deaths
            return True
        self.work["start"] = self.done_until + 1
        return False

    def shrink(self, case, limit):
        """The simplest case found that still ends its process; at most half a minute."""
        until, found, moved = time.monotonic() + 30, case, True
        while moved:
            moved = False
            for c in cases.smaller(found):
                if time.monotonic() > until:
                    return found
                if self.kills(c, min(limit, 15)):
                    found, moved = c, True
                    break
        return found

    def kills(self, case, limit):
        w = Worker(self.script, dict(self.work, case=case, start=-1, limit=limit))
        try:
            while True:
                m = w.next(limit + 30)
                if m is None:
                    return w.wait() not in (0, 3, 86)
                if m["kind"] == "check" and m["stage"] == "numbers":
                    w.stop()
                    return False
        except TimeoutError:
            w.stop()
            return True

    def programs(self):
        """kernels/roofline: matmul and bandwidth without torch."""
        program = os.path.join(self.work["kernels"], "roofline") if self.work["kernels"] else ""
        if not program or not os.access(program, os.X_OK) or self.o.no_speed or self.o.device == "cpu" or self.o.only or (
                self.o.mode == "quick" and self.card.get("matmul_tflops")):
            return   # in the quick mode torch has said it already
        started = time.monotonic()
        try:
            p = subprocess.run([program] + (["--quick"] if self.o.mode != "full" else []), capture_output=True, text=True, timeout=120,
                               stdin=subprocess.DEVNULL, check=False, env=program_environment())
            rows = [json.loads(x) for x in p.stdout.splitlines() if x.startswith("{")]
        except (OSError, ValueError, subprocess.TimeoutExpired) as e:
            self.book.check("speed", "roofline", "not_run", "kernels/roofline: %s" % e, time.monotonic() - started)
            return
        got = {r["what"]: r for r in rows if "what" in r}
        if p.returncode or "matmul" not in got or "copy" not in got:
            self.book.check("speed", "roofline", "not_run", "kernels/roofline: %s" % ((p.stderr.strip().splitlines() or ["exit %d" % p.returncode])[-1]),
                            time.monotonic() - started)
            return
        self.card.update(matmul_tflops=got["matmul"]["tflops"], copy_gbs=got["copy"]["gbs"])
        self.book.check("speed", "roofline", "ok", "kernels/roofline: matmul %.0f TFLOP/s (bf16), copy %s GB/s" % (
            got["matmul"]["tflops"], format(round(got["copy"]["gbs"]), ",")), time.monotonic() - started, data={"rows": rows})

    def clocks(self):
        """Clocks, temperature, throttling and who else is on the card, as nvidia-smi tells them."""
        fields = "clocks.sm,clocks.max.sm,clocks_throttle_reasons.active,temperature.gpu,power.draw,power.limit"
        try:
            p = subprocess.run(["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"], capture_output=True, text=True,
                               timeout=10, stdin=subprocess.DEVNULL, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return
        values = [v.strip() for v in (p.stdout.strip().splitlines() or [""])[0].split(",")]
        if p.returncode or len(values) != 6:
            return
        self.card["clocks"] = dict(zip(("sm_mhz", "sm_max_mhz", "throttle", "celsius", "watt", "watt_limit"), values))
        try:
            reasons = int(values[2], 16) & ~0x1   # idle is no throttling
        except ValueError:
            return
        if reasons & 0xe8:   # hardware slowdown, thermal, power brake
            self.tell("warning", id="card_throttled", text="the card slows itself down (reasons %s, %s C): figures are low" % (values[2], values[3]))

    def expected(self):
        """What a source says that cards of this kind reach, beside what was measured."""
        if not self.o.expected or not self.measured:
            return
        try:
            with open(self.o.expected, encoding="utf-8") as f:
                table = json.load(f)["rows"]
        except (OSError, ValueError, KeyError) as e:
            self.tell("note", id="expected_unreadable", text="%s: %s" % (self.o.expected, e))
            return
        mine = [r for r in table if re.search(r["card"], self.card.get("name", "")) and r["line"] == self.o.line]
        told = 0
        for r in mine:
            for m in self.measured:
                c = m["shape"]
                got = verdict.row(m["rows"], lines.LINES[self.o.line]["title"], r["direction"])
                if got and all(c[k] == r[k] for k in ("d", "sq", "causal")):
                    share, told = got["tflops"] / r["tflops"], told + 1
                    name = "d%d %d%s %s" % (c["d"], c["sq"], " causal" if c["causal"] else "", r["direction"])
                    if 0.7 < share < 0.9:   # hosts of one kind differ by a few percent; a worse build by 13 to 27
                        self.tell("warning", id="slower_than_expected", text="%s is %.0f %% below what a card of this kind reaches"
                                  % (name, 100 * (1 - share)))
                    self.book.check("speed", "expected " + name, "ok" if share > 0.7 else "failed", "%.0f TFLOP/s; a card of this kind reaches %.0f (%s)" % (
                                        got["tflops"], r["tflops"], r["source"]), data={"share": share})
        if not told:
            self.tell("note", id="expected_unknown", text="what %s should reach is not known from a source; the share of its matmul says how good this is"
                      % self.card.get("name", "this card"))

    def run(self):
        started = time.monotonic()
        if self.environment() or self.o.device == "cpu":
            while not self.one_worker():
                pass
            self.after()
        self.book.not_reached()
        return self.finish(started)

    def after(self):
        reached = self.book.open == "speed" or self.measured
        if reached and not self.o.only:
            self.clocks()
            self.programs()
            self.expected()
        self.book.close()
        wanted = self.o.upstream is not None and not self.o.case and (not self.o.only or re.search(self.o.only, "upstream"))
        if wanted and (self.card or self.o.device == "cpu"):
            self.others()
        title = lines.LINES[self.o.line]["title"]
        if self.measured or self.upstream:
            rows = verdict.figures(title, self.measured, self.card, self.decode)
            self.tell("figures", rows=rows, card=self.card, **({"upstream": self.upstream} if self.upstream else {}))
        if self.measured:
            self.tell("verdict", text=verdict.sentence(title, self.measured, self.card))

    def others(self):
        """Upstream's own tests and benchmark."""
        stage = upstream.Upstream(self.o, self.book, self.tell, self.work, self.card, self.profile, lambda o, folder: Worker(self.script, o, folder))
        self.book.upstream = stage.figures
        stage.run(self.our_shapes)
        self.book.close()
        self.upstream = stage.figures

    def our_shapes(self, shapes):
        """The shapes of upstream's benchmark by our own harness, in a worker of its own; [] when it died."""
        w, rows = Worker(self.script, dict(self.work, shapes=shapes)), []
        try:
            while True:
                m = w.next(120)
                if m is None:
                    break
                if m["kind"] == "shape":
                    rows.append(m["row"])
                    self.tell("progress", stage="upstream", done=len(rows), total=len(shapes))
        except TimeoutError:
            pass
        w.stop()
        return rows

    def finish(self, started):
        failed = [c for c in self.book.checks if c["status"] == "failed"]
        not_run = [s for s, st in self.book.ended.items() if st == "not_run"]
        bad = bool(failed) or (self.o.strict and bool(not_run))
        text = "%d checks, %d failed" % (len(self.book.checks), len(failed))
        if not_run:
            text += "; not run: %s (%s)" % (", ".join(not_run), self.book.reason)
        self.tell("done", status="failed" if bad else "ok", checks=len(self.book.checks), failed=len(failed), stages=self.book.ended,
                  text=text, seconds=round(time.monotonic() - started, 2))
        return 1 if bad else 0


def stop_on_signal(number, frame):
    raise KeyboardInterrupt


def main(script, argv):
    if argv[:1] == ["--worker"]:
        options = json.loads(argv[1])
        if "pytest" in options:
            from . import pytests
            return pytests.run(options)
        from . import worker
        return worker.run(options)
    o = options_of(argv)
    if not o.line:
        o.line = next((x for x in ("fa2", "fa3", "fa4") if lines.installed(x)), "fa2")
    signal.signal(signal.SIGTERM, stop_on_signal)
    try:
        return Run(script, o, Printer(o.text)).run()
    except KeyboardInterrupt:
        return 130
