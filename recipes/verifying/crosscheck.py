"""Is the fp32 attention that everything is compared with right itself? Against fp64, and against kernels/reference, a CUDA program
that shares no code with torch."""

import os
import struct
import subprocess
import tempfile

import torch

from . import reference

BOUND = 5e-5   # fp32 sums of a few hundred products of numbers of size 1, an exponential between them


def inputs(s):
    gen = torch.Generator(device=s.device.name).manual_seed(7)
    return [torch.randn(2, n, h, 64, generator=gen, device=s.device.name) for n, h in ((96, 4), (160, 2), (160, 2))]


def by_program(path, q, k, v, causal):
    """Header of ten 32-bit integers ("FAR1", b, sq, sk, h, hk, d, causal, left, right), then q, k, v as fp32; out comes back."""
    b, sq, h, d = q.shape
    head = b"FAR1" + struct.pack("<9i", b, sq, k.shape[1], h, k.shape[2], d, int(causal), -1, -1)
    with tempfile.TemporaryDirectory() as folder:
        there, back = os.path.join(folder, "in"), os.path.join(folder, "out")
        with open(there, "wb") as f:
            f.write(head)
            for t in (q, k, v):
                f.write(bytes(memoryview(t.contiguous().cpu().view(-1).numpy())) if has_numpy() else raw(t))
        p = subprocess.run([path, there, back], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
        if p.returncode != 0:
            raise RuntimeError("%s: %s" % (os.path.basename(path), (p.stderr or p.stdout).strip()[:200] or "exit %d" % p.returncode))
        with open(back, "rb") as f:
            data = bytearray(f.read())
    return torch.frombuffer(data, dtype=torch.float32).view(b, sq, h, d).to(q.device)


def has_numpy():
    try:
        import numpy   # noqa: F401
    except ImportError:
        return False
    return True


def raw(t):
    t = t.contiguous().cpu().view(-1)
    return struct.pack("<%df" % t.numel(), *t.tolist())


def run(s, kernels):
    q, k, v = inputs(s)
    worst, by = 0.0, ["fp64"]
    program = os.path.join(kernels, "reference") if kernels else ""
    with_program = s.device.name != "cpu" and program and os.access(program, os.X_OK)
    for causal in (False, True):
        case = {"causal": causal}
        ours = reference.attention(q, k, v, case)
        exact = reference.attention(q.double(), k.double(), v.double(), case)
        worst = max(worst, (ours.double() - exact).abs().max().item())
        if with_program:
            worst = max(worst, (ours - by_program(program, q, k, v, causal)).abs().max().item())
    if with_program:
        by.append("kernels/reference (CUDA, without torch)")
    return {"ok": worst <= BOUND, "error": worst, "against": by,
            "text": "fp32 differs from %s by at most %.1g (bound %.0g)" % (" and ".join(by), worst, BOUND)}
