"""One case: made, run by Flash-Attention, compared with fp32. Every function returns a dict with "ok" and what it measured."""

import hashlib

import torch

from . import reference
from .cases import name as case_name, smaller
from .lines import HONEST

OUT_OF_MEMORY = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)   # its name since torch 2.5
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


class Wrong(Exception):
    """The result is not one: another shape, dtype, device. A sentence."""


class NotRun(Exception):
    """The case cannot be run here: a sentence that says what would be needed."""


class Absent(Exception):
    """This line does not have it: a sentence. No fault, and nothing that could be had here."""


class Setting:
    """The line and the device, and random numbers that depend on the case alone."""

    def __init__(self, line, device):
        self.line, self.device = line, device
        self.shrunk = 0   # how many cases were made smaller: the first few are enough

    def generator(self, case):
        seed = int.from_bytes(hashlib.sha256(case_name(case).encode()).digest()[:6], "little")
        return torch.Generator(device=self.device.name).manual_seed(seed)

    def randn(self, gen, *shape, dtype=torch.float32):
        return torch.randn(*shape, generator=gen, device=self.device.name, dtype=torch.float32).to(dtype)

    def lengths(self, gen, case, most, n):
        """Ragged: 1…most each, the first is the longest; with "empty" the second is 0."""
        lens = torch.randint(1, most + 1, (n,), generator=gen, device=self.device.name).tolist()
        lens[0] = most
        if case.get("empty") and n > 1:
            lens[1] = 0
        return lens


def check_form(out, like, shape=None):
    shape = tuple(shape or like.shape)
    if not isinstance(out, torch.Tensor):
        raise Wrong("the result is %s, not a tensor" % type(out).__name__)
    for what, found, needed in (("device", out.device, like.device), ("dtype", out.dtype, like.dtype),
                                ("shape", tuple(out.shape), shape)):
        if found != needed:
            raise Wrong("the result's %s is %s, it should be %s" % (what, found, needed))


def slopes(s, case, gen):
    if not case.get("alibi"):
        return None
    shape = (case["b"], case["h"]) if case["alibi"] == "batch" else (case["h"],)
    return torch.rand(*shape, generator=gen, device=s.device.name, dtype=torch.float32) * 0.3 + 0.01


def inputs(s, case, gen):
    dt = TYPES[case["dtype"]]
    b, sq, sk, h, hk, d = (case[k] for k in ("b", "sq", "sk", "h", "hk", "d"))
    if case.get("strided"):   # (b, h, s, d) in memory, and every second number of a wider row
        q, k, v = (s.randn(gen, b, n, length, 2 * d, dtype=dt)[..., ::2].transpose(1, 2)
                   for n, length in ((h, sq), (hk, sk), (hk, sk)))
    else:
        q, k, v = s.randn(gen, b, sq, h, d, dtype=dt), s.randn(gen, b, sk, hk, d, dtype=dt), s.randn(gen, b, sk, hk, d, dtype=dt)
    return [x.detach().requires_grad_(bool(case.get("backward"))) for x in (q, k, v)]


def copies(tensors, exactly):
    """Leaves of their own; in fp32 for the exact way, so that its gradients are not rounded."""
    return [(t.detach().float() if exactly else t.detach().contiguous()).clone().requires_grad_(t.requires_grad) for t in tensors]


def three_ways(case, tensors, run, exact, plain, gen, s):
    """Runs forward and, where the case has it, backward, in three ways and compares the results pair by pair. run, exact and
    plain take the tensors and return the output; gradients are taken with respect to all tensors."""
    parts = {}
    dt = tensors[0].dtype
    outs, grads = [], []
    for i, fn in enumerate((run, exact, plain)):
        mine = copies(tensors, exactly=i == 1)
        if case.get("strided") and i == 0:
            mine = tensors
        out = fn(*mine)
        if i == 0:
            check_form(out, tensors[0])
            weight = s.randn(gen, *out.shape, dtype=dt)
        outs.append(out.detach())
        if case.get("backward"):
            g = torch.autograd.grad(out, mine, weight.to(out.dtype))
            for t, m in zip(g, mine) if i == 0 else ():
                check_form(t, m)
            grads.append(g)
    parts["out"] = reference.compare(outs[0], outs[1], outs[2], dt)
    if grads:
        for key, got, ref, pt in zip(("dq", "dk", "dv") if len(tensors) == 3 else ("dqkv",) if len(tensors) == 1 else ("dq", "dkv"),
                                     *grads):
            parts[key] = reference.compare(got, ref, pt, dt)
    return summary(parts)


