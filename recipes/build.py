"""Runs upstream's setup.py, unchanged, and narrows on the way what it compiles.

usage: build.py JOB.json        (under the interpreter of the target environment; standard library only)

The list of sources that setup.py hands to CUDAExtension is read and replaced: kernels that the profile leaves out become one
generated C++ file of functions that say so; the units that are kept are taken apart where that is worth it. Lines on
stdout that begin with "fainstall " carry one JSON object for the program that called."""

import glob
import importlib.machinery
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import traceback
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profile_ck as ck  # noqa: E402
import profile_hopper as hopper  # noqa: E402
import profile_units as units  # noqa: E402


LINE = 30000  # bytes; what is longer goes through a file


def tell(**what):
    text = json.dumps(what, sort_keys=True)
    if len(text) > LINE and os.environ.get("FAINSTALL_GATE_DIR"):
        path = os.path.join(os.environ["FAINSTALL_GATE_DIR"], "told.json")
        units.write_if_changed(path, text)
        text = json.dumps({"in": path})
    print("fainstall " + text, flush=True)


class Stop(Exception):
    """A sentence for the reader, and the next step."""

    def __init__(self, text, step=""):
        super().__init__(text)
        self.step = step


# ---- torch without torch: its cpp_extension.py and version.py run, its libraries are never loaded


class No(types.ModuleType):
    """Answers "no" to whatever setup.py or cpp_extension.py asks: torch.xpu._is_compiled(), torch.backends.mps.is_built(), …"""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return No(name)

    def __call__(self, *args, **kwargs):
        return False

    def __bool__(self):
        return False


def torch_folder():
    for folder in sys.path:
        if os.path.isfile(os.path.join(folder or ".", "torch", "version.py")):
            return os.path.abspath(os.path.join(folder, "torch"))
    raise Stop("torch is not in the environment of %s" % sys.executable, "install torch there first")


def cxx11_abi(folder):
    """What torch's own CMake file says; without a word in it (2.7 and later) the new one."""
    try:
        with open(os.path.join(folder, "share/cmake/Torch/TorchConfig.cmake"), encoding="utf-8") as f:
            m = re.search(r"-D_GLIBCXX_USE_CXX11_ABI=([01])", f.read())
    except OSError:
        m = None
    return not m or m[1] == "1"


def stand_in(folder):
    """Puts a module called torch into sys.modules that borrows the Python files of the real one."""

    def module(name, **values):
        m = No(name)
        m.__dict__.update(values)
        sys.modules[name] = m
        return m

    torch = module("torch", __path__=[folder], __file__=os.path.join(folder, "__init__.py"))
    loader = importlib.machinery.SourceFileLoader("torch.version", os.path.join(folder, "version.py"))
    version = types.ModuleType("torch.version")
    loader.exec_module(version)
    sys.modules["torch.version"] = torch.version = version
    torch.__version__ = version.__version__
    torch.cuda = module("torch.cuda", _is_compiled=lambda: bool(version.cuda or getattr(version, "hip", None)), device_count=lambda: 0)
    torch._C = module("torch._C", _GLIBCXX_USE_CXX11_ABI=cxx11_abi(folder))
    torch.utils = module("torch.utils", __path__=[os.path.join(folder, "utils")])
    # From 2.15 on these two reach into the library; of them cpp_extension.py uses a lock for builds at run time, and torch's folder.
    module("torch.utils._filelock")
    module("torch._utils_internal", get_file_path=lambda *parts: os.path.join(os.path.dirname(folder), *parts))
    return torch


