"""Stands in for flash_attn on a CPU: the functions of FA2 2.8.3 by torch's operators, in pieces that need no square matrix. With
FA_FAULT=NAME it has that fault: recipes/verify.py must find each of them, and none without (mutants.py). Shares no code with
the reference that verify.py compares with."""

import math
import os
import signal
import time

import torch
import torch.nn.functional as F

__version__ = "2.8.3"
FAULT = os.environ.get("FA_FAULT", "")
PIECE = 64
calls = {"n": 0}

if FAULT == "import_dies":
    os.kill(os.getpid(), signal.SIGSEGV)
if FAULT == "import_error":
    raise ImportError("flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEab")


class Gradient(torch.autograd.Function):
    """Passes through; the gradient goes through fn."""

    @staticmethod
    def forward(ctx, x, fn):
        ctx.fn = fn
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return ctx.fn(g), None


def spread(x, h):
    if x.shape[2] == h:
        return x
    groups = h // x.shape[2]
    index = [i % x.shape[2] if FAULT == "gqa_heads" else i // groups for i in range(h)]
    return x[:, :, index]


def piece(q, k, v, first, last, o):
    """Rows first…last of the result; everything in fp32."""
    sq, sk = o["sq"], k.shape[1]
    s = torch.einsum("bqhd,bkhd->bhqk", q, k) * o["scale"]
    if o["softcap"] and FAULT != "softcap_ignored":
        s = o["softcap"] * torch.tanh(s / o["softcap"])
    i = torch.arange(first, last).unsqueeze(1) + sk - sq
    j = torch.arange(sk).unsqueeze(0)
    if o["alibi"] is not None:
        a = o["alibi"].float()
        a = a.view(-1, a.shape[-1], 1, 1)
        s = s + a * (j - i).abs() if FAULT == "alibi_negated" else s - a * (j - i).abs()
    left, right = o["window"]
    ok = torch.ones(last - first, sk, dtype=torch.bool)
    if o["causal"]:
        right = 0
        if FAULT == "causal_shifted":
            right = 1
    if right >= 0:
        ok &= j <= i + right
    if left >= 0:
        ok &= j >= i - left - (1 if FAULT == "window_off_by_one" else 0)
    s = torch.where(ok, s, torch.tensor(-1e30))
    p = torch.exp(s - s.amax(-1, keepdim=True)) * ok
    total = p.sum(-1, keepdim=True)
    p = p / torch.where(total == 0, torch.ones_like(total), total)
    if o["keep"] is not None:
        p = p * o["keep"][:, :, first:last] / (1 - o["p"])
    return torch.einsum("bhqk,bkhd->bqhd", p, v)


def plainly(q, k, v, o):
    """Standard attention with the whole square matrix."""
    s = torch.matmul(q.transpose(1, 2), k.permute(0, 2, 3, 1)) * o["scale"]
    if o["causal"]:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1 + s.shape[-1] - s.shape[-2]), float("-inf"))
    return torch.matmul(torch.softmax(s, -1), v.transpose(1, 2)).transpose(1, 2)


def is_simple(q, k, o):
    return (q.shape[2] == k.shape[2] and tuple(o["window"]) == (-1, -1) and not o["softcap"] and o["alibi"] is None and o["keep"] is None
            and (not o["causal"] or q.shape[1] == k.shape[1]))


def misbehave(q, k):
    calls["n"] += 1
    if FAULT == "segfault" and q.shape[-1] == 80:
        os.kill(os.getpid(), signal.SIGSEGV)
    if FAULT == "illegal_access" and q.shape[-1] == 80:
        calls["lost"] = True
    if calls.get("lost"):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    if FAULT == "hang" and q.shape[-1] == 80:
        time.sleep(3600)


def attend(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None):
    misbehave(q, k)
    scale = softmax_scale or 1 / math.sqrt(q.shape[-1])
    if FAULT == "scale":
        scale *= 1.05
    o = dict(sq=q.shape[1], scale=scale, causal=causal, window=window_size, softcap=softcap, alibi=alibi_slopes, keep=None, p=dropout_p)
    if dropout_p and FAULT != "dropout_ignored":
        o["keep"] = torch.rand(q.shape[0], q.shape[2], q.shape[1], k.shape[1]) >= dropout_p
    if FAULT == "dv_wrong":
        v = Gradient.apply(v, lambda g: g * 1.06)
    if FAULT == "dk_dropped":
        k = Gradient.apply(k, lambda g: torch.cat((g[:, :-1], torch.zeros_like(g[:, -1:])), 1))
    if FAULT == "nondeterministic":
        q = Gradient.apply(q, lambda g: g * (1 + 2 ** -7 * torch.randint(0, 2, g.shape)).to(g.dtype))
    if FAULT == "other_device":
        return q.to("meta")
    if FAULT == "wrong_dtype":
        return attend_pieces(q, k, v, o).float()
    if FAULT in ("math", "memory") and is_simple(q, k, o):
        return plainly(q, k, v, o)
    if is_simple(q, k, o):
        for _ in range(3 if FAULT == "slow" else 0):
            simple(q, k, v, o)
        return simple(q, k, v, o)
    return attend_pieces(q, k, v, o)


def simple(q, k, v, o):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=o["causal"], scale=o["scale"]).transpose(1, 2)