def summary(parts):
    """The worst part of several decides and is named."""
    worst = max(parts, key=lambda k: (not parts[k]["ok"], parts[k]["ratio"]))
    p = parts[worst]
    ok = all(x["ok"] for x in parts.values())
    what = ", ".join(sorted((k for k in parts if not parts[k]["ok"]), key=lambda k: k != worst)) or worst
    text = "%s: error %.2g, plain %.2g, bound %.2g" % (what, p["error"], p["plain"], p["bound"])
    if not ok and p["error"] <= p["bound"]:
        text = "%s: mean error %.2g, plain %.2g, bound %.2g" % (what, p["rms"], p["rms_plain"], p["rms_bound"])
    return {"ok": ok, "error": p["error"], "plain": p["plain"], "ratio": p["ratio"], "worst": worst, "text": text,
            "wrong": [k for k in parts if not parts[k]["ok"]]}


def dense(s, case):
    gen = s.generator(case)
    tensors, alibi = inputs(s, case, gen), slopes(s, case, gen)
    kw = s.line.keywords(case, alibi)
    result = three_ways(case, tensors, lambda q, k, v: s.line.first(s.line.dense(q, k, v, **kw)),
                        lambda q, k, v: reference.attention(q, k, v, case, True, alibi),
                        lambda q, k, v: reference.attention(q, k, v, case, False, alibi), gen, s)
    if case.get("lse"):
        got = s.line.dense(*tensors, **{s.line.lse_keyword: True}, **kw)[1]
        exact = reference.logsumexp(tensors[0], tensors[1], case)
        off = (got.float() - exact)[torch.isfinite(exact)].abs().max().item()
        if not off <= 2e-3:
            result.update(ok=False, text="logsumexp differs from fp32 by %.2g, at most 0.002 is explained" % off)
    return result


def packed(s, case):
    gen = s.generator(case)
    q, k, v = inputs(s, case, gen)
    kw = s.line.keywords(case)
    fn = s.line.packed[case["op"]]
    if case["op"] == "qkvpacked":
        tensors = [torch.stack((q, k, v), dim=2).detach().requires_grad_(q.requires_grad)]
        return three_ways_packed(s, case, gen, tensors, lambda x: s.line.first(fn(x, **kw)), lambda x: x.unbind(2))
    tensors = [q.detach().requires_grad_(q.requires_grad), torch.stack((k, v), dim=2).detach().requires_grad_(q.requires_grad)]
    return three_ways_packed(s, case, gen, tensors, lambda x, y: s.line.first(fn(x, y, **kw)), lambda x, y: (x, *y.unbind(2)))


def three_ways_packed(s, case, gen, tensors, run, apart):
    def checked(*t):
        out = run(*t)
        q = apart(*t)[0]
        check_form(out, q)
        return out

    parts, outs, grads = {}, [], []
    weight = None
    for fn in (checked, lambda *t: reference.attention(*apart(*t), case, True),
               lambda *t: reference.attention(*apart(*t), case, False)):
        mine = copies(tensors, exactly=len(outs) == 1)
        out = fn(*mine)
        weight = s.randn(gen, *out.shape, dtype=tensors[0].dtype) if weight is None else weight
        outs.append(out.detach())
        if case.get("backward"):
            grads.append(torch.autograd.grad(out, mine, weight.to(out.dtype)))
    dt = tensors[0].dtype
    parts["out"] = reference.compare(*outs, dt)
    names = (("dqkv",) if len(tensors) == 1 else ("dq", "dkv")) if grads else ()   # zip() of the names alone would yield them
    for key, *three in zip(names, *grads):
        parts[key] = reference.compare(*three, dt)
    return summary(parts)