def borrow(name, homes):
    """A module that setup.py imports but this environment lacks, from where pip or setuptools carry their own."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        pass
    for home in homes:
        try:
            m = importlib.import_module(home)
        except ImportError:
            continue
        sys.modules[name] = m
        return m
    raise Stop("the Python package %s is not in the environment of %s" % (name.split(".")[0], sys.executable),
               "install it there: %s -m pip install %s" % (sys.executable, name.split(".")[0]))


def borrow_packages():
    borrow("setuptools", [])
    for part in ("", ".version"):
        borrow("packaging" + part, ["setuptools._vendor.packaging" + part, "setuptools.extern.packaging" + part,
                                    "pip._vendor.packaging" + part])
    try:
        import wheel.bdist_wheel  # noqa: F401
    except ImportError:
        sys.modules.setdefault("wheel", types.ModuleType("wheel"))
        sys.modules["wheel"].__path__ = []
        borrow("wheel.bdist_wheel", ["setuptools.command.bdist_wheel"])
    try:
        import typing_extensions  # noqa: F401
    except ImportError:  # of it cpp_extension.py uses the one decorator
        sys.modules["typing_extensions"] = m = No("typing_extensions")
        m.deprecated = lambda *args, **kwargs: lambda f: f
    if "psutil" not in sys.modules:
        sys.modules["psutil"] = types.ModuleType("psutil")  # asked for only when MAX_JOBS is not set; it is


# ---- setup.py, with a CUDAExtension of ours


def narrow(real, job, note):
    """The CUDAExtension that setup.py gets."""

    def extension(*args, **kw):
        name = kw.pop("name", None) or args[0]
        sources = kw.pop("sources", None) or args[1]
        include_dirs = [str(d) for d in kw.get("include_dirs") or []]
        if hopper.knows(job["source"]):
            return narrowed(real, job, note, hopper.Work(job, sources, include_dirs), name, args, kw)
        if any(ck.SOURCE.search(s) for s in sources):
            return narrow_ck(real, job, note, name, sources, args[2:], kw)
        if not any(units.UNIT.search(s) for s in sources):  # another line: as upstream has it
            if not units.Profile(job).full:
                raise units.Refused("setup.py hands over no kernel that a profile knows by its name; this is not the source of a release",
                                    "build all of it: --profile full")
            job["as_upstream"] = True
            tell(units=[units.unit_name(s) for s in sources])
            return real(name, sources, *args[2:], **kw)
        return narrowed(real, job, note, units.Work(job, sources, include_dirs), name, args, kw)

    return extension


def narrowed(real, job, note, work, name, args, kw):
    """The extension with the sources and flags of `work` instead of upstream's."""
    compile_args = dict(kw.get("extra_compile_args") or {})
    compile_args["cxx"] = list(compile_args.get("cxx") or []) + ["-g0"] + work.defines
    compile_args["nvcc"] = work.nvcc_flags(list(compile_args.get("nvcc") or [])) + work.defines + work.nvcc
    kw["extra_compile_args"] = compile_args
    kw["include_dirs"] = work.include_dirs + list(kw.get("include_dirs") or [])
    kw["extra_link_args"] = list(kw.get("extra_link_args") or []) + ["-Wl,-s"] + (job.get("link_args") or [])
    note.update(work.record, sources=work.sources)
    tell(units=[units.unit_name(s) for s in work.sources], profile=".".join(work.profile.label()), expect=work.expect,
         left_out=len(work.left_out), switches=work.defines)
    made = real(name, work.sources, *args[2:], **kw)
    if job.get("math_headers"):  # last: what the toolkit has is the toolkit's
        made.include_dirs = list(made.include_dirs) + job["math_headers"]
    if job.get("link_args"):  # the static runtime instead of torch's choice, not beside it
        made.libraries = [lib for lib in made.libraries if lib != "cudart"]
    return made


def narrow_ck(real, job, note, name, sources, args, kw):
    """The kernels are chosen already (generate_for); flags and architectures are upstream's, from GPU_ARCHS."""
    profile = units.Profile(job)
    ck.say_profile(profile, os.path.join(job["source"], ck.ENTRIES))
    expect = ck.expect(sources, job.get("ck_units") or {})
    kw["extra_link_args"] = list(kw.get("extra_link_args") or []) + ["-Wl,-s"]
    note.update(ck.record(profile, sources, job["archs"]))
    tell(units=[units.unit_name(s) for s in sources], profile=".".join(ck.label(profile)), expect=expect)
    made = real(name, sources, *args, **kw)
    # torch makes a set of them: another order, and another link, each time
    made.sources = sorted(made.sources, key=lambda s: (-expect[units.unit_name(s)][0], s))
    return made


