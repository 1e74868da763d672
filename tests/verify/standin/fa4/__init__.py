"""Stands in for flash_attn.cute (FA4): the names, the arguments and the results of its interface, over the numbers of the stand-in
of FA2. No dropout, no ALiBi, no KV cache; None for an open window; always (out, lse)."""

from . import numbers as n


def window(w):
    return tuple(-1 if x is None else x for x in w)


def flash_attn_func(q, k, v, qv=None, softmax_scale=None, causal=False, window_size=(None, None), learnable_sink=None, softcap=0.0,
                    num_splits=1, pack_gqa=None, deterministic=False, return_lse=False):
    out = n.attend(q, k, v, 0.0, softmax_scale, causal, window(window_size), softcap)
    lse = n.flash_attn_func(q, k, v, causal=causal, return_attn_probs=True)[1] if return_lse else None
    return out, lse


def flash_attn_varlen_func(q, k, v, qv=None, cu_seqlens_q=None, cu_seqlens_k=None, max_seqlen_q=None, max_seqlen_k=None, seqused_q=None,
                           seqused_k=None, page_table=None, softmax_scale=None, causal=False, window_size=(None, None), softcap=0.0,
                           num_splits=1, deterministic=False, return_lse=False):
    if page_table is not None and cu_seqlens_k is not None:
        raise ValueError("page_table is not supported with cu_seqlens_k")
    return n.ragged(q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, page_table, softmax_scale, causal, window(window_size), softcap), None