def starts(lens, device):
    at = [0]
    for n in lens:
        at.append(at[-1] + n)
    return torch.tensor(at, dtype=torch.int32, device=device), at


def varlen(s, case):
    gen = s.generator(case)
    dt = TYPES[case["dtype"]]
    b, h, hk, d = case["b"], case["h"], case["hk"], case["d"]
    same = case["sq"] == case["sk"]
    qlens = s.lengths(gen, case, case["sq"], b)
    klens = qlens if same else s.lengths(gen, case, case["sk"], b)
    (cq, aq), (ck, ak) = starts(qlens, s.device.name), starts(klens, s.device.name)
    grad = bool(case.get("backward"))
    q, k, v = (s.randn(gen, n, heads, d, dtype=dt).requires_grad_(grad) for n, heads in ((aq[-1], h), (ak[-1], hk), (ak[-1], hk)))
    kw = s.line.keywords(case)

    def one_by_one(upcast):
        def run(q, k, v):
            outs = []
            for i in range(b):
                if qlens[i] == 0:
                    continue
                outs.append(reference.attention(q[None, aq[i]:aq[i + 1]], k[None, ak[i]:ak[i + 1]], v[None, ak[i]:ak[i + 1]],
                                                case, upcast)[0])
            return torch.cat(outs)
        return run

    lens = dict(cu_seqlens_q=cq, cu_seqlens_k=ck, max_seqlen_q=max(qlens), max_seqlen_k=max(klens))
    if case.get("paged"):
        return varlen_paged(s, case, gen, (q, k, v), lens, klens, ak, one_by_one)
    op = case["op"]
    if op == "varlen_qkvpacked":
        fn = s.line.packed[op]
        run = lambda q, k, v: s.line.first(fn(torch.stack((q, k, v), 1), cq, max(qlens), **kw))   # noqa: E731
    elif op == "varlen_kvpacked":
        fn = s.line.packed[op]
        run = lambda q, k, v: s.line.first(fn(q, torch.stack((k, v), 1), cq, ck, max(qlens), max(klens), **kw))   # noqa: E731
    else:
        run = lambda q, k, v: s.line.first(s.line.varlen(q, k, v, **lens, **kw))   # noqa: E731
    return three_ways(case, [q, k, v], run, one_by_one(True), one_by_one(False), gen, s)


PAGE = 256   # the block size that every release takes


