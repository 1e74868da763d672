"""How fast, how much memory, against what: standard attention, each backend of torch's own attention, the card's matmul and
bandwidth. Times are medians with a 95 % interval; the sentence about them is made by verdict.py."""

import torch

from . import reference
from .device import measure
from .numbers import NotRun, OUT_OF_MEMORY, TYPES

BUDGET_S = {"quick": 0.06, "normal": 0.12, "full": 0.12}
BACKENDS = [("flash", "FLASH_ATTENTION"), ("cuDNN", "CUDNN_ATTENTION"), ("memory-efficient", "EFFICIENT_ATTENTION")]
SLOWER_THAN_TORCHS_FLASH = 1.75   # the same algorithm: more than this is a fault of the build, not of the measurement


def shape(dtype, b, s, h, d, causal):
    return {"op": "speed", "dtype": dtype, "b": b, "sq": s, "sk": s, "h": h, "hk": h, "d": d, "causal": causal}


def title(c):
    return "%s d%d, %s x %s tokens, %d heads%s" % (c["dtype"], c["d"], c["b"], format(c["sq"], ","), c["h"], ", causal" if c["causal"] else "")


def shapes(line, device, mode):
    """16,384 tokens each, as upstream's own benchmark has it; smaller where the card's memory is."""
    if device.name == "cpu":
        return [shape("bf16", 1, 1024, 2, 64, False)]
    dtype = first_built(line, [dict(dtype=t, d=128) for t in ("bf16", "fp16")])
    if dtype is None:
        dtype = first_built(line, [dict(dtype=t, d=d) for t in ("bf16", "fp16") for d in line.spec["head_dims"]])
    if dtype is None:
        return []
    t, d = dtype["dtype"], dtype["d"]
    h = 2048 // d
    if mode == "quick":
        out = [shape(t, 2, 8192, h, d, False)]
    else:
        out = [shape(t, 16384 // s, s, h, d, c) for s in (8192, 2048) for c in (False, True)]
        out.append(shape(t, 16, 1024, h, d, False))
    if mode == "full":
        out += [shape(t, 16384 // s, s, h, d, c) for s in (512, 4096, 16384) for c in (False, True)]
        more = [dict(dtype="fp16" if t == "bf16" else "bf16", d=128), dict(dtype=t, d=64), dict(dtype=t, d=256)]
        out += [shape(m["dtype"], 2, 8192, 2048 // m["d"], m["d"], c) for m in more if m["d"] != d or m["dtype"] != t
                if first_built(line, [m]) for c in (False, True)]
    return [fitted(c, device) for c in out]


def first_built(line, wishes):
    full = [dict(w, op="speed", backward=False) for w in wishes if w["d"] in line.spec["head_dims"]]
    return next((w for w in full if not line.lack(w)), None)


def square_mib(c):
    return c["b"] * c["h"] * c["sq"] * c["sk"] * 2 / 2 ** 20


def fitted(c, device):
    """Halves the batch, then the length, until the inputs and outputs of a backward pass fit; says so by its title."""
    c = dict(c)
    while 10 * c["b"] * c["sq"] * c["h"] * c["d"] * 2 / 2 ** 20 > 0.5 * device.free_mib() and c["sq"] > 256:
        if c["b"] > 1:
            c["b"] //= 2
        else:
            c["sq"] = c["sk"] = c["sq"] // 2
    return c


def flops(c):
    return 4.0 * c["b"] * c["h"] * c["sq"] * c["sk"] * c["d"] / (2 if c["causal"] else 1)


def sdpa_call(backend, c):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    which = getattr(SDPBackend, backend, None)

    def call(q, k, v):
        if which is None:
            raise RuntimeError("this torch has no such backend")
        with sdpa_kernel(which):
            return torch.nn.functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=c["causal"]).transpose(1, 2)
    return call


def contenders(s, c, forward_only):
    """(name, function of q, k, v). Standard attention only where its square matrices fit."""
    kw = s.line.keywords(c)
    out = [(s.line.title, lambda q, k, v: s.line.first(s.line.dense(q, k, v, **kw)))]
    names = BACKENDS if s.device.name != "cpu" else BACKENDS[:1]
    out += [("SDPA " + title_, sdpa_call(backend, c)) for title_, backend in names]
    if square_mib(c) * (3 if forward_only else 7) < 0.7 * s.device.free_mib():
        out.append(("standard", lambda q, k, v: reference.standard(q, k, v, c["causal"])))
    return out


def one(s, c, name, fn, budget, backward):
    """A row of figures, None where this backend cannot do it."""
    gen = s.generator(c)
    q, k, v = (s.randn(gen, c["b"], n, h, c["d"], dtype=TYPES[c["dtype"]]).requires_grad_(backward)
               for n, h in ((c["sq"], c["h"]), (c["sk"], c["hk"]), (c["sk"], c["hk"])))
    try:
        if backward:
            out = fn(q, k, v)
            weight = torch.randn_like(out)
            call = lambda: torch.autograd.grad(out, (q, k, v), weight, retain_graph=True)   # noqa: E731
        else:
            call = lambda: fn(q, k, v)   # noqa: E731
        call()   # workspaces that are made once are not counted
        extra = s.device.extra_mib(call)
        row = measure(s.device, call, budget)
    except OUT_OF_MEMORY:
        return None
    except RuntimeError as e:
        if name.startswith("SDPA") and "CUDA error" not in str(e):
            return None   # no kernel of this backend for these tensors
        raise
    finally:
        s.device.tidy()
    work = flops(c) * (2.5 if backward else 1.0)
    row.update(what=name, direction="backward" if backward else "forward", mib=extra, tflops=work / row["ms"] / 1e9)
    return row


def attention(s, c, mode):
    """All contenders on the same tensors, forward and, where the build has it, backward."""
    rows = []
    for backward in (False, True):
        if backward and s.line.lack(dict(c, backward=True)):
            continue
        if backward and mode == "quick":
            budget = BUDGET_S["quick"] / 2
        else:
            budget = BUDGET_S[mode]
        for name, fn in contenders(s, c, not backward):
            if name == "SDPA memory-efficient" and (mode == "quick" or c["d"] != 128 or c["sq"] != 8192):
                continue
            row = one(s, c, name, fn, budget, backward)
            if row:
                rows.append(row)
    return judge(s, c, rows)


def as_upstream(s, c):
    """One shape as upstream's benchmark has it (fp16, packed, 2,048 numbers a token), in TFLOP/s, by this harness."""
    h = 2048 // c["d"]
    qkv = torch.randn(c["b"], c["s"], 3, h, c["d"], device=s.device.name, dtype=torch.float16, requires_grad=True)
    attend = s.line.packed["qkvpacked"]
    forward = measure(s.device, lambda: attend(qkv, 0.0, causal=c["causal"]), BUDGET_S["full"])
    out = s.line.first(attend(qkv, 0.0, causal=c["causal"]))
    weight = torch.randn_like(out)

    def back():
        qkv.grad = None
        out.backward(weight, retain_graph=True)

    backward = measure(s.device, back, BUDGET_S["full"])
    s.device.tidy()
    work = 4.0 * c["b"] * c["s"] ** 2 * h * c["d"] // (2 if c["causal"] else 1) / 1e9
    return dict(c, forward=work / forward["ms"], backward=2.5 * work / backward["ms"], both=3.5 * work / (forward["ms"] + backward["ms"]))


def find(rows, what, direction):
    return next((r for r in rows if r["what"] == what and r["direction"] == direction), None)


def judge(s, c, rows):
    """A fault is: much slower than torch's copy of the same algorithm, or memory that grows like standard attention's."""
    faults = []
    for direction in ("forward", "backward"):
        mine, flash, std = (find(rows, w, direction) for w in (s.line.title, "SDPA flash", "standard"))
        if mine and flash and mine["low"] > SLOWER_THAN_TORCHS_FLASH * flash["high"]:
            faults.append("%s takes %.1f x the time of torch's own flash kernel (%.3g against %.3g ms)" % (
                direction, mine["ms"] / flash["ms"], mine["ms"], flash["ms"]))
        square = square_mib(c)
        if mine and square > 4 * 10 * c["b"] * c["sq"] * c["h"] * c["d"] * 2 / 2 ** 20 and mine["mib"] > 0.5 * square:
            faults.append("%s needs %s MiB, like standard attention (%s MiB for its square matrix)" % (
                direction, format(round(mine["mib"]), ","), format(round(square), ",")))
        if mine and std and (square >= 512 or s.device.name == "cpu") and mine["mib"] > 0.6 * std["mib"]:
            faults.append("%s needs %s MiB, standard attention %s" % (
                direction, format(round(mine["mib"]), ","), format(round(std["mib"]), ",")))
    mine = find(rows, s.line.title, "forward")
    if mine is None:
        raise NotRun("too little free memory on the card for %s" % title(c))
    text = "; ".join(faults) if faults else "%s: %.3g ms, %.3g TFLOP/s, %s MiB" % (title(c), mine["ms"], mine["tflops"], format(round(mine["mib"]), ","))
    return {"ok": not faults, "text": text, "rows": rows, "shape": c, "value": mine["tflops"], "unit": "TFLOP/s"}


def decode(s, mode):
    """One token for each of 32 sequences against a cache of 8,192: bound by the reading of the cache."""
    if s.device.name == "cpu":
        raise NotRun("needs a card")
    base = dict(dtype="bf16", d=128, op="kvcache")
    for dtype in ("bf16", "fp16"):
        if not s.line.lack(dict(base, dtype=dtype)):
            base["dtype"] = dtype
            break
    else:
        raise NotRun("this build has no kernel of head dim 128")
    if s.line.kvcache is None:
        raise NotRun("this release has no flash_attn_with_kvcache")
    b, length, h, hk, d = 32, 8192, 32, 8, 128
    while 2 * b * length * hk * d * 2 / 2 ** 20 > 0.4 * s.device.free_mib() and b > 1:
        b //= 2
    dt = TYPES[base["dtype"]]
    q = torch.randn(b, 1, h, d, device=s.device.name, dtype=dt)
    k, v = (torch.randn(b, length, hk, d, device=s.device.name, dtype=dt) for _ in range(2))
    lens = torch.full((b,), length, device=s.device.name, dtype=torch.int32)
    row = measure(s.device, lambda: s.line.kvcache(q, k, v, cache_seqlens=lens, causal=True), BUDGET_S[mode])
    s.device.tidy()
    gbs = 2.0 * b * length * hk * d * 2 / row["ms"] / 1e6
    row.update(what=s.line.title, direction="decode", gbs=gbs)
    return {"ok": True, "text": "decode, %d x %s tokens, %d/%d heads: %.3g ms, %.0f GB/s" % (b, format(length, ","), h, hk, row["ms"], gbs),
            "rows": [row], "value": gbs, "unit": "GB/s"}


def card(s, mode):
    """What the card reaches by torch, for shares; kernels/roofline says the same without torch."""
    if s.device.name == "cpu":
        raise NotRun("needs a card")
    n = 8192 if s.device.free_mib() > 4096 else 4096
    a, e = (torch.randn(n, n, device=s.device.name, dtype=torch.bfloat16) for _ in range(2))
    mm = measure(s.device, lambda: torch.mm(a, e), BUDGET_S[mode])
    size = min(2 ** 31, (s.device.free_mib() << 20) // 8)
    x = torch.empty(size, dtype=torch.uint8, device=s.device.name)
    y = torch.empty_like(x)
    copy = measure(s.device, lambda: y.copy_(x), BUDGET_S[mode])
    s.device.tidy()
    tflops, gbs = 2.0 * n ** 3 / mm["ms"] / 1e9, 2.0 * size / copy["ms"] / 1e6
    return {"ok": True, "text": "this card: matmul %.0f TFLOP/s (bf16), copy %s GB/s" % (tflops, format(round(gbs), ",")),
            "matmul_tflops": tflops, "copy_gbs": gbs, "value": tflops, "unit": "TFLOP/s"}
