#!/usr/bin/env python3
"""Carries facts over into matrix/, in the compact form that fainstall reads.

    carry.py DATA [--out matrix] [--check]

DATA is a folder with fa_releases.json, torch_matrix.json, cuda_matrix.json, gpus.json, official_wheels.json and
community_wheels.json. Same data, same bytes. --check writes nothing: it compares what would be written with what is
there and exits 1 when they differ. Rows that were found out by hand (matrix/*.json not named in TABLES) are left alone.
"""
import argparse
import json
import os
import re
import sys

SCHEMA = "fainstall.matrix/1"
# glibc that reports show release files to need where it is less than that of the machine they were built on
SEEN_GLIBC = {"2.35": "2.32"}
# torchvision and torchaudio by torch: their own metadata, read in the package index
VISION = {"2.0.0": "0.15.1", "2.0.1": "0.15.2", "2.1.0": "0.16.0", "2.1.1": "0.16.1", "2.1.2": "0.16.2", "2.2.0": "0.17.0",
          "2.2.1": "0.17.1", "2.2.2": "0.17.2", "2.3.0": "0.18.0", "2.3.1": "0.18.1", "2.4.0": "0.19.0", "2.4.1": "0.19.1",
          "2.5.0": "0.20.0", "2.5.1": "0.20.1", "2.6.0": "0.21.0", "2.7.0": "0.22.0", "2.7.1": "0.22.1", "2.8.0": "0.23.0",
          "2.9.0": "0.24.0", "2.9.1": "0.24.1", "2.10.0": "0.25.0", "2.11.0": "0.26.0", "2.12.0": "0.27.0",
          "2.12.1": "0.27.1", "2.13.0": "0.28.0", "2.14.0": "0.29.0", "2.14.1": "0.29.1", "2.15.0": "0.29.2"}
AUDIO = {"2.0.0": "2.0.1", "2.0.1": "2.0.2"}
# hashes of the source archives on the package index, read there
SDIST = {}
# what released.py read in the sources and in NVIDIA's headers
RELEASED = {"device_prop": {}, "releases": {}}


def key(version):
    rank = {"dev": -4, "a": -3, "b": -2, "rc": -1, "post": 1}
    return [(0, int(w)) if w.isdigit() else (rank.get(w, 0), 0) for w in re.findall(r"\d+|[a-z]+", version.split("+")[0])]


