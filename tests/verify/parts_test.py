"""The parts of recipes/verifying that need no torch: what is read from upstream's benchmark, which parameter sets are chosen, what a
build lacks. python3 tests/verify/parts_test.py"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "recipes"))
sys.dont_write_bytecode = True

from verifying import lines, pytests, supervisor, upstream   # noqa: E402

SAID = """### causal=False, headdim=64, batch_size=32, seqlen=512 ###
Flash2 fwd: 210.52 TFLOPs/s, bwd: 195.01 TFLOPs/s, fwd + bwd: 199.20 TFLOPs/s
Pytorch fwd: 41.10 TFLOPs/s, bwd: 62.00 TFLOPs/s, fwd + bwd: 54.00 TFLOPs/s
### causal=True, headdim=128, batch_size=1, seqlen=16384 ###
Flash2 fwd: 345.00 TFLOPs/s, bwd: 0.00 TFLOPs/s, fwd + bwd: 99.20 TFLOPs/s
Pytorch fwd: nan TFLOPs/s, bwd: nan TFLOPs/s, fwd + bwd: nan TFLOPs/s
"""
LEAN = {"name": "custom", "dtypes": ["bf16"], "head_dims": [128], "backward": False, "features": ["local", "unevenk"]}


class Call:
    def __init__(self, **params):
        self.params = params


class Parts(unittest.TestCase):
    def test_the_benchmarks_own_figures_are_read(self):
        rows = upstream.rows_of(SAID)
        self.assertEqual([(r["what"], r["d"], r["causal"], r["forward"]) for r in rows],
                         [("Flash2", 64, False, 210.52), ("Pytorch", 64, False, 41.1), ("Flash2", 128, True, 345.0)])
        self.assertEqual(upstream.rows_of("Flash2 fwd: 1.00 TFLOPs/s, bwd: 1.00 TFLOPs/s, fwd + bwd: 1.00 TFLOPs/s\n"), [])

    def test_figures_of_one_shape_are_compared_and_a_zero_is_none(self):
        mine = [dict(causal=False, d=64, b=32, s=512, forward=200.0, backward=195.0, both=199.0),
                dict(causal=True, d=128, b=1, s=16384, forward=345.0, backward=300.0, both=310.0)]
        compared = upstream.compare(upstream.rows_of(SAID), mine)
        self.assertEqual(len(compared), 2)
        self.assertEqual(compared[0]["forward"], {"upstream": 210.52, "here": 200.0, "ratio": 0.95})
        self.assertNotIn("backward", compared[1])
        self.assertAlmostEqual(upstream.differences(compared)[-1][0], 2.125, 3)
        self.assertEqual(len(upstream.differences(compared + compared)), 10)  # two as far off as each other

    def test_every_value_of_every_parameter_is_met_in_the_part_chosen(self):
        calls = [Call(d=d, causal=c, seqlen=s, dtype=t) for d in (32, 40, 64, 128) for c in (False, True) for s in range(12) for t in "hb"]
        chosen = pytests.choose(calls, 20, "test")
        self.assertEqual(len(chosen), 20)
        for key in ("d", "causal", "seqlen", "dtype"):
            self.assertEqual({c.params[key] for c in chosen}, {c.params[key] for c in calls})
        self.assertEqual([c.params for c in chosen], [c.params for c in pytests.choose(calls, 20, "test")])
        self.assertEqual(len(pytests.choose(calls, None, "test")), len(calls))

    def test_what_a_build_lacks_is_told_by_its_parameters(self):
        def lack(backward=False, **params):
            return lines.lack("fa2", LEAN, pytests.case_of("test_flash_attn_output", backward, params))
        self.assertEqual(lack(dtype="torch.float16", d=128), "fp16")
        self.assertEqual(lack(dtype="torch.bfloat16", d=59), "head dim 64")
        self.assertEqual(lack(True, dtype="torch.bfloat16", d=128), "backward")
        self.assertEqual(lack(dtype="torch.bfloat16", d=111, local=True), "")
        self.assertEqual(lack(dtype="torch.bfloat16", d=128, dropout_p=0.17), "dropout")
        self.assertEqual(lack(dtype="torch.bfloat16", d=128, softcap=50.0), "softcap")
        self.assertEqual(lines.lack("fa2", None, {}), "")

    def test_a_ck_build_has_no_softcap_and_pads_to_the_next_head_dim(self):
        class Dist:
            def __init__(self, **record):
                self.record = dict(record, back_end="ck", head_dims=["128"])

            def read_text(self, name):
                return json.dumps(self.record)
        whole = lines.profile_of(Dist(profile="full", dtypes=["bf16", "fp16"], features="all", backward=True))
        lean = lines.profile_of(Dist(profile="inference", dtypes=["bf16"], features=["dropout"], backward=False))
        case = {"dtype": "bf16", "d": 59, "op": "dense"}
        self.assertEqual(lines.lack("fa2", whole, dict(case, softcap=5.0, backward=True)), "softcap")
        self.assertEqual(lines.lack("fa2", whole, dict(case, window=[32, 0], backward=True)), "")
        self.assertEqual(lines.lack("fa2", lean, dict(case, dropout=0.1)), "")
        self.assertEqual(lines.lack("fa2", lean, dict(case, d=256)), "head dim 256")
        self.assertEqual(lines.lack("fa2", lean, dict(case, op="kvcache")), "split")
        self.assertEqual(lines.lack("fa2", lean, dict(case, alibi=True)), "alibi")
        for sentence in ("the CK back end does not support softcap",
                         "invalid argument for fmha_fwd: flash-attn was built without a kernel for this call; profile: inference"):
            self.assertTrue(lines.HONEST.search(sentence))

    def test_an_older_release_has_kernels_of_head_dims_that_later_ones_lack(self):
        """2.6.3, built with 160 alone and without uneven K: 160 must be right, not refused; so must 192 be, by its own name."""
        old = dict(LEAN, head_dims=[160], kernel_dims=[32, 64, 96, 128, 160, 192, 224, 256], even_dims=[32, 64, 96, 128, 160, 192, 256],
                   features=[])
        case = dict(dtype="bf16", op="padded")
        self.assertEqual(lines.lack("fa2", old, dict(case, d=160)), "")
        self.assertEqual(lines.lack("fa2", old, dict(case, d=152)), "unevenk")
        self.assertEqual(lines.lack("fa2", old, dict(case, d=192)), "head dim 192")
        self.assertEqual(lines.lack("fa2", dict(old, head_dims=[224]), dict(case, d=224)), "unevenk")  # rounded to 256 there

    def test_only_the_files_named_and_those_beside_them_are_copied(self):
        with tempfile.TemporaryDirectory() as into:
            sums = upstream.copy(os.path.join(HERE, "upstream"), ["tests/test_flash_attn.py", upstream.BENCHMARK, "tests/gone.py"], into)
            self.assertEqual(sorted(sums), [upstream.BENCHMARK, "tests/test_flash_attn.py"])
            self.assertTrue(os.path.exists(os.path.join(into, "tests", "test_util.py")))
            self.assertFalse(os.path.exists(os.path.join(into, "flash_attn")))

    def test_the_line_that_says_what_is_wrong_is_taken_from_a_traceback(self):
        self.assertEqual(pytests.last_line("    assert 1 == 2\nE   AssertionError: planted\nE   assert 1 == 2\nfile.py:3: AssertionError"),
                         "AssertionError: planted")
        self.assertEqual(pytests.last_line(""), "")


class BadInput(unittest.TestCase):
    def said_of(self, **card):
        said = []
        run = supervisor.Run.__new__(supervisor.Run)
        run.tell = lambda kind, **what: said.append(what)
        supervisor.Run.look_at_card(run, dict({"name": "NVIDIA A100", "memory_mib": 40000, "free_mib": 39000}, **card))
        return [w["id"] for w in said], " ".join(w["text"] for w in said)

    def test_a_card_that_another_process_fills_is_said_to_be_in_use(self):
        self.assertEqual(self.said_of()[0], [])
        ids, text = self.said_of(free_mib=9000)
        self.assertEqual(ids, ["card_in_use"])
        self.assertIn("9,000 of the card's 40,000 MiB are free", text)
        self.assertIn("sizes shrink", text)

    def test_a_slice_of_a_card_is_said_to_be_one(self):
        self.assertEqual(self.said_of(name="NVIDIA A100 MIG 1g.5gb", memory_mib=4800, free_mib=4700)[0], ["mig_slice"])

    def verify(self, torch, *more):
        with tempfile.TemporaryDirectory() as site:
            for name, version in (("torch", "2.8.0"), ("flash_attn", "2.8.3")):
                os.makedirs(os.path.join(site, name))
                with open(os.path.join(site, name, "__init__.py"), "w", encoding="utf-8") as f:
                    f.write(torch if name == "torch" else "")
                info = os.path.join(site, "%s-%s.dist-info" % (name, version))
                os.makedirs(info)
                with open(os.path.join(info, "METADATA"), "w", encoding="utf-8") as f:
                    f.write("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name.replace("_", "-"), version))
            p = subprocess.run([sys.executable, "-S", os.path.join(HERE, "..", "..", "recipes", "verify.py"), "--line", "fa2", *more],
                               env=dict(os.environ, PYTHONPATH=site, PYTHONDONTWRITEBYTECODE="1"), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=60, check=False)
        return p.returncode, [json.loads(x) for x in p.stdout.decode().splitlines()]

    def test_a_broken_torch_is_a_finding_and_the_later_stages_say_why_they_were_not_run(self):
        for torch, word in (("raise ImportError('libcudart.so.12: cannot open shared object file')", "libcudart.so.12"),
                            ("import os\nos.abort()", "SIGABRT"), ("1 / 0", "division by zero")):
            code, said = self.verify(torch)
            self.assertEqual(code, 1)
            bad = [x for x in said if x["kind"] == "check" and x["status"] == "failed"]
            self.assertEqual([(x["stage"], x["id"]) for x in bad], [("import", "torch")])
            self.assertIn(word, bad[0]["text"])
            self.assertEqual(said[-1]["kind"], "done")
            self.assertEqual(said[-1]["stages"]["numbers"], "not_run")

    def test_upstream_without_a_card_is_not_run(self):
        _, said = self.verify("raise ImportError('no')", "--upstream", "", "--upstream-why", "needs the repository")
        self.assertEqual(said[-1]["stages"]["upstream"], "not_run")


if __name__ == "__main__":
    unittest.main()
