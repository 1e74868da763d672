"""Stands in for upstream's tests: parameters of the same names, on a CPU against the stand-in of flash_attn."""

import os
import signal
import time

import pytest
import torch
from flash_attn import flash_attn_func

from test_util import scale

FAULT = os.environ.get("FA_UPSTREAM_FAULT", "")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [32, 59, 64, 128])
@pytest.mark.parametrize("seqlen_q,seqlen_k", [(1, 2), (7, 7), (9, 33)])
@pytest.mark.parametrize("dropout_p", [0.0, 0.17])
def test_flash_attn_output(seqlen_q, seqlen_k, d, causal, dropout_p, dtype):
    if seqlen_q == 1 and causal:
        pytest.skip("as upstream skips some")
    q = torch.randn(1, seqlen_q, 2, d, dtype=dtype, requires_grad=True)
    k, v = (torch.randn(1, seqlen_k, 2, d, dtype=dtype) for _ in range(2))
    out = flash_attn_func(q, k, v, dropout_p, causal=causal)
    torch.autograd.grad(out, q, torch.ones_like(out))
    if dropout_p == 0.0 and not causal:
        s = torch.softmax(torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float()) * scale(d), -1)
        assert (torch.einsum("bhqk,bkhd->bqhd", s, v.float()) - out.float()).abs().max() < 0.02


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("dtype", [torch.bfloat16])
def test_flash_attn_last(d, dtype):
    if d == 64 and FAULT == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if d == 64 and FAULT == "illegal":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    if d == 64 and FAULT == "hangs":
        time.sleep(3600)
    assert d != 64 or FAULT != "wrong", "planted"