def load(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return json.load(f)


def sm(archs):
    """["8.0", "9.0"] -> "80 90"; None stays unknown."""
    return None if archs is None else " ".join(a.replace(".", "") for a in archs)


def source_of(row):
    """Where a claim of the data comes from; the number of an index file says nothing to a reader."""
    if "repo" in row:
        return row["repo"] + ("@" + row["commit"][:9] if row.get("commit") else "")
    return row.get("url") or row.get("file") or row.get("key") or "public code, repository unknown"


def sources(data):
    seen = []
    for row in data["sources"]:
        text = source_of(row)
        if text not in seen:
            seen.append(text)
    return seen


def clean(row):
    return {k: v for k, v in row.items() if v is not None}


def torch_build(build, default):
    platforms = build["platforms"]
    return clean({
        "cuda": build["cuda"], "abi": build["cxx11_abi_linux_x86_64"], "glibc": build["glibc_floor"],
        "sm": sm(build["sm_x86_64"]), "sm_aarch64": sm(build["sm_aarch64"]),
        "ptx": build["ptx"] and build["ptx"].replace(".", ""),
        "pypi": True if build["cuda"] == default else None,
        "linux_only": True if platforms == "linux only" else None,
        "file": "manylinux_2_28" if build["wheel_platform_tag"] == "manylinux_2_28" else "linux",
        "source": build["sm_source"] or "install selector",
    })


def torch_row(row):
    pypi = row.get("pypi") or {}
    tags = [t[2:] for t in pypi.get("python_tags") or []]
    free = sorted({t[:-1] for t in tags if t.endswith("t")} or
                  {v.replace(".", "")[:-1] for v in (row["free_threaded_selector"] or []) + row["free_threaded_mjun0812"]})
    return clean({
        "torch": row["version"], "date": row["went_stable"] or row.get("planned"),
        "python": [row["python_min"], row["python_max"]],
        "free_threaded": ["%s.%s" % (v[0], v[1:]) for v in free] or None,
        "cxx": pypi.get("header_check_cxx_std") or row["header_cxx_std"],
        "triton": row["triton"], "torchvision": VISION.get(row["version"]),
        "torchaudio": "2.11.1" if key(row["version"]) >= key("2.11") else AUDIO.get(row["version"], row["version"]),
        "rocm": row["rocm"], "bytes": pypi.get("linux_x86_64_bytes"),
        "aarch64_pypi": pypi.get("linux_aarch64_cuda"),
        "source": "published package" if pypi else "pytorch/test-infra selector",
        "builds": [torch_build(b, row["pypi_default_cuda"]) for b in row["cuda"]],
    })


def torch_table(folder):
    data = load(folder, "torch_matrix.json")
    rows = [torch_row(r) for r in sorted(data["releases"], key=lambda r: key(r["version"]), reverse=True)]
    return {"index": data["index_url"] + "/{file}", "rows": rows}, data


def msvc(number):
    return None if number is None else "%d.%02d" % divmod(number, 100)


def cuda_row(row):
    return clean({
        "cuda": row["cuda"], "driver": row["driver_minor_compat_linux"], "driver_windows": row["driver_minor_compat_windows"],
        "full": row["driver_full_linux"], "full_windows": row["driver_full_windows"],
        "sm": " ".join(row["sm"]), "gcc": [str(row["gcc_min"]), str(row["gcc_max"])],
        "clang": [str(row["clang_min"] or 3), str(row["clang_max"])],
        "msvc": [msvc(row["msc_ver_min"]), msvc(row["msc_ver_below"])] if row["msc_ver_min"] else None,
        "pip": row["pip_nvcc"] or None, "toolkit": row["pip_toolkit"],
        "source": "toolkit headers" if row["header_checked"] else "Spack, CMake",
    })


def cuda_table(folder):
    data = load(folder, "cuda_matrix.json")
    rows = [cuda_row(r) for r in sorted(data["toolkits"], key=lambda r: key(r["cuda"]), reverse=True)]
    return {"device_prop": RELEASED["device_prop"], "rows": rows}, data


def gpu_row(row):
    return clean({
        "name": row["name"], "vendor": row["vendor"], "tokens": " ".join(row["tokens"]),
        "arch": row["cc"].replace(".", "") if row.get("cc") else row.get("gfx"),
        "memory_gb": row["memory_gb"], "bandwidth_gbs": row["bandwidth_gbs"],
        "tflops": row["bf16_dense_tflops"], "tflops_fp16": row["fp16_dense_tflops"],
        "doubt": "recalled" if row["bandwidth_source"] in ("recalled", "geforce table") or row["rate_source"] == "derived" else None,
        "source": row["rate_source"] or row["bandwidth_source"] or "vendor's page",
    })


def gpu_table(folder):
    data = load(folder, "gpus.json")
    return {"matching": "lower case, split at what is no letter or digit; the first row all of whose tokens occur",
            "rows": [gpu_row(r) for r in data["gpus"]]}, data


BACKWARD = [  # text of the host check -> [largest head dim without limit, compute capabilities beyond it, only with dropout]
    (r"head dim > (\d+) with dropout", True), (r"head dim > (\d+) only", False), (r"head dim 256 with dropout, or (224)", False)]


def backward_limit(text):
    for pattern, dropout in BACKWARD:
        m = re.search(pattern, text or "")
        if m:
            return {"above": int(m[1]) if m[1] != "224" else 192, "dropout_only": dropout or "224" in text}
    return None


def gencode(profile):
    """[[least nvcc, "80 90"], ...] by rising nvcc, only where the list changes."""
    out = []
    for nvcc, archs in sorted(profile["gencode_by_nvcc"].items(), key=lambda kv: key(kv[0])):
        if archs and (not out or out[-1][1] != " ".join(archs)):
            out.append([nvcc, " ".join(archs)])
    return out


def torch_floor(row):
    """What the README says, and 2.2 where the C++ entry points use std::optional."""
    stated = row["readme"]["torch_min"]
    return "2.2" if row["cxx_optional"] == "std::optional" and key(stated) < key("2.2") else stated


def fa2_row(row, data, published):
    profile = data["setup_profiles_fa2"][row["setup_profile"]]
    rocm = profile.get("rocm") or {}
    readme, modules = row["readme"], row["submodules"] or {}
    allow = [a for a in rocm.get("arch_allow_list") or [] if a.startswith("gfx")]
    text = RELEASED["releases"].get(row["version"], {})
    return clean({
        "line": "fa2", "version": row["version"], "tag": row["tag"], "commit": row["commit"], "date": row["date"] or row.get("published"),
        "profile": row["setup_profile"], "python": re.sub(r"[^\d.]", "", row["python_requires"]),
        "torch": torch_floor(row), "nvcc": row["cuda_min_setup"], "cutlass": (modules.get("csrc/cutlass") or {}).get("commit"),
        "composable_kernel": (modules.get("csrc/composable_kernel") or {}).get("commit"),
        "rocm": readme["rocm_min"] if allow else None, "ck": " ".join(allow) or None,
        "triton_amd": True if rocm.get("triton_env_read") else None,
        "backward": backward_limit(row["runtime"]["backward_head_dim"]),
        "head_dims": " ".join(map(str, row["kernel_head_dims"])),
        "without": text.get("without"), "stays": text.get("stays") or None, "reads": text.get("reads"), "apart": text.get("apart"),
        "published": True if row["version"] in published else None,
        "cute": True if row["wheel_contains_flash_attn_cute"] else None,
        "sdist": SDIST.get(row["version"]),
        "source": "Dao-AILab/flash-attention " + row["tag"] if row["commit"] else "published package",
    })


def profile_row(name, profile):
    jobs = profile.get("max_jobs") or {}
    return clean({
        "profile": name, "units": profile["tu_count"], "cxx": profile["cxx_std"], "gencode": gencode(profile),
        "archs_read": profile["arch_env_read"], "env": " ".join(sorted(profile["env"])), "gb_per_job": jobs.get("gb_per_job"),
        "looks_for_wheels": True if profile["wheel_lookup"] else None, "source": "setup.py, run against stand-ins",
    })


def fa4_row(row):
    return clean({
        "version": row["pep440"], "tag": row["tag"], "commit": row["commit"], "date": row["date"] or row.get("published"),
        "python": re.sub(r"[^\d.]", "", row["python_requires"] or "") or None, "requires": " ".join(row["install_requires"] or []) or None,
        "extras": {k: " ".join(v) for k, v in sorted(row["extras"].items())} or None if row.get("extras") else None,
        "runs_on": "; ".join(row["cc_supported_in_code"] or []) or None, "env": " ".join(sorted(row["env"] or {})) or None,
        "source": "Dao-AILab/flash-attention " + row["tag"] if row["commit"] else "published package",
    })


def fa4_table(folder):
    data = load(folder, "fa_releases.json")
    return {"repository": "https://github.com/Dao-AILab/flash-attention.git", "folder": "flash_attn/cute",
            "rows": [fa4_row(r) for r in reversed(data["fa4"]) if r["pep440"]]}, data


def fa3_row(row, data):
    profile, fa2 = data["setup_profiles_fa3"][row["setup_profile"]], {r["tag"]: r for r in data["fa2"]}
    modules = (fa2.get(row["tag"]) or {}).get("submodules") or {}
    return clean({
        "tag": row["tag"], "version": row["version"], "package": row["package"], "commit": row["commit"],
        "date": row["date"] or row.get("published"), "profile": row["setup_profile"],
        "python": re.sub(r"[^\d.]", "", profile["python_requires"]), "nvcc": profile["cuda_min_checked"],
        "cutlass": (modules.get("csrc/cutlass") or {}).get("commit"), "runs_on": row["runtime_cc"],
        "stable_abi": True if row["has_stable_abi_source"] else None,
        "source": "Dao-AILab/flash-attention " + row["tag"] if row["commit"] else "published package",
    })


def fa3_profile(name, profile):
    downloads = sorted((profile["toolchain_downloads_by_nvcc"] or {}).items(), key=lambda kv: key(kv[0]))
    return clean({
        "profile": name, "units": profile["tu_count"], "units_without_sm80": profile["tu_count_without_sm80"], "cxx": profile["cxx_std"],
        "abi3": profile["py_limited_api"], "code_sm90_files": profile["gencode_sm90_files"], "code_other_files": profile["gencode_other_files"],
        "nvcc_threads": profile["nvcc_threads_default"], "downloads": [[nvcc, " ".join(what)] for nvcc, what in downloads],
        "needs": " ".join(profile["install_requires"]), "env": " ".join(sorted(profile["env"])), "source": "hopper/setup.py, run against stand-ins",
    })


def fa3_table(folder):
    data = load(folder, "fa_releases.json")
    used = sorted({r["setup_profile"] for r in data["fa3"]})
    return {"repository": "https://github.com/Dao-AILab/flash-attention.git", "folder": "hopper", "submodule": "csrc/cutlass",
            "profiles": [fa3_profile(p, data["setup_profiles_fa3"][p]) for p in used],
            "rows": [fa3_row(r, data) for r in reversed(data["fa3"])]}, data


def fa_table(folder):
    data = load(folder, "fa_releases.json")
    published = data["published_versions"]
    fa2 = [r for r in data["fa2"] if r["released_as_flash_attn"] and key(r["version"]) >= key("2.0.0")]
    used = sorted({r["setup_profile"] for r in fa2})
    newest = data["fa4"][-1]
    fa4 = [clean({"line": "fa4", "version": v, "published": True, "python": re.sub(r"[^\d.]", "", newest["python_requires"]),
                  "source": "published package"}) for v in reversed(published["flash-attn-4"])]
    rows = [fa2_row(r, data, published["flash-attn"]) for r in sorted(fa2, key=lambda r: key(r["version"]), reverse=True)]
    first = {p: v.lstrip("v") for p, v in first_with(data).items()}
    return {"repository": "https://github.com/Dao-AILab/flash-attention.git", "features": first, "features_always": "dropout causal varlen gqa",
            "submodules": {"cutlass": ["csrc/cutlass", "https://github.com/NVIDIA/cutlass.git"],
                           "composable_kernel": ["csrc/composable_kernel", "https://github.com/ROCm/composable_kernel.git", "2.7.4"]},
            "profiles": [profile_row(p, data["setup_profiles_fa2"][p]) for p in used], "rows": rows + fa4}, data


def first_with(data):
    """Feature of --needs -> first release whose functions have the parameter."""
    first, word = data["first_tag_with_parameter"], {"window": "window_size", "alibi": "alibi_slopes", "deterministic": "deterministic",
                                                     "softcap": "softcap", "paged-kv": "block_table", "rotary": "rotary_cos",
                                                     "leftpad": "cache_leftpad", "split": "num_splits", "cache-batch": "cache_batch_idx"}
    out = {}
    for feature, parameter in word.items():
        tags = [f[parameter] for f in first.values() if parameter in f and key(f[parameter].lstrip("v")) >= key("2.0")]
        out[feature] = min(tags, key=lambda t: key(t.lstrip("v")))
    out["compile"] = data["first_tag_with_torch_custom_ops"]
    out["kvcache"] = first["flash_attn_with_kvcache"]["causal"]
    out["paged-varlen"] = first["flash_attn_varlen_func"]["block_table"]
    return out


def official_build(build):
    """[torch minor, cu, pythons, abi letters, architectures]; F, T: as named; f: named FALSE, really TRUE; n: built on a nightly."""
    letters = ""
    for abi in build["abi"]:
        letters += "f" if abi == "FALSE" and build.get("abi_false_is_really") == "TRUE" else abi[0]
    if "dev" in build["torch"]:
        letters += "n"
    minor = ".".join(build["torch"].split(".")[:2])
    return [minor, build["cu"], " ".join(p[2:] for p in build["py"] if p != "cp37"), letters, " ".join(build["sass"])]


def seen_build(name):
    m = re.match(r"flash_attn-(.+?)\+(cu\d+)torch([\d.]+)cxx11abi(\w+)-cp(\d+)-cp\d+-linux_(\w+)\.whl", name)
    return m[1], [m[3], m[2], m[5], m[4][0], "80 90 100 120", m[6]]


def official_rows(release):
    glibc = release["glibc_of_runner"][0]
    row = {"version": release["version"], "tag": release["tag"], "glibc": SEEN_GLIBC.get(glibc, glibc),
           "source": "release workflow", "builds": [official_build(b) for b in release["builds"]]}
    fault = release.get("known_fault")
    if fault and "driver 550" in fault[0]:
        row["driver"] = "550"
    rows, extra = [row], {}
    for name in (release.get("observed") or {}).get("outside_ci_matrix") or []:
        version, build = seen_build(name)
        extra.setdefault(version, []).append(build)
    for version, builds in extra.items():
        rows.append(dict(row, version=version, builds=builds, source="survey of the release page"))
    return rows


def official_table(folder):
    data, wheels = load(folder, "official_wheels.json"), []
    published = load(folder, "fa_releases.json")["published_versions"]["flash-attn"]
    for release in sorted(data["releases"], key=lambda r: key(r["tag"].lstrip("v")), reverse=True):
        # a faulty release gave way to its .postN and is gone from the package index: its files are no choice either
        if release["setup_py_looks_for_wheels"] and release["version"] in published:
            wheels += official_rows(release)
    return {"url": data["url_template"],
            "name": "flash_attn-{version}+{cu}torch{torch}cxx11abi{abi}-{python}-{python}-linux_{machine}.whl",
            "columns": "torch cu pythons abi archs machine", "note": data["status"], "rows": wheels}, data


def abi_of(torch, cuda, builds):
    """C++ ABI of the torch wheel that a file without the word in its name was built against."""
    if (torch, cuda) in builds:
        return builds[torch, cuda]
    return key(torch) > key("2.6")


def code_of(version, cuda, gencodes):
    """Architectures in a file: default list of that release with that nvcc."""
    out = None
    for nvcc, archs in gencodes[version]:
        if key(nvcc) <= key(cuda):
            out = archs
    return out or "80"


def community_gencodes(data, wheels):
    by = {r["version"]: gencode(data["setup_profiles_fa2"][r["setup_profile"]]) for r in data["fa2"]
          if r["released_as_flash_attn"]}
    for version in {w[1] for w in wheels if w[0] == "2"} - set(by):
        near = max((v for v in by if v.startswith(version)), key=key)
        by[version] = by[near]
    return by


def newest_copies(wheels, columns):
    """The same file stands in several release folders: the newest one is taken."""
    at, best = {c: i for i, c in enumerate(columns)}, {}
    for w in wheels:
        name = tuple(w[at[c]] for c in columns if c != "release")
        best[name] = max(best.get(name, -1), w[at["release"]])
    return [dict(zip([c for c in columns if c != "release"], name), release=r) for name, r in best.items()]


def python_word(wheel):
    if wheel["abi"] == "abi3":
        return wheel["python"][2:] + "+"
    return wheel["abi"][2:]


def community_table(folder):
    data, fa, torch = load(folder, "community_wheels.json"), load(folder, "fa_releases.json"), load(folder, "torch_matrix.json")
    builds = {(".".join(r["version"].split(".")[:2]), b["cuda"]): b["cxx11_abi_linux_x86_64"] for r in torch["releases"] for b in r["cuda"]}
    gencodes, groups = community_gencodes(fa, data["wheels"]), {}
    for w in newest_copies(data["wheels"], data["columns"]):
        if w["line"] == "1":
            continue
        archs = "80 90" if w["line"] == "3" else code_of(w["version"], w["cuda"], gencodes)
        abi = "T" if abi_of(w["torch"], w["cuda"], builds) else "F"
        name = (w["line"], w["version"], w["git"], w["torch"], w["cuda"], w["platform"], w["release"], abi, archs)
        groups.setdefault(name, []).append(python_word(w))
    order = sorted(groups, key=lambda g: (key(g[3]), g[0], key(g[1]), key(g[4]), g[5], g[6], g[2]), reverse=True)
    rows = [["fa" + g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], " ".join(sorted(set(groups[g]), key=lambda p: (len(p), p)))]
            for g in order]
    return {"url": "https://github.com/mjun0812/flash-attention-prebuild-wheels/releases/download/{tag}/{file}",
            "name": "{package}-{version}+cu{cu}torch{torch}{git}-{python}-{abi}-{platform}.whl",
            "columns": "line version git torch cuda platform release abi archs pythons",
            "platforms": [[p["tag"], p["os"], p["machine"], p["glibc_floor"] or ("2.35" if p["os"] == "linux" else None)]
                          for p in data["platforms"]],
            "releases": [r["tag"] for r in data["releases"]], "rows": rows}, data


