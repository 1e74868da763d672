"""Is Flash-Attention what really runs? The profiler names the kernels; silent fallbacks of the packages around it are looked for."""

import importlib.util
import os

import torch

from .device import kind_of
from .numbers import NotRun, TYPES


def tensors(s, case, grad):
    gen = s.generator(case)
    return [s.randn(gen, case["b"], case["sq"], n, case["d"], dtype=TYPES[case["dtype"]]).requires_grad_(grad)
            for n in (case["h"], case["hk"], case["hk"])]


def verdict(names, own, what):
    """Kernels seen, as a finding."""
    if not names:
        raise NotRun("the profiler saw no kernels: it needs CUPTI and the permission to read counters")
    kinds = {n: kind_of(n) for n in names}
    seen = [k for k in dict.fromkeys(kinds.values()) if k]
    mine = [n for n in names if kinds[n] in own]
    foreign = [k for k in seen if k not in own and k != "matmul"]
    math = "softmax" in seen or ("matmul" in seen and not mine)
    text = "%s: %s" % (what, short(mine[0]) if mine else "no flash kernel")
    if mine and not foreign:
        return {"ok": True, "text": text, "kernels": [n[:200] for n in names[:12]], "kinds": seen}
    by = "standard attention (math)" if math else ", ".join(foreign) or "something unknown (%s)" % short(names[0])
    return {"ok": False, "text": "%s was computed by %s, not by Flash-Attention's kernels" % (what, by),
            "kernels": [n[:200] for n in names[:12]], "kinds": seen}


def short(name):
    """void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<…>…>(…) -> flash::flash_fwd_kernel"""
    head = name.split("<")[0].split("(")[0].strip()
    if head == "void cutlass::device_kernel":   # FA3: what counts is inside the brackets
        return name.split("<", 1)[1][:80]
    return (head[5:] if head.startswith("void ") else head)[:80]


def forward(s, case):
    q, k, v = tensors(s, case, False)
    kw = s.line.keywords(case)
    s.line.dense(q, k, v, **kw)
    s.device.sync()
    return verdict(s.device.kernels(lambda: s.line.dense(q, k, v, **kw)), s.device.own, "forward")


def backward(s, case):
    q, k, v = tensors(s, case, True)
    out = s.line.first(s.line.dense(q, k, v, **s.line.keywords(case)))
    weight = torch.ones_like(out)
    torch.autograd.grad(out, (q, k, v), weight, retain_graph=True)
    s.device.sync()
    names = s.device.kernels(lambda: torch.autograd.grad(out, (q, k, v), weight, retain_graph=True))
    return verdict(names, s.device.own, "backward")


def sdpa(s, case):
    """What torch's own attention chooses for ordinary tensors; math would mean that torch itself has no fast kernel here."""
    q, k, v = (t.transpose(1, 2) for t in tensors(s, case, False))
    call = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(case.get("causal")))   # noqa: E731
    call()
    s.device.sync()
    names = s.device.kernels(call)
    if not names:
        raise NotRun("the profiler saw no kernels")
    kinds = [kind_of(n) for n in names]
    best = next((k for k in kinds if k not in ("", "softmax", "matmul")), "math")
    if best == "math" and "softmax" not in kinds:
        best = "a kernel of unknown kind (%s)" % short(names[0])
    ok = best != "math"
    return {"ok": ok, "chosen": best, "text": "torch's SDPA %s" % ("runs as %s" % best if ok else "falls back to math here"),
            "kernels": [n[:200] for n in names[:6]]}


def hip_backend(s, case):
    """On AMD the Triton backend needs its variable each time, not only when it was installed."""
    if not s.device.hip:
        raise NotRun("only on AMD")
    chosen = os.environ.get("FLASH_ATTENTION_TRITON_AMD_ENABLE", "FALSE") == "TRUE"
    compiled = importlib.util.find_spec("flash_attn_2_cuda") is not None
    if chosen or compiled:
        return {"ok": True, "text": "backend: %s" % ("Triton" if chosen else "Composable Kernel")}
    return {"ok": False, "text": "the Triton backend was installed, and FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE is not set at run time"}


def transformers(s, case):
    """A tiny model that asks for flash_attention_2: does it get it?"""
    if importlib.util.find_spec("transformers") is None:
        raise NotRun("transformers is not in this environment")
    if s.line.name != "fa2" or s.device.name == "cpu":
        raise NotRun("transformers' flash_attention_2 is FA2 on a card")
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import is_flash_attn_2_available

    if not is_flash_attn_2_available():
        return {"ok": False, "text": "transformers does not see flash-attn (is_flash_attn_2_available() is False): models fall back"}
    config = LlamaConfig(vocab_size=64, hidden_size=4 * case["d"], intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
                         num_key_value_heads=4, max_position_embeddings=256)
    config._attn_implementation = "flash_attention_2"
    model = LlamaForCausalLM(config).to(s.device.name, TYPES[case["dtype"]]).eval()
    ids = torch.randint(0, 64, (1, 128), device=s.device.name)
    with torch.no_grad():
        model(ids)
        names = s.device.kernels(lambda: model(ids))
    mine = [n for n in names if kind_of(n) in s.device.own]
    return {"ok": bool(mine), "text": "transformers: a model with flash_attention_2 %s" % (
        "runs %s" % short(mine[0]) if mine else "ran no flash kernel: it fell back silently"), "kernels": [n[:120] for n in names[:8]]}


def diffusers(s, case):
    if importlib.util.find_spec("diffusers") is None:
        raise NotRun("diffusers is not in this environment")
    from diffusers.utils import is_flash_attn_available

    ok = bool(is_flash_attn_available())
    return {"ok": ok, "text": "diffusers %s flash-attn" % ("sees" if ok else "does not see")}


CHECKS = {"forward": forward, "backward": backward, "sdpa": sdpa, "hip backend": hip_backend, "transformers": transformers,
          "diffusers": diffusers}


def run(s, what, case):
    return CHECKS[what](s, case)


def items(line, device, mode, base):
    out = ["forward"]
    if not line.lack(dict(base, backward=True)):
        out.append("backward")
    out.append("sdpa")
    if device.hip:
        out.append("hip backend")
    for package in ("transformers", "diffusers") if mode != "quick" else ():
        if importlib.util.find_spec(package) is not None:
            out.append(package)
    return out


