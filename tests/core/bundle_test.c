#include "buf.h"
#include "bundle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct fa_names names = { .user = "ada", .host = "lab7", .home = "/srv/people/ada" };

static void expect(const char *text, const char *expected)
{
	struct fa_buf b = FA_BUF_INIT;

	fa_anonymise(&b, text, &names);
	assert_string_equal(expected, fa_buf_str(&b));
	fa_buf_release(&b);
}

static void names_go_but_words_that_hold_them_stay(void **state)
{
	(void)state;
	expect("ada@lab7:~$ cd canada", "user@host:~$ cd canada");
	expect("File \"/srv/people/ada/x.py\", line 3", "File \"~/x.py\", line 3");
	expect("/home/grace/venv/lib and C:\\Users\\Grace Hopper\\x", "/home/user/venv/lib and C:\\Users\\user Hopper\\x");
}

static void secrets_go(void **state)
{
	(void)state;
	expect("HF_TOKEN=abcdef next", "HF_TOKEN=- next");
	expect("export AWS_SECRET_ACCESS_KEY='a b'", "export AWS_SECRET_ACCESS_KEY=- b'");
	expect("got ghp_0123456789abcdefABCDEF.", "got -");
	expect("https://ada:pw@host.example/x", "https://-@host.example/x");
}

/* What has been seen in public logs that nobody should have posted. In each, the words between < and > must go. */
static void a_nasty_log_gives_nothing_away(void **state)
{
	static const char *const lines[] = {
		"Looking in indexes: https://<ada>:<s3cr3t>@pypi.corp.example/simple, "
		"https://<__token__>:<pypi-AgEIcHlwaS5vcmcCJDU>@x.example/",
		"HTTPS_PROXY=http://<jsmith>:<hunter2>@<10.1.2.3>:3128",
		"WARNING: Retrying after connection broken by 'ProxyError(\"http://<corp\\jsmith>:<p%40ss>@proxy:8080\")'",
		"git clone https://oauth2:<glpat-aaaaaaaaaaaaaaaaaaaa>@gitlab.example/x.git",
		"Downloading https://host.example/f.whl?X-Amz-Signature=<deadbeef01>&token=<abc123>",
		"Authorization: Bearer <eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc>",
		"> x-api-key: <0123456789abcdef>",
		"{\"hf_token\": \"<hf_ABCDEFGHIJKLMNOPQRST>\", \"api_key\": \"<zzz999>\"}",
		"AWS_ACCESS_KEY_ID=<AKIAIOSFODNN7EXAMPLE> aws_secret_access_key = <wJalrXUtnFEMI/K7MDENG>",
		"twine upload --username __token__ --password <hunter2> dist/*",
		"curl -H 'Authorization: Basic <dXNlcjpwYXNz>' https://x.example",
		"machine api.wandb.ai login <jsmith> password <0123456789abcdef0123456789abcdef01234567>",
		"<jsmith>@<gpu-node-17>:~/work$ pip install flash-attn",
		"(base) [<jsmith>@<login3> proj]$ srun python x.py",
		"mail <jane.doe+ml@example.org> about it",
		"File \"/Users/<jsmith>/x.py\" and C:\\Users\\<jsmith>\\AppData and /scratch/<jsmith>/env and "
		"/mnt/nfs/home/<jsmith>/v",
		"Linux <lab7.cs.example.edu> 6.1.0 x86_64, run by <ada>",
		"OPENAI_API_KEY: <sk-proj-abcdefghijklmnop> and NGC <nvapi-abcdefghijklmnopqrstuv>",
		"-----BEGIN OPENSSH PRIVATE KEY-----<b3BlbnNzaC1rZXktdjEAAAAA>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct fa_buf text = FA_BUF_INIT, out = FA_BUF_INIT;

		for (const char *p = lines[i]; *p; p++)
			if (*p != '<' && *p != '>')
				fa_buf_addc(&text, *p);
		fa_anonymise(&out, fa_buf_str(&text), &names);
		for (const char *p = strchr(lines[i], '<'); p; p = strchr(p + 1, '<')) {
			char *secret = fa_strndup(p + 1, strcspn(p + 1, ">"));

			if (strstr(fa_buf_str(&out), secret))
				fail_msg("%s is still in: %s", secret, fa_buf_str(&out));
			free(secret);
		}
		fa_buf_release(&text);
		fa_buf_release(&out);
	}
}

/* What a maintainer needs is no secret. */
static void what_proves_a_cause_stays(void **state)
{
	static const char *const lines[] = {
		"/usr/lib/libc.so.6: version `GLIBC_2.32' not found, undefined reference to `memcpy@GLIBC_2.14' and "
		"cudaMalloc@libcudart.so.12",
		"ImportError: x.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs",
		"Collecting nvidia-cublas-cu12==12.8.4.1 and `flash-attn@2.8.3` and flash-attn @ file:///x.whl",
		"Resolved https://github.com/Dao-AILab/flash-attention to commit 060c9188beec3a8b62b33a3bfa6d5d2d44975fab",
		"--hash=sha256:1e71dd64a9e0280e0447b8a0c2541bad4bf6ac65bdeaa2f90e51a9e57de0370d",
		"KeyError: 'CUDA_HOME', monkey patch, token_type_ids, tokenizer, @torch.jit.script",
		"Guessing wheel URL:  "
		"https://github.com/a/b/releases/download/v2.8.3/"
		"flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl",
		"\tLooking for /usr/local/cuda-12.8/bin/nvcc",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		expect(lines[i], lines[i]);
}

static void ordinary_text_stays(void **state)
{
	static const char text[] = "nvcc error   : 'cicc' died due to signal 9 (Kill signal) key word: sk-1 token_x";

	(void)state;
	expect(text, text);
	expect("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_go_but_words_that_hold_them_stay),
		cmocka_unit_test(secrets_go),
		cmocka_unit_test(a_nasty_log_gives_nothing_away),
		cmocka_unit_test(what_proves_a_cause_stays),
		cmocka_unit_test(ordinary_text_stays),
	};

	return cmocka_run_group_tests_name("bundle", tests, NULL, NULL) ? 1 : 0;
}
