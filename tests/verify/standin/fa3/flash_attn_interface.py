"""Stands in for flash_attn_interface (FA3): its names and arguments, over the numbers of the stand-in of FA2. No dropout, no ALiBi."""

import flash_attn_3_numbers as n


def flash_attn_func(q, k, v, softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None,
                    window_size=(-1, -1), attention_chunk=0, softcap=0.0, num_splits=1, pack_gqa=None, deterministic=False, sm_margin=0):
    if n.FAULT != "left_out_silently" and (q.requires_grad or k.requires_grad or v.requires_grad):
        q, k, v = (n.Gradient.apply(x, no_backward) for x in (q, k, v))
    return n.attend(q, k, v, 0.0, softmax_scale, causal, window_size, softcap)


def no_backward(g):
    raise RuntimeError("This flash attention build does not support backward.")


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q=None, seqused_k=None, page_table=None,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, num_splits=1, deterministic=False):
    return n.ragged(q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_k, page_table, softmax_scale, causal, window_size, softcap)


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, qv=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
                            cache_batch_idx=None, cache_leftpad=None, page_table=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0, rotary_interleaved=True, num_splits=0, return_softmax_lse=False):
    return n.flash_attn_with_kvcache(q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens, cache_batch_idx, cache_leftpad,
                                     page_table, softmax_scale, causal, window_size, softcap, rotary_interleaved)
