#!/usr/bin/env python3
"""Asks one peer about one case, inside that peer's own environment; the case is JSON on stdin, the files of the release on which the
peer would look are in it. What the peer detects is replaced by the case's facts; what it decides is its own. Prints what it prints.

    drive.py PEER <case.json
"""
import json
import sys
import types

CASE = json.load(sys.stdin)
FACTS = CASE["facts"]
PYTHON = FACTS["python_abi"]
MINOR = ".".join(FACTS["torch"].split("+")[0].split(".")[:2])
PLATFORM = {"linux": "linux_", "windows": "win_"}[FACTS["os"]] + {"x86_64": "x86_64", "aarch64": "aarch64"}[FACTS["machine"]]
if PLATFORM == "win_x86_64":
    PLATFORM = "win_amd64"
NVCC = FACTS["toolkits"][0]["version"] if FACTS["toolkits"] else None


def qifa(version):
    from qifa import cli
    cli.detect_python_tag = lambda: PYTHON
    cli.detect_torch = lambda: (MINOR, "cu" + FACTS["torch_cuda"].replace(".", ""), FACTS.get("torch_cxx11abi"))
    cli.detect_platform = lambda: PLATFORM
    cli.get_nvcc_version = lambda: NVCC and "cu" + "".join(NVCC.split(".")[:2])
    def listing(asked):
        names = CASE["listing"].get(asked, []) if asked else CASE["newest"]
        return [{"name": n, "browser_download_url": "https://github.com/Dao-AILab/flash-attention/releases/download/" + n} for n in names]
    cli.list_release_assets = listing
    asset = cli.plan(version, None, True)
    print("CHOICE", asset["name"] if asset else "none")


def mlwheels(_):
    from mlwheels import detector
    env = {"python": PYTHON[2] + "." + PYTHON[3:].rstrip("t"), "torch": MINOR, "cuda": FACTS["torch_cuda"]}
    detector.detect_environment = lambda: env
    detector.get_platform = lambda: PLATFORM
    detector.install_wheel("flash-attn", dry_run=True)
    wheel = detector.get_wheel_url("flash-attn", env)
    print("CHOICE", wheel["url"].rsplit("/", 1)[1] if wheel else "none")


def ainfra(_):
    from ainfra import cli
    print("CHOICE command", " ".join(cli._get_install_command("flash-attn", FACTS["torch_cuda"])[1:]))


def env_doctor(_):
    from env_doctor import cli
    class Toolkit:
        detected, version, metadata, issues, recommendations, status = bool(NVCC), NVCC, {}, [], [], None
        def detect(self):
            return self
    class Torch:
        detected, version, status = True, FACTS["torch"], None
        metadata, issues, recommendations = {"cuda_version": FACTS["torch_cuda"]}, [], []
        def detect(self):
            return self
    cli.DetectorRegistry = types.SimpleNamespace(get=lambda _name: Toolkit())
    cli.PythonLibraryDetector = lambda _name: Torch()
    cli.compilation_package_install_prescription("flash-attn", "flash-attn")


PEERS = {"qifa": lambda: qifa(CASE["asked"]), "qifa-default": lambda: qifa(None), "mlwheels": lambda: mlwheels(None),
         "ainfra": lambda: ainfra(None), "env-doctor": lambda: env_doctor(None)}

if __name__ == "__main__":
    PEERS[sys.argv[1]]()
