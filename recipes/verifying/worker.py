"""The process that touches torch, Flash-Attention and the card. It tells what it is about to do before it does it, so that the
supervisor knows which case a crash or a hang belongs to, and can go on after it in a new process."""

import json
import math
import os
import re
import sys
import time
import traceback

STICKY = re.compile(r"CUDA error|HIP error|illegal memory access|device-side assert|misaligned address|unspecified launch failure|"
                    r"Triton Error \[CUDA\]|CUDA_ERROR", re.I)
POISONED = 86   # exit status: the card's context is lost, go on in a new process


def plain(x):
    """Only what JSON can carry: numbers that are none become null."""
    if isinstance(x, float):
        return x if math.isfinite(x) else None
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    return x


class Tell:
    def __init__(self, fd):
        self.fd = fd

    def __call__(self, kind, **what):
        data = (json.dumps(plain(dict(kind=kind, **what)), ensure_ascii=True) + "\n").encode()
        while data:
            data = data[os.write(self.fd, data):]


def import_torch(tell, first):
    if first:
        tell("begin", index=-2, stage="import", id="torch", limit=240)
    start = time.perf_counter()
    try:
        import torch
    except Exception as e:   # whatever the import of a broken torch may raise
        tell("check", stage="import", id="torch", status="failed", text="import torch: %s" % one_line(e), seconds=time.perf_counter() - start)
        sys.exit(3)
    if first:
        tell("check", stage="import", id="torch", status="ok", text="torch %s" % torch.__version__, seconds=time.perf_counter() - start,
             data={"version": str(torch.__version__), "cuda": torch.version.cuda, "hip": torch.version.hip, "file": torch.__file__})
    return torch


def import_line(tell, name, first):
    from . import lines

    if first:
        tell("begin", index=-1, stage="import", id=name, limit=240)
    start = time.perf_counter()
    try:
        line = lines.Line(name)
    except Exception as e:
        tell("check", stage="import", id=name, status="failed", text="import %s: %s" % (lines.LINES[name]["modules"][0], one_line(e)),
             seconds=time.perf_counter() - start)
        sys.exit(3)
    if first:
        tell("check", stage="import", id=name, status="ok", seconds=time.perf_counter() - start,
             text="%s %s" % (line.module.__name__, line.version), data={"version": line.version, "file": line.module.__file__,
                                                                        "profile": line.profile})
    return line


def one_line(e):
    text = " ".join(str(e).split()) or type(e).__name__
    return text[:400]


def why_no_card(torch):
    if torch.version.cuda is None and not torch.version.hip:
        return "this torch (%s) was built without CUDA; a card needs a CUDA or ROCm build of torch" % torch.__version__
    return "no GPU here that torch can use; needs an NVIDIA or AMD card and its driver"


def base_case(line):
    """The simplest case that the build has: bf16, head dim 128 where possible."""
    from .cases import case

    wishes = [case(dtype=t, d=d, sq=128) for d in (128, 64, *line.spec["head_dims"]) for t in ("bf16", "fp16")]
    return next((c for c in wishes if c["d"] in line.spec["head_dims"] and not line.lack(c)), wishes[0])


def starts(setting, case):
    """Do the kernels start and end at all? Whether they are right is asked by the next stage."""
    from . import numbers

    try:
        result = numbers.run(setting, case)
    except numbers.Wrong as e:   # it ran; what came out is for the next stage to say
        return {"ok": True, "text": "ran; %s" % e}
    return {"ok": True, "text": "ran; %s" % result["text"], "ratio": result.get("ratio")}


def not_in(line):
    from . import numbers

    raise numbers.Absent("not in %s: %s" % (line.title, ", ".join(line.absent())))