def generate_for(job):
    """setup.py runs generate.py as a program of its own (up to 2.7.3 by os.system, and does not ask how that ended), and git where the
    source is a clone."""
    run, system = subprocess.run, os.system

    def instead(argv, *args, **kw):
        if argv[:3] == ["git", "submodule", "update"]:
            if not os.listdir(argv[-1]):
                raise Stop("%s is empty, and nothing is fetched in the middle of a build" % argv[-1],
                           "git submodule update --init %s" % argv[-1])
            return subprocess.CompletedProcess(argv, 0)
        if ck.is_generator(argv) and not units.Profile(job).full:
            argv = [argv[0], os.path.abspath(ck.__file__), wanted] + argv[1:]
        try:
            return run(argv, *args, **kw)
        except subprocess.CalledProcessError as e:
            if e.returncode != ck.REFUSED:
                raise
            raise units.Refused(*json.loads(units.read(wanted + ".refused")))

    if not os.path.isdir(os.path.join(job["source"], ck.ENTRIES)):
        raise Stop("flash-attn %s has no CK back end" % job["version"], "choose 2.6.2 or newer, or --route triton")
    wanted = os.path.join(job["work"], "ck.json")
    units.write_if_changed(wanted, json.dumps(dict(job, entries=ck.entry_text(job["source"]))))
    ck.forget_kernels(os.path.join(job["source"], "build"))
    subprocess.run = instead
    os.system = lambda line: instead(shlex.split(line), check=True).returncode if "generate.py" in line else system(line)


def keep_record(note):
    """The profile travels in the wheel: bdist_wheel copies what lies in egg-info to dist-info."""
    from setuptools.command.egg_info import egg_info

    run = egg_info.run

    def with_record(self):
        run(self)
        with open(os.path.join(self.egg_info, "fainstall.json"), "w", encoding="utf-8") as f:
            json.dump({k: v for k, v in note.items() if k != "sources"}, f, indent="\t", sort_keys=True)
            f.write("\n")

    egg_info.run = with_record


def toolkit(job, version):
    """("13.0.88", "cu130"), or what stands for it where torch is not for CUDA."""
    hip, path = getattr(version, "hip", None), job["nvcc_path"]
    if hip and not path:  # nothing is compiled: the Triton back end
        return hip, "rocm" + "".join(hip.split(".")[:2])
    if not hip and not version.cuda:
        return "", "cpu"
    if not os.access(path, os.X_OK):
        raise Stop("%s: no compiler there" % path, "install ROCm with its compiler, or set ROCM_PATH to the folder that holds bin/hipcc" if hip
                   else "install the CUDA toolkit, or set CUDA_HOME to the folder that holds bin/nvcc")
    argument = "--version" if hip else "-V"
    text = subprocess.run([path, argument], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True).stdout
    m = re.search(r"HIP version: (\d+)\.(\d+)()" if hip else r"release (\d+)\.(\d+).*?V([\d.]+)", text, flags=re.S)
    if not m:
        raise Stop("%s %s says no release: %s" % (path, argument, text.strip().splitlines()[:1]))
    return (text.strip(), "rocm%s%s" % (m[1], m[2])) if hip else (m[3], "cu%s%s" % (m[1], m[2]))


def static_cudart(home):
    """Where torch brings the runtime of another CUDA major, the extension carries its own."""
    for lib in ("lib64", "lib"):
        if os.path.exists(os.path.join(home, lib, "libcudart_static.a")):
            return [os.path.join(home, lib, "libcudart_static.a"), "-ldl", "-lrt", "-lpthread"]
    raise Stop("%s has no libcudart_static.a" % home, "install the whole CUDA toolkit")


MATH_HEADERS = ("cublas_v2.h", "cusparse.h", "cusolverDn.h")