def into_pages(s, gen, k, v, lens, at):
    """Keys and values of each sequence laid out in pages in a shuffled order; returns pages and the table of them."""
    per = [(n + PAGE - 1) // PAGE for n in lens]
    most, total = max(max(per), 1), sum(per) + 3
    order = torch.randperm(total, generator=gen, device=s.device.name).tolist()
    shape = (total, PAGE, k.shape[-2], k.shape[-1])
    pk, pv = (s.randn(gen, *shape, dtype=k.dtype) for _ in range(2))
    table = torch.zeros(len(lens), most, dtype=torch.int32, device=s.device.name)
    for i, n in enumerate(lens):
        for j in range(per[i]):
            page, a, e = order.pop(), at[i] + j * PAGE, min(at[i] + (j + 1) * PAGE, at[i] + n)
            table[i, j] = page
            pk[page, :e - a], pv[page, :e - a] = k[a:e], v[a:e]
    return pk, pv, table


def table_keyword(line, fn):
    names = line.arguments(fn)
    name = next((n for n in ("block_table", "page_table") if n in names), None)
    if name is None:
        raise NotRun("this release takes no pages here")
    return name


def varlen_paged(s, case, gen, qkv, lens, klens, ak, one_by_one):
    q, k, v = (t.detach() for t in qkv)
    pk, pv, table = into_pages(s, gen, k, v, klens, ak)
    kw = s.line.keywords(case)
    kw[table_keyword(s.line, s.line.varlen)] = table
    if s.line.name != "fa2":   # the later lines count keys by seqused_k and take no cu_seqlens_k with pages
        lens = dict(lens, cu_seqlens_k=None, seqused_k=torch.tensor(klens, dtype=torch.int32, device=s.device.name))
    got = s.line.first(s.line.varlen(q, pk, pv, **lens, **kw))
    check_form(got, q)
    return summary({"out": reference.compare(got, one_by_one(True)(q, k, v), one_by_one(False)(q, k, v), q.dtype)})


def kvcache(s, case):
    gen = s.generator(case)
    dt = TYPES[case["dtype"]]
    b, sq, sk, h, hk, d = (case[k] for k in ("b", "sq", "sk", "h", "hk", "d"))
    q = s.randn(gen, b, sq, h, d, dtype=dt)
    new = sq if case.get("append") else 0
    lens = torch.randint(sq, sk - new + 1, (b,), generator=gen, device=s.device.name)
    lens[0] = sk - new
    slots = b + 2 if case.get("batch_idx") else b
    kc, vc = s.randn(gen, slots, sk, hk, d, dtype=dt), s.randn(gen, slots, sk, hk, d, dtype=dt)
    which = torch.randperm(slots, generator=gen, device=s.device.name)[:b]
    mine = which if case.get("batch_idx") else torch.arange(b, device=s.device.name)
    kn, vn = (s.randn(gen, b, new, hk, d, dtype=dt) if new else None for _ in range(2))
    kw = s.line.keywords(case, slopes(s, case, gen))
    rotary, turned_q, turned_k = {}, q, kn
    if case.get("rotary"):
        rotary, turned_q, turned_k = rotary_of(s, case, gen, q, kn, lens)
    if case.get("batch_idx"):
        kw["cache_batch_idx"] = mine.to(torch.int32)
    if case.get("splits"):
        kw["num_splits"] = case["splits"]
    kr, vr = kc[mine].clone(), vc[mine].clone()   # what the cache must be afterwards
    for i in range(b) if new else ():
        kr[i, lens[i]:lens[i] + new], vr[i, lens[i]:lens[i] + new] = turned_k[i], vn[i]
    pages = None
    if case.get("paged"):
        pages = paged_cache(s, gen, kc, vc)
        kw[table_keyword(s.line, s.line.kvcache)] = pages[2]
    # (k and v are given only where they are appended)
    extra = dict(k=kn, v=vn) if new else {}
    got = s.line.first(s.line.kvcache(q, *(pages[:2] if pages else (kc, vc)), cache_seqlens=lens.to(torch.int32), **extra, **rotary, **kw))
    check_form(got, q)
    alibi = kw.get("alibi_slopes")
    exact, plain = [], []
    for i in range(b):
        n = int(lens[i]) + new
        a = None if alibi is None else alibi
        for out, upcast in ((exact, True), (plain, False)):
            out.append(reference.attention(turned_q[i:i + 1], kr[i:i + 1, :n], vr[i:i + 1, :n], case, upcast, a))
    parts = {"out": reference.compare(got, torch.cat(exact), torch.cat(plain), dt)}
    if new:
        back_k, back_v = from_pages(pages, b, sk) if pages else (kc[mine], vc[mine])
        parts["cache k"] = cache_part(back_k, kr, lens, new, exactly=not rotary)
        parts["cache v"] = cache_part(back_v, vr, lens, new, exactly=True)
    return summary(parts)


def rotary_of(s, case, gen, q, kn, lens):
    turn = max(16, case["d"] // 2 // 16 * 16)
    angle = torch.rand(case["sk"] + 8, turn // 2, generator=gen, device=s.device.name) * 6.2831853
    cos, sin = angle.cos().to(q.dtype), angle.sin().to(q.dtype)
    inter = bool(case.get("interleaved"))
    return (dict(rotary_cos=cos, rotary_sin=sin, rotary_interleaved=inter), reference.rotate(q, cos, sin, inter, lens),
            reference.rotate(kn, cos, sin, inter, lens))


def paged_cache(s, gen, kc, vc):
    b, sk = kc.shape[:2]
    per = (sk + PAGE - 1) // PAGE
    flat = [x.reshape(b * sk, *x.shape[2:]) for x in (kc, vc)]
    return into_pages(s, gen, *flat, [sk] * b, [i * sk for i in range(b)]) + (per,)


def from_pages(pages, b, sk):
    pk, pv, table, _ = pages
    return [torch.stack([p[table[i].long()].flatten(0, 1)[:sk] for i in range(b)]) for p in (pk, pv)]


def cache_part(got, needed, lens, new, exactly):
    """What was there stays bit by bit; what was appended is there: bit by bit, or, when turned, within one rounding."""
    got, needed = got.float(), needed.float()
    off = (got - needed).abs()
    old = torch.arange(got.shape[1], device=got.device).view(1, -1) < lens.view(-1, 1)
    added = (torch.arange(got.shape[1], device=got.device).view(1, -1) < lens.view(-1, 1) + new) & ~old
    changed, error = off[old].max().item() if old.any() else 0.0, off[added].max().item()
    bound = 0.0 if exactly else 2.0 ** -6 * needed.abs().max().item()
    return {"error": max(changed, error), "plain": 0.0, "ratio": 0.0, "bound": bound, "ok": changed == 0 and error <= bound,
            "rms": 0.0, "rms_plain": 0.0, "rms_bound": 0.0}


def dropout(s, case):
    """With the unit matrix as values the output is the matrix of probabilities after dropout: its zeros are the mask."""
    gen = s.generator(case)
    dt = TYPES[case["dtype"]]
    b, sq, h, hk, d, p = (case[k] for k in ("b", "sq", "h", "hk", "d", "dropout"))
    sk = d
    q, k = s.randn(gen, b, sq, h, d, dtype=dt), s.randn(gen, b, sk, hk, d, dtype=dt)
    eye = torch.eye(d, device=s.device.name, dtype=dt).view(1, d, 1, d).expand(b, d, hk, d).contiguous()
    kw = s.line.keywords(case)

    def run(seed, v=eye):
        torch.manual_seed(seed)
        return s.line.first(s.line.dense(q, k, v, **kw))

    got, again, other = run(11), run(11), run(12)
    check_form(got, q)
    probs = reference.attention(q, k, eye, case, True)   # (b, sq, h, sk), before dropout
    seen = probs > 1e-6
    keep = (got != 0) | ~seen
    n = int(seen.sum())
    dropped = 1.0 - (keep & seen).sum().item() / n
    slack = 5 * (p * (1 - p) / n) ** 0.5 + 1.0 / 256   # five sigma, and the probability is kept in 8 bits
    if abs(dropped - p) > slack:
        return {"ok": False, "text": "%.4f of the probabilities were dropped, %.2f was asked (at most %.4f off is chance)" % (dropped, p, slack),
                "error": abs(dropped - p), "plain": slack, "ratio": abs(dropped - p) / slack}
    if not torch.equal(got, again):
        return {"ok": False, "text": "the same seed gave two different masks", "error": 1.0, "plain": 0.0, "ratio": 0.0}
    if torch.equal(got, other):
        return {"ok": False, "text": "two seeds gave the same mask", "error": 1.0, "plain": 0.0, "ratio": 0.0}
    mask = keep.permute(0, 2, 1, 3)
    v = s.randn(gen, b, sk, hk, d, dtype=dt)
    tensors = [t.detach().requires_grad_(bool(case.get("backward"))) for t in (q, k, v)]

    def flash(q, k, v):
        torch.manual_seed(11)
        return s.line.first(s.line.dense(q, k, v, **kw))

    result = three_ways(case, tensors, flash, lambda q, k, v: reference.attention(q, k, v, case, True, keep=mask),
                        lambda q, k, v: reference.attention(q, k, v, case, False, keep=mask), gen, s)
    result["text"] += "; %.4f dropped of %.2f" % (dropped, p)
    return result


def same(s, case):
    """The forward pass, and the backward pass when asked to be deterministic, give the same bits each time."""
    gen = s.generator(case)
    tensors = inputs(s, case, gen)
    kw = s.line.keywords(case)
    weight, first = None, None
    for _ in range(3):
        out = s.line.first(s.line.dense(*tensors, **kw))
        check_form(out, tensors[0])
        weight = s.randn(gen, *out.shape, dtype=out.dtype) if weight is None else weight
        got = [out.detach()] + (list(torch.autograd.grad(out, tensors, weight)) if case.get("backward") else [])
        if first is None:
            first = got
        for key, a, e in zip(("out", "dq", "dk", "dv"), first, got):
            if not torch.equal(a, e):
                return {"ok": False, "text": "%s differs from run to run by up to %.2g" % (key, (a.float() - e.float()).abs().max().item()),
                        "error": (a.float() - e.float()).abs().max().item(), "plain": 0.0, "ratio": 0.0}
    exact = reference.attention(*[t.detach() for t in tensors], case, True)
    plain = reference.attention(*[t.detach() for t in tensors], case, False)
    result = summary({"out": reference.compare(first[0], exact, plain, first[0].dtype)})
    result["text"] += "; three runs are equal bit by bit"
    return result


def long(s, case):
    """A long sequence: a few hundred rows of it, from its start, middle and end, against fp32."""
    gen = s.generator(case)
    dt = TYPES[case["dtype"]]
    b, sq, h, hk, d = (case[k] for k in ("b", "sq", "h", "hk", "d"))
    need = (4 * b * sq * h * d * 2 + 6 * 64 * sq * h * 4) >> 20
    if need > s.device.free_mib() * 0.8:
        raise NotRun("needs about %d MiB of the card's memory, %d are free" % (need, s.device.free_mib()))
    q, k, v = (torch.randn(b, sq, n, d, generator=gen, device=s.device.name, dtype=dt) for n in (h, hk, hk))
    got = s.line.first(s.line.dense(q, k, v, **s.line.keywords(case)))
    check_form(got, q)
    some = slice(0, h) if h <= 8 else slice(h - 2, h)   # of many heads the last two: the highest addresses
    ks, vs = (t if h <= 8 else t[:, :, hk - 2:] for t in (k, v))
    parts = {}
    for row0 in sorted({0, sq // 2, sq - 64}):
        rows = slice(row0, row0 + 64)
        ways = [reference.attention(q[:, rows, some], ks, vs, case, upcast, sq=sq, row0=row0) for upcast in (True, False)]
        parts["rows %d…" % row0] = reference.compare(got[:, rows, some], *ways, dt)
    return summary(parts)


def compiled(s, case):
    import torch._dynamo

    gen = s.generator(case)
    tensors = inputs(s, case, gen)
    kw = s.line.keywords(case)
    backend = "inductor" if case.get("inductor") else "aot_eager"

    def f(q, k, v):
        return s.line.first(s.line.dense(q * 1.0, k, v, **kw)) + 0.0

    note = ""
    try:
        fn = torch.compile(f, backend=backend, fullgraph=True)
        fn(*tensors)
    except Exception as e:   # whatever dynamo and its backends may raise
        if "CUDA error" in str(e):
            raise
        torch._dynamo.reset()
        note = "; not as one graph (%s)" % str(e).strip().split("\n")[0][:120]
        fn = torch.compile(f, backend=backend, fullgraph=False)
        try:
            fn(*tensors)
        except Exception as e2:
            if backend == "inductor" and any(w in str(e2) for w in ("ompiler", "Python.h", "gcc", "riton")):
                raise NotRun("torch's inductor cannot compile here: %s" % str(e2).strip().split("\n")[0][:160])
            raise
    result = three_ways(case, tensors, fn, lambda q, k, v: reference.attention(q, k, v, case, True),
                        lambda q, k, v: reference.attention(q, k, v, case, False), gen, s)
    torch._dynamo.reset()
    result["text"] += "; torch.compile, %s%s" % (backend, note)
    return result


def graph(s, case):
    if s.device.name == "cpu":
        raise NotRun("needs a card")
    gen = s.generator(case)
    q, k, v = inputs(s, case, gen)
    kw = s.line.keywords(case)
    q2 = s.randn(gen, *q.shape, dtype=q.dtype)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            s.line.dense(q, k, v, **kw)
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        out = s.line.first(s.line.dense(q, k, v, **kw))
    q.copy_(q2)
    g.replay()
    s.device.sync()
    eager = s.line.first(s.line.dense(q, k, v, **kw))
    if not torch.equal(out, eager):
        return {"ok": False, "text": "a replayed CUDA graph differs from the call by %.2g" % (out - eager).float().abs().max().item(),
                "error": 1.0, "plain": 0.0, "ratio": 0.0}
    result = summary({"out": reference.compare(out, *[reference.attention(q, k, v, case, u) for u in (True, False)], q.dtype)})
    result["text"] += "; captured in a CUDA graph, replayed with other numbers"
    return result


def stream(s, case):
    """On a second stream, with numbers that arrive late there: a call on the wrong stream reads the old ones."""
    if s.device.name == "cpu":
        raise NotRun("needs a card")
    gen = s.generator(case)
    q, k, v = inputs(s, case, gen)
    kw = s.line.keywords(case)
    late = q.clone()
    q.zero_()
    s.device.sync()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        q.copy_(late)
        out = s.line.first(s.line.dense(q, k, v, **kw))
    s.device.sync()
    return summary({"out": reference.compare(out, *[reference.attention(late, k, v, case, u) for u in (True, False)], q.dtype)})


def other_card(s, case):
    if s.device.name == "cpu" or torch.cuda.device_count() < 2:
        raise NotRun("needs a second card")
    gen = s.generator(case)
    there = torch.device("cuda", 1 if s.device.index == 0 else 0)
    q, k, v = (t.to(there) for t in inputs(s, case, gen))
    out = s.line.first(s.line.dense(q, k, v, **s.line.keywords(case)))
    check_form(out, q)
    return summary({"out": reference.compare(out, *[reference.attention(q, k, v, case, u) for u in (True, False)], q.dtype)})


OPS = {"dense": dense, "varlen": varlen, "varlen_qkvpacked": varlen, "varlen_kvpacked": varlen, "qkvpacked": packed,
       "kvpacked": packed, "kvcache": kvcache, "dropout": dropout, "same": same, "long": long, "compile": compiled, "graph": graph,
       "stream": stream, "device": other_card}


def refused(s, case, word):
    """The build left `word` out: the call must say so, and must not return numbers."""
    try:
        OPS[case["op"]](s, case)
        s.device.sync()
    except (RuntimeError, NotImplementedError, ValueError, AssertionError, TypeError) as e:
        first = str(e).strip().split("\n")[0]
        if HONEST.search(first) and "CUDA error" not in first:
            return {"ok": True, "text": "left out (%s) and says so: %s" % (word, first[:200]), "left_out": word}
        return {"ok": False, "text": "%s was left out of this build; the call says something else: %s" % (word, first[:200])}
    return {"ok": False, "text": "%s was left out of this build, and the call returned numbers without a word" % word}


def run(s, case):
    word = s.line.lack(case)
    return refused(s, case, word) if word else OPS[case["op"]](s, case)


def shrink(s, case, tries=24):
    """The simplest case found that is still wrong, by undoing one thing at a time. None after the first few: they are enough."""
    s.shrunk += 1
    if s.shrunk > 4:
        return None
    found = dict(case)
    moved = True
    while moved and tries > 0:
        moved = False
        for c in smaller(found):
            tries -= 1
            if tries < 0:
                break
            try:
                if not run(s, c)["ok"]:
                    found, moved = c, True
                    break
            except Exception:   # another fault: not the one that is looked for
                continue
    return found
