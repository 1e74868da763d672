"""The device that cases run on: a CUDA or HIP card, or, for testing this script itself with stand-in modules, the CPU."""

import math
import re
import time

import torch

# What ran, by the names that the profiler saw; the first that matches counts. Names of CUDA kernels, HIP kernels and, on the CPU,
# of operators.
KINDS = [
    ("torch's own flash", r"pytorch_flash::"),
    ("cuDNN", r"cudnn"),
    ("memory-efficient", r"fmha_cutlass|PyTorchMemEff|efficient_attention"),
    ("flash", r"flash_(?:fwd|bwd)|flash_attn|FlashAttn|FlashAttention|Fmha|fmha_(?:fwd|bwd)|_scaled_dot_product_flash_attention"),
    ("triton", r"triton|_attn_fwd|attn_fwd|bwd_kernel"),
    ("softmax", r"softmax"),
    ("matmul", r"gemm|cutlass|cublas|nvjet|xmma|splitK|aten::bmm|aten::baddbmm|Cijk"),
]
KINDS = [(kind, re.compile(pattern, re.I)) for kind, pattern in KINDS]


def kind_of(name):
    return next((kind for kind, pattern in KINDS if pattern.search(name)), "")


class Cuda:
    own = ("flash", "triton")   # what Flash-Attention may run as

    def __init__(self, index=0):
        self.index = index
        self.name = "cuda:%d" % index
        torch.cuda.set_device(index)
        p = torch.cuda.get_device_properties(index)
        self.hip = bool(torch.version.hip)
        self.arch = p.gcnArchName.split(":")[0] if self.hip else "%d%d" % (p.major, p.minor)
        self.title, self.memory_mib = p.name, p.total_memory >> 20
        self.processors = p.multi_processor_count

    def describe(self):
        return {"name": self.title, "arch": self.arch, "memory_mib": self.memory_mib, "free_mib": self.free_mib(),
                "processors": self.processors, "count": torch.cuda.device_count(), "cuda": torch.version.cuda,
                "hip": torch.version.hip, "torch_archs": torch.cuda.get_arch_list()}

    def free_mib(self):
        return torch.cuda.mem_get_info(self.index)[0] >> 20

    def sync(self):
        torch.cuda.synchronize(self.index)

    def tidy(self):
        torch.cuda.empty_cache()

    def extra_mib(self, fn):
        """Memory that fn needs beyond what is there already, MiB."""
        self.sync()
        torch.cuda.reset_peak_memory_stats(self.index)
        before = torch.cuda.memory_allocated(self.index)
        out = fn()
        self.sync()
        peak = torch.cuda.max_memory_allocated(self.index)
        del out
        return (peak - before) / 2 ** 20

    def kernels(self, fn):
        """Names of the kernels that fn runs, each once, in order."""
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            fn()
            self.sync()
        on_card = [e.name for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA]
        return [n for n in dict.fromkeys(on_card) if not re.match(r"(Memcpy|Memset|Memory)", n, re.I)]

    def group_ms(self, fn, n):
        """Starts n runs between two marks; returns a function that reads the time of one, ms."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(n):
            fn()
        end.record()
        return lambda: start.elapsed_time(end) / n


class Cpu:
    own = ("flash",)
    hip = False

    def __init__(self):
        self.name, self.title, self.arch, self.memory_mib, self.index = "cpu", "CPU (stand-in)", "cpu", 0, 0

    def describe(self):
        return {"name": self.title, "arch": "cpu", "memory_mib": 0, "free_mib": self.free_mib(), "count": 0}

    def free_mib(self):
        return 512

    def sync(self):
        pass

    def tidy(self):
        pass

    def extra_mib(self, fn):
        """On the CPU: the largest tensor that any operator makes, which is what the square matrix of attention would be."""
        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.utils._pytree import tree_leaves

        class Largest(TorchDispatchMode):
            size = 0

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                for t in tree_leaves(out):
                    if isinstance(t, torch.Tensor):
                        self.size = max(self.size, t.numel() * t.element_size())
                return out

        with Largest() as mode:
            fn()
        return mode.size / 2 ** 20

    def kernels(self, fn):
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU]) as prof:
            fn()
        return [n for n in dict.fromkeys(e.name for e in prof.events()) if kind_of(n)]

    def group_ms(self, fn, n):
        start = time.perf_counter()
        for _ in range(n):
            fn()
        ms = (time.perf_counter() - start) * 1e3 / n
        return lambda: ms


def median_with_interval(times):
    """Median and the 95 % interval of it by order statistics: no shape of the distribution is assumed."""
    t = sorted(times)
    n = len(t)
    half = 1.96 * math.sqrt(n) / 2
    low, high = max(0, math.floor(n / 2 - half)), min(n - 1, math.ceil(n / 2 + half))
    mid = t[n // 2] if n % 2 else (t[n // 2 - 1] + t[n // 2]) / 2
    return mid, t[low], t[high]


def measure(device, fn, budget_s):
    """Median time of fn in ms with its interval, after warming up until three groups in a row agree within 2 %."""
    fn()
    device.sync()
    start = time.perf_counter()
    read = device.group_ms(fn, 2)
    device.sync()
    once = max(read(), 1e-3)
    n = max(1, min(200, int(2.0 / once)))
    warm, groups = [], 0
    while time.perf_counter() - start < budget_s / 2 or groups < 3:
        read = device.group_ms(fn, n)
        device.sync()
        warm.append(read())
        groups += 1
        if groups >= 3 and max(warm[-3:]) <= 1.02 * min(warm[-3:]):
            break
    runs = max(5, min(40, int(budget_s * 1e3 / (n * warm[-1] + 1e-3))))
    reads = [device.group_ms(fn, n) for _ in range(runs)]
    device.sync()
    ms, low, high = median_with_interval([r() for r in reads])
    return {"ms": ms, "low": low, "high": high, "runs": runs * n}


def choose(name):
    if name == "cpu":
        return Cpu()
    return Cuda(int(name.split(":")[1]) if ":" in name else 0)
