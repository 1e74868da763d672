"""Attention as the textbook has it, in any precision, and the bound that a fast version must keep. Shares nothing with
Flash-Attention; the fp32 result is itself checked against fp64 and against kernels/reference.cu."""

import math

import torch

# Sums of hundreds of products of numbers of size 1 in fp32, in another order: what is exactly 0 in one order is not in the other.
REORDERED, REORDERED_RMS = 1e-4, 2e-5

# Width of one unit in the last place relative to the number, at its largest.
ULP = {torch.float16: 2.0 ** -10, torch.bfloat16: 2.0 ** -7, torch.float32: 2.0 ** -23}


def repeat_heads(x, h):
    """(b, s, hk, d) -> (b, s, h, d): query head i reads key head i // (h / hk)."""
    return x if x.shape[2] == h else x.repeat_interleave(h // x.shape[2], dim=2)


def positions(sq, sk, row0, rows, device):
    """Column minus row, rows counted from the end so that the last query sees the last key (bottom right alignment)."""
    row = torch.arange(row0, row0 + rows, device=device).view(-1, 1) + (sk - sq)
    return torch.arange(sk, device=device).view(1, -1) - row


def forbidden(case, offset):
    """True where a key must not be seen; None: everything may be seen."""
    bad = None
    left, right = case.get("window") or (-1, -1)
    if case.get("causal"):
        right = 0
    if right >= 0:
        bad = offset > right
    if left >= 0:
        bad = offset < -left if bad is None else bad | (offset < -left)
    return bad


def attention(q, k, v, case, upcast=True, alibi=None, keep=None, sq=None, row0=0):
    """(b, s, h, d) in and out. upcast: computed in fp32 (or what q is already, if wider); else all in q's own dtype, which is
    "the plain version". keep: the mask of dropout, 1 where kept, (b, h, sq, sk). sq and row0: q holds rows row0… of sq."""
    dtype = q.dtype
    if upcast and dtype != torch.float64:
        q, k, v = q.float(), k.float(), v.float()
    sq = sq or q.shape[1]
    h, sk = q.shape[2], k.shape[1]
    k, v = repeat_heads(k, h), repeat_heads(v, h)
    scale = case.get("scale") or 1.0 / math.sqrt(q.shape[3])
    scores = torch.matmul((q * scale).transpose(1, 2), k.permute(0, 2, 3, 1))
    if case.get("softcap"):
        scores = torch.tanh(scores / case["softcap"]) * case["softcap"]
    offset = positions(sq, sk, row0, q.shape[1], q.device)
    if alibi is not None:
        slopes = alibi if alibi.dim() == 2 else alibi.unsqueeze(0)
        scores = scores + (-slopes[:, :, None, None] * offset.abs()).to(scores.dtype)
    bad = forbidden(case, offset)
    if bad is not None:
        scores = scores.masked_fill(bad, float("-inf"))
    p = torch.softmax(scores, dim=-1)
    if bad is not None:
        p = p.masked_fill(bad.all(dim=-1, keepdim=True), 0.0)   # a query that sees nothing gives 0
    if keep is not None:
        p = p * keep.to(p.dtype) / (1.0 - case["dropout"])
    out = torch.matmul(p, v.transpose(1, 2)).transpose(1, 2)
    return out if upcast else out.to(dtype)


def logsumexp(q, k, case):
    scale = case.get("scale") or 1.0 / math.sqrt(q.shape[3])
    k = repeat_heads(k, q.shape[2])
    scores = torch.matmul((q.float() * scale).transpose(1, 2), k.float().permute(0, 2, 3, 1))
    bad = forbidden(case, positions(q.shape[1], k.shape[1], 0, q.shape[1], q.device))
    return torch.logsumexp(scores if bad is None else scores.masked_fill(bad, float("-inf")), dim=-1)


def standard(q, k, v, causal):
    """What people write without Flash-Attention; for time and memory. The mask is added in place where nothing is learnt."""
    scale = 1.0 / math.sqrt(q.shape[3])
    scores = torch.matmul((q * scale).transpose(1, 2), k.permute(0, 2, 3, 1))
    if causal:
        mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device).triu(1 + k.shape[1] - q.shape[1])
        scores = scores.masked_fill(mask, float("-inf")) if scores.requires_grad else scores.masked_fill_(mask, float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=-1), v.transpose(1, 2)).transpose(1, 2)


def rotate(x, cos, sin, interleaved, first):
    """Rotary embedding of (b, s, h, d) at positions first[b]…; cos, sin (positions, rotary_dim / 2)."""
    half = cos.shape[1]
    at = first.view(-1, 1) + torch.arange(x.shape[1], device=x.device).view(1, -1)
    c, s = cos.float()[at].unsqueeze(2), sin.float()[at].unsqueeze(2)
    part, rest = x[..., :2 * half].float(), x[..., 2 * half:]
    if interleaved:
        a, b = part[..., 0::2], part[..., 1::2]
        turned = torch.stack((a * c - b * s, a * s + b * c), dim=-1).flatten(-2)
    else:
        a, b = part[..., :half], part[..., half:]
        turned = torch.cat((a * c - b * s, a * s + b * c), dim=-1)
    return torch.cat((turned.to(x.dtype), rest), dim=-1)


def compare(got, exact, plain, dtype):
    """How far `got` is from fp32, against how far the plain version is. Bound: twice the plain version's own error, plus a floor
    for the one rounding of the result to its dtype, which no version can avoid: one unit in the last place of the largest number,
    and for sums in another order. The same for the root mean square, which sees small errors that lie everywhere (floor: half a
    unit of the mean size)."""
    finite = bool(torch.isfinite(got).all())
    got, plain = got.float(), plain.float()
    exact = exact.float()
    if exact.numel() == 0:
        return {"error": 0.0, "plain": 0.0, "ratio": 0.0, "bound": 0.0, "ok": True}
    diff, pdiff = (got - exact).abs(), (plain - exact).abs()
    numbers = torch.stack((diff.max(), pdiff.max(), exact.abs().max(), diff.pow(2).mean().sqrt(), pdiff.pow(2).mean().sqrt(),
                           exact.pow(2).mean().sqrt())).tolist()   # one trip to the device
    error, perror, size, rms, prms, rsize = numbers
    bound = 2 * perror + ULP[dtype] * size + REORDERED
    rbound = 2 * prms + ULP[dtype] / 2 * rsize + REORDERED_RMS
    return {"error": error, "plain": perror, "ratio": error / max(perror, bound / 4), "bound": bound, "rms": rms, "rms_plain": prms, "rms_bound": rbound,
            "ok": finite and error <= bound and rms <= rbound}