TABLES = {"torch": torch_table, "cuda": cuda_table, "gpus": gpu_table, "flash-attn": fa_table, "fa3": fa3_table, "fa4": fa4_table,
          "wheels/official": official_table, "wheels/community": community_table}


def line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(name, table, data):
    """One row a line, so that a change of the data is a change of lines."""
    head = {"schema": SCHEMA, "table": name, "checked": data["as_of"], "sources": sources(data)}
    parts = ["\t%s: %s" % (line(k), line(v)) for k, v in list(head.items()) + [(k, v) for k, v in table.items() if not isinstance(v, list) or k == "releases"]]
    for k, v in table.items():
        if isinstance(v, list) and k != "releases":
            parts.append("\t%s: [\n%s\n\t]" % (line(k), ",\n".join("\t\t" + line(row) for row in v)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    ap = argparse.ArgumentParser(description="carry facts over into matrix/")
    ap.add_argument("data", help="folder with the six files")
    ap.add_argument("--out", default="matrix", metavar="DIR")
    ap.add_argument("--check", action="store_true", help="write nothing, exit 1 when something differs")
    opt = ap.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    SDIST.update(load(here, "sdist.json"))
    RELEASED.update(load(here, "released.json"))
    stale = 0
    for name, make in TABLES.items():
        path, text = os.path.join(opt.out, name + ".json"), text_of(name, *make(opt.data))
        if opt.check:
            same = os.path.exists(path) and open(path, encoding="utf-8").read() == text
            stale += not same
            print("%s: %s" % (path, "the same" if same else "differs"))
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        print("%s: %d bytes, %d rows" % (path, len(text), len(make(opt.data)[0]["rows"])))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