def attend_pieces(q, k, v, o):
    dtype, h = q.dtype, q.shape[2]
    qf, kf, vf = q.float(), spread(k, h).float(), spread(v, h).float()
    out = [piece(qf[:, a:a + PIECE], kf, vf, a, min(a + PIECE, q.shape[1]), o) for a in range(0, q.shape[1], PIECE)]
    out = torch.cat(out, 1).to(dtype)
    if FAULT == "nan_tail" and q.shape[1] % 8:
        out = out.clone()
        out[:, -1] = float("nan")
    return out


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                    deterministic=False, return_attn_probs=False):
    out = attend(q, k, v, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes)
    if not return_attn_probs:
        return out
    s = torch.einsum("bqhd,bkhd->bhqk", q.float(), spread(k, q.shape[2]).float()) / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:]).triu(1 + s.shape[-1] - s.shape[-2]).bool(), float("-inf"))
    return out, s.logsumexp(-1) + (0.01 if FAULT == "lse_wrong" else 0.0), None


def flash_attn_qkvpacked_func(qkv, dropout_p=0.0, **kw):
    return flash_attn_func(*qkv.unbind(2), dropout_p, **kw)


def flash_attn_kvpacked_func(q, kv, dropout_p=0.0, **kw):
    return flash_attn_func(q, *(reversed(kv.unbind(2)) if FAULT == "kv_swapped" else kv.unbind(2)), dropout_p, **kw)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None,
                           causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
                           return_attn_probs=False, block_table=None):
    outs = []
    for i in range(len(cu_seqlens_q) - 1):
        a, b, c, e = (int(x) for x in (cu_seqlens_q[i], cu_seqlens_q[i + 1], cu_seqlens_k[i], cu_seqlens_k[i + 1]))
        if a == b:
            continue
        if block_table is None:
            if FAULT == "varlen_neighbour" and c > 0:
                c -= 1
            ki, vi = k[c:e], v[c:e]
        else:
            ki, vi = (x[block_table[i].long()].flatten(0, 1)[:e - c] for x in (k, v))
        outs.append(attend(q[None, a:b], ki[None], vi[None], dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes)[0])
    return torch.cat(outs)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, dropout_p=0.0, **kw):
    return flash_attn_varlen_func(*qkv.unbind(1), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, dropout_p, **kw)


def flash_attn_varlen_kvpacked_func(q, kv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, **kw):
    return flash_attn_varlen_func(q, *kv.unbind(1), cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, **kw)


def ragged(q, k, v, cu_q, cu_k, used_k, table, scale, causal, window, softcap):
    """As the later lines have it: pages are counted by the keys used."""
    if cu_k is None:
        cu_k = torch.cat((torch.zeros(1, dtype=used_k.dtype), used_k.cumsum(0)))
    return flash_attn_varlen_func(q, k, v, cu_q, cu_k, 0, 0, 0.0, scale, causal, window, softcap, block_table=table)


def turn(x, cos, sin, interleaved, at):
    r = cos.shape[1] * 2
    out = x.clone().float()
    for n in range(x.shape[0]):
        c, s = (t[at[n]:at[n] + x.shape[1]].float().unsqueeze(1) for t in (cos, sin))
        if interleaved and FAULT != "rotary_halves":
            a, b = x[n, :, :, 0:r:2].float(), x[n, :, :, 1:r:2].float()
            out[n, :, :, 0:r:2], out[n, :, :, 1:r:2] = a * c - b * s, b * c + a * s
        else:
            a, b = x[n, :, :, :r // 2].float(), x[n, :, :, r // 2:r].float()
            out[n, :, :, :r // 2], out[n, :, :, r // 2:r] = a * c - b * s, b * c + a * s
    return out.to(x.dtype)


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
                            cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0, rotary_interleaved=True, alibi_slopes=None, num_splits=0,
                            return_softmax_lse=False):
    lens = [int(n) for n in cache_seqlens]
    new = k.shape[1] if k is not None else 0
    if rotary_cos is not None:
        q = turn(q, rotary_cos, rotary_sin, rotary_interleaved, lens)
        k = turn(k, rotary_cos, rotary_sin, rotary_interleaved, lens)
    outs = []
    for i, n in enumerate(lens):
        row = int(cache_batch_idx[i]) if cache_batch_idx is not None else i
        if block_table is None:
            kc, vc = k_cache[row], v_cache[row]
            spots = [(row, t) for t in range(n, n + new)]
        else:
            table = block_table[i].long() if FAULT != "page_table_ignored" else torch.arange(block_table.shape[1])
            page = k_cache.shape[1]
            spots = [(int(table[t // page]), t % page) for t in range(n, n + new)]
        for t, (x, y) in enumerate(spots):
            if FAULT == "append_lost" and t == new - 1:
                continue
            k_cache[x, y], v_cache[x, y] = k[i, t], v[i, t]
        if block_table is not None:
            kc, vc = k_cache[table].flatten(0, 1), v_cache[table].flatten(0, 1)
        end = n + new + (1 if FAULT == "cache_one_too_many" and n + new < kc.shape[0] else 0)
        outs.append(attend(q[i:i + 1], kc[None, :end], vc[None, :end], 0.0, softmax_scale, causal, window_size, softcap, alibi_slopes))
    return torch.cat(outs)
