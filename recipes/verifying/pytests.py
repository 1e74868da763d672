"""The child that runs one of upstream's test files with pytest, unmodified. It chooses which of the many thousand parameter sets are
run: those that this build lacks are left out by rule, of the rest a part in which every value of every parameter is met."""

import inspect
import os
import random
import time

from . import lines
from .worker import POISONED, STICKY, Tell

LEAST = 6   # functions of one file share the part chosen; at least so many each


def case_of(name, backward, params):
    """What a parameter set asks of a build, as cases.py would have it."""
    dtype = str(params.get("dtype", "torch.bfloat16")).rsplit(".", 1)[-1]
    return {"op": "kvcache" if "kvcache" in name else "varlen" if "varlen" in name else "dense",
            "dtype": {"float16": "fp16", "bfloat16": "bf16"}.get(dtype, dtype), "d": int(params.get("d", 128)),
            "dropout": params.get("dropout_p"), "alibi": params.get("alibi"), "softcap": params.get("softcap"),
            "window": [1, 1] if params.get("local") else None, "append": params.get("new_kv"), "paged": params.get("paged_kv_block_size"),
            "batch_idx": params.get("has_batch_idx"), "backward": backward}


def goes_back(function):
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return False
    return "autograd.grad(" in source or ".backward(" in source


def choose(calls, wanted, name):
    """As many parameter sets as wanted, in their order: drawn the same way on every machine, first such that bring a value of a
    parameter not met yet. A draw of a few thousand has met all."""
    if wanted is None or len(calls) <= wanted:
        return list(calls)
    drawn = random.Random(name).sample(range(len(calls)), min(len(calls), 50 * wanted))
    seen, first, rest = set(), [], []
    for i in drawn:
        values = {(k, repr(v)) for k, v in calls[i].params.items()}
        (rest if values <= seen else first).append(i)
        seen |= values
    return [calls[i] for i in sorted((first + rest)[:max(wanted, len(first))])]


class Part:
    """pytest's hooks. Thinning is done where parameter sets are made, so that none of those left out costs an item."""

    def __init__(self, tell, o):
        self.tell, self.o = tell, o
        self.left_out, self.of, self.functions, self.empty = {}, 0, {}, set()
        self.at, self.since, self.state, self.failed = "", 0.0, None, 0
        tests = o["tests"]
        self.wanted = None if tests in ("", "all") else int(tests)

    def thin(self, function, name, calls, functions):
        """One function's parameter sets that are to be run."""
        backward, profile, able = goes_back(function), self.o["profile"], calls
        if profile is not None:
            able = []
            for c in calls:
                word = lines.lack(self.o["line"], profile, case_of(name, backward, c.params))
                if word:
                    self.left_out[word] = self.left_out.get(word, 0) + 1
                else:
                    able.append(c)
        each = None if self.wanted is None else max(LEAST, self.wanted // max(1, functions))
        chosen = choose(able, each, name)
        self.of += len(calls)
        self.functions[name] = {"of": len(calls), "left_out": len(calls) - len(able), "chosen": len(chosen)}
        return chosen

    # hooks

    def pytest_generate_tests(self, metafunc):
        """A wrapper: thins what pytest has made of the parameters."""
        yield
        calls = getattr(metafunc, "_calls", None)
        if not calls:
            return
        name, module = metafunc.function.__name__, metafunc.module
        functions = sum(n.startswith("test") and callable(f) for n, f in vars(module).items())
        chosen = self.thin(metafunc.function, name, calls, functions)
        if not chosen:
            self.empty.add(name)   # one stays, so that pytest knows its parameters; it is taken out below
        calls[:] = chosen or calls[:1]

    def pytest_collection_modifyitems(self, items):
        items[:] = [i for i in items if i.function.__name__ not in self.empty]
        plain = [i for i in items if i.function.__name__ not in self.functions]
        for i in plain:
            self.of += 1
            self.functions[i.function.__name__] = {"of": 1, "left_out": 0, "chosen": 1}
        self.tell("plan", chosen=len(items), of=self.of, left_out=self.left_out, functions=self.functions)
        items[:] = items[self.o["start"]:]

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell("error", text=last_line(report.longreprtext))

    def pytest_runtest_logstart(self, nodeid):
        self.at, self.since, self.state = nodeid, time.perf_counter(), None
        self.tell("begin", id=nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed and self.state is None:
            self.state = ("failed", last_line(report.longreprtext))
        elif report.skipped and self.state is None:
            self.state = ("skipped", "")

    def pytest_runtest_logfinish(self, nodeid):
        status, text = self.state or ("passed", "")
        if status == "failed" and self.o["profile"] is not None and lines.HONEST.search(text) and not STICKY.search(text):
            status = "refused"   # a build that lacks something and says so
        self.tell("end", id=nodeid, status=status, text=text, seconds=time.perf_counter() - self.since)
        self.failed += status == "failed"
        if status == "failed" and STICKY.search(text):
            os._exit(POISONED)
        if self.failed >= self.o["most_failed"]:
            os._exit(0)


def last_line(text):
    """The line of a traceback that says what went wrong: the last that pytest marks with E, else the last."""
    marked = [x[1:].strip() for x in text.splitlines() if x.startswith("E ")]
    said = [x for x in marked if x and not x.startswith(("+", "where"))]
    return (said[0] if said else (text.strip().splitlines() or [""])[-1])[:300]


def run(options):
    import pytest

    tell = Tell(options["fd"])
    pytest.hookimpl(hookwrapper=True)(Part.pytest_generate_tests)
    os.chdir(options["folder"])
    code = pytest.main([options["pytest"], "-q", "-p", "no:cacheprovider", "--tb=short", "--disable-warnings"], plugins=[Part(tell, options)])
    os._exit(0 if code in (0, 1, 5) else int(code))