def items(line, device, about, options):
    """Everything to be done, in order: (stage, id, function of a Setting, seconds it may take, case or None)."""
    from . import cases, crosscheck, numbers, speed, used

    mode, out = options["mode"], []
    slow = 120 if line.spec.get("compiles_at_first_use") else 0
    limit = options["limit"] or (30 if mode == "quick" else 60) + slow
    base = base_case(line)
    for dtype in line.spec["dtypes"]:
        c = dict(base, dtype=dtype, sq=64, sk=64, causal=True, backward=not line.lack(dict(base, dtype=dtype, backward=True)))
        if not line.lack(dict(c, backward=False)):
            out.append(("kernels", "%s forward%s" % (dtype, " and backward" if c["backward"] else ""),
                        lambda s, c=c: starts(s, c), limit + 150, c))   # PTX may have to be compiled
    chosen = cases.few(line, mode) if line.spec.get("compiles_at_first_use") else {"quick": cases.quick, "full": cases.full}.get(
        mode, cases.normal)(line)
    if options["small"]:
        chosen = [c for c in chosen if c["op"] != "long"]
    if about["count"] < 2:
        chosen = [c for c in chosen if c["op"] != "device"]
    out.append(("numbers", "fp32 itself", lambda s: crosscheck.run(s, options["kernels"]), limit + 30, None))
    for c in chosen:
        out.append(("numbers", cases.name(c), lambda s, c=c: numbers.run(s, c), limit + (240 if c["op"] == "compile" else 0), c))
    if line.absent():
        out.append(("numbers", "not in this line", lambda s: not_in(line), limit, None))
    for what in used.items(line, device, mode, base):
        out.append(("used", what, lambda s, w=what: used.run(s, w, dict(base, sq=512, sk=512, causal=True)), limit + 60, None))
    if options["speed"]:
        out.append(("speed", "card", lambda s: speed.card(s, mode), limit + 60, None))
        for c in speed.shapes(line, device, mode):
            out.append(("speed", speed.title(c), lambda s, c=c: speed.attention(s, c, mode), limit + 120, None))
        if line.kvcache is not None:
            out.append(("speed", "decode", lambda s: speed.decode(s, mode), limit + 60, None))
    return out


def do(tell, torch, setting, item, index):
    """One item to its finding. Returns whether the card's context is still good, and the status."""
    from . import numbers

    stage, id_, fn, limit, case = item
    tell("begin", index=index, stage=stage, id=id_, limit=limit, case=case)
    start = time.perf_counter()
    alive, data, status = True, {}, "failed"
    try:
        data = fn(setting)
        setting.device.sync()
        status, text = "ok" if data.pop("ok") else "failed", data.pop("text")
        if status == "failed" and case is not None and stage == "numbers" and "left_out" not in data and data.get("wrong"):
            data["shrunk"] = numbers.shrink(setting, case)
    except numbers.Absent as e:
        status, text = "skipped", str(e)
    except numbers.NotRun as e:
        status, text = "not_run", str(e)
    except numbers.OUT_OF_MEMORY as e:
        status, text = "not_run", "too little free memory on the card: %s" % one_line(e)[:160]
    except numbers.Wrong as e:
        text = str(e)
    except Exception as e:
        text = one_line(e)
        data = {"trace": traceback.format_exc()[-2000:]}
        honest = numbers.HONEST.search(text) and not STICKY.search(text)
        if honest and setting.line.profile is None and stage != "kernels":   # another's build of which nothing is known: it says so itself
            status, text = "skipped", "this build says: " + text[:200]
        alive = not STICKY.search(text) or "no kernel image" in text
    tell("check", index=index, stage=stage, id=id_, status=status, text=text, seconds=time.perf_counter() - start, case=case, data=data)
    return alive, status


def measure_shapes(tell, setting, shapes):
    """The shapes of upstream's benchmark, one line each."""
    from . import speed

    for c in shapes:
        tell("shape", row=speed.as_upstream(setting, c))
    tell("end")
    os._exit(0)


def run(options):
    tell = Tell(options["fd"])
    first = options["start"] < 0 and "shapes" not in options
    torch = import_torch(tell, first)
    line = import_line(tell, options["line"], first)
    torch.set_float32_matmul_precision("highest")
    from . import device, numbers

    if options["device"] != "cpu" and not torch.cuda.is_available():
        tell("nocard", text=why_no_card(torch))
        return 0
    try:
        card = device.choose(options["device"])
        card.sync()
        about = card.describe()
    except Exception as e:
        tell("check", stage="kernels", id="card", status="failed", text="the card cannot be used: %s" % one_line(e), seconds=0.0)
        return 3
    if first:
        tell("card", data=about)
    setting = numbers.Setting(line, card)
    if "shapes" in options:
        measure_shapes(tell, setting, options["shapes"])
    todo = items(line, card, about, options)
    if options["case"] is not None:
        c = options["case"]
        todo = [("numbers", "the case given", lambda s: numbers.run(s, c), options["limit"] or 60, c)]
    if first:
        tell("count", stages={s: sum(i[0] == s for i in todo) for s in ("kernels", "numbers", "used", "speed")})
    ran = {"kernels": 0, "good": 0}
    for index, item in enumerate(todo):
        if item[0] != "kernels" and ran["kernels"] and not ran["good"]:
            tell("nocard", text="no kernel of this build runs on this card")
            return 0
        if index < options["start"] or (options["only"] and not re.search(options["only"], "%s/%s" % item[:2])):
            continue
        alive, status = do(tell, torch, setting, item, index)
        ran["kernels"] += item[0] == "kernels"
        ran["good"] += item[0] == "kernels" and status == "ok"
        if not alive:
            return POISONED
    tell("end")
    os._exit(0)   # nothing of torch's own end is of interest, and it takes its time