def math_headers(job):
    """Folders of headers that torch's CUDAContext.h includes and a toolkit from wheels lacks: torch's own wheels hold them. Releases
    up to 2.7.0 include that header."""
    entry, home = os.path.join(job["source"], "csrc/flash_attn/flash_api.cpp"), os.environ.get("CUDA_HOME", "")
    if not os.path.exists(entry) or "ATen/cuda/CUDAContext.h" not in units.read(entry):
        return []
    folders = []
    for header in MATH_HEADERS:
        if os.path.exists(os.path.join(home, "include", header)):
            continue
        found = [p for folder in sys.path for p in sorted(glob.glob(os.path.join(folder, "nvidia/*/include", header)))]
        if not found:
            raise Stop("this release needs %s, which is neither in %s nor in the environment of %s" % (header, home, sys.executable),
                       "install torch with its nvidia packages there, or a whole CUDA toolkit, or build release 2.7.1.post4 or later")
        folders += [os.path.dirname(p) for p in found[:1] if os.path.dirname(p) not in folders]
    return folders


def label(job, torch_version, cuda):
    """The local part of the wheel's version: builds that differ in what they hold, or fit, never share a name."""
    head = re.match(r"(\d+)\.(\d+)", torch_version)
    profile = hopper.profile_of(job) if hopper.knows(job["source"]) else units.Profile(job)
    archs = [a if a.startswith("gfx") else "sm" + a for a in job["archs"]]
    words = ["fa"] + (ck.label(profile) if job["ck"] else profile.label()) + archs + [cuda, "torch%s%s" % (head[1], head[2])]
    return ".".join(words)


def no_downloads():
    """setup_requires would fetch packages in the middle of a build; what is needed is there, or was borrowed."""
    from setuptools.dist import Distribution

    Distribution.fetch_build_eggs = lambda self, requires: []
    if hasattr(Distribution, "_install_setup_requires"):
        Distribution._install_setup_requires = lambda self, attrs: None


def build_in(folder):
    """As `build --build-base`; but with `build` before it on the command line, bdist_wheel compiles everything a second time."""
    from distutils.command.build import build

    initialize = build.initialize_options

    def with_base(self):
        initialize(self)
        self.build_base = folder

    build.initialize_options = with_base


def name_roots(job, torch_dir, version):
    """For the object store: what the compilers are, and the folders whose place does not matter."""
    cxx = os.environ.get("FAINSTALL_GATE_CXX") or "c++"
    said = subprocess.run([cxx, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True).stdout
    wrapper = os.path.join(units.HOME, "device_part.py")
    os.environ["FAINSTALL_GATE_IDENTITY"] = "%s %s\n%s\n%s" % (os.path.basename(job["nvcc_path"]), version, said, units.read(wrapper))
    os.environ["FAINSTALL_GATE_DEVICE"] = "%s\n%s" % (sys.executable, wrapper)
    cuda = os.environ.get("CUDA_HOME") or os.environ.get("ROCM_HOME", "")
    roots = [("S", job["source"]), ("R", os.path.dirname(job["source"])), ("W", job["work"]), ("F", os.path.dirname(units.HOME)),
             ("T", torch_dir), ("C", cuda), ("C", os.path.realpath(cuda)), ("P", os.path.join(sys.prefix, "include")),
             ("P", sysconfig.get_paths()["include"])]
    roots += [("N", folder) for folder in job["math_headers"]]
    os.environ["FAINSTALL_GATE_ROOTS"] = "\n".join("%s=%s" % r for r in roots if r[1])


def run_setup(job, note, real_torch):
    folder = torch_folder()
    borrow_packages()
    no_downloads()
    if real_torch:
        import torch
    else:
        torch = stand_in(folder)
    import torch.utils.cpp_extension as ext

    version, cuda = toolkit(job, torch.version)
    job["torch_folder"] = folder
    job["ck"] = os.path.basename(job["nvcc_path"]) == "hipcc"
    job["label"] = label(job, torch.__version__, cuda)
    job["work"] = os.path.join(job["build"], job["label"])
    job["nvcc"] = version
    os.environ["FLASH_ATTN_LOCAL_VERSION"] = job["label"]
    note.update(schema="fainstall.profile/1", version=job["version"], torch=torch.__version__, torch_cuda=torch.version.cuda,
                torch_hip=getattr(torch.version, "hip", None), python="%d.%d" % sys.version_info[:2], label=job["label"],
                **{"hipcc" if job["ck"] else "nvcc": version})
    if os.environ.get("FAINSTALL_RELAX_CUDA") == "1" and hasattr(ext, "_check_cuda_version"):
        ext._check_cuda_version = lambda *args, **kwargs: None
        job["link_args"] = static_cudart(os.environ["CUDA_HOME"])
    ext.CUDAExtension = narrow(ext.CUDAExtension, job, note)
    job["math_headers"] = [] if job["ck"] else math_headers(job)
    name_roots(job, folder, version)
    keep_record(note)
    if hopper.knows(job["source"]):
        hopper.prepare(job)
    if job["ck"]:
        generate_for(job)
    os.chdir(job["source"])
    sys.path.insert(0, job["source"])
    dist = os.path.join(job["work"], "dist")
    shutil.rmtree(dist, ignore_errors=True)
    build_in(job["work"])
    sys.argv = ["setup.py", "bdist_wheel", "--dist-dir", dist]
    try:
        runpy.run_path("setup.py", run_name="__main__")
    except SystemExit as e:
        if e.code not in (None, 0):
            raise Stop("setup.py ended by itself: %s" % (e.code if isinstance(e.code, str) else "exit status %s" % e.code))
    if note["torch_cuda"] and "sources" not in note and not job.get("as_upstream"):
        raise Stop("setup.py asked for no CUDA extension; this is not the source of flash-attn %s" % job["version"])
    return dist


def place_in_setup(error):
    """"setup.py, line 12", where setup.py itself is to blame; else "setup.py"."""
    if isinstance(error, SyntaxError) and error.filename:
        return "%s, line %s" % (os.path.basename(error.filename), error.lineno)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if os.path.basename(frame.filename) == "setup.py"]
    return "setup.py, line %d" % lines[-1] if lines else "setup.py"


def take_wheel(dist, job):
    """Into the wheelhouse, which may lie on another file system: copied beside its place, then renamed."""
    names = [n for n in os.listdir(dist) if n.endswith(".whl")] if os.path.isdir(dist) else []
    if len(names) != 1:
        raise Stop("setup.py ended without an error and left %d wheels in %s" % (len(names), dist))
    os.makedirs(job["wheel_dir"], exist_ok=True)
    place = os.path.join(job["wheel_dir"], names[0])
    shutil.copyfile(os.path.join(dist, names[0]), place + ".tmp")
    os.replace(place + ".tmp", place)
    return place


def main(path):
    with open(path, encoding="utf-8") as f:
        job = json.load(f)
    real_torch = os.environ.get("FAINSTALL_REAL_TORCH") == "1"
    note = {}
    try:
        tell(wheel=take_wheel(run_setup(job, note, real_torch), job))
    except units.Refused as e:
        tell(error=str(e), next=e.step)
        return 1
    except Stop as e:
        tell(error=str(e), next=e.step)
        return 1
    except (ImportError, AttributeError, NotImplementedError, TypeError) as e:
        if real_torch:
            return stopped(e)
        print("build.py: %s: %s; once more with the real torch" % (type(e).__name__, e), flush=True)
        os.environ["FAINSTALL_REAL_TORCH"] = "1"
        os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), path])
    except Exception as e:
        return stopped(e)
    return 0


def stopped(error):
    """The whole story into the log, and one line of it."""
    traceback.print_exception(type(error), error, error.__traceback__)
    text = (error.msg if isinstance(error, SyntaxError) else str(error)).strip()
    tell(error="%s: %s: %s" % (place_in_setup(error), type(error).__name__, text.splitlines()[0] if text else "no more is said"))
    return 1


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
