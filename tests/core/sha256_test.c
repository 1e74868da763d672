#include "file.h"
#include "sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct known {
	const char *text;
	int times;
	const char *hex;
};

/* FIPS 180-4 examples and the NIST long message. */
static const struct known vectors[] = {
	{ "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

static void known_vectors_come_out_right(void **state)
{
	char hex[FA_SHA256_HEX];
	struct fa_sha256 s;

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		fa_sha256_init(&s);
		for (int n = 0; n < vectors[i].times; n++)
			fa_sha256_add(&s, vectors[i].text, strlen(vectors[i].text));
		fa_sha256_hex(&s, hex);
		assert_string_equal(hex, vectors[i].hex);
	}
}

/* Every length around the block size, in one piece and byte by byte. */
static void the_cut_of_the_input_does_not_matter(void **state)
{
	unsigned char data[300];
	char whole[FA_SHA256_HEX], bytes[FA_SHA256_HEX];
	struct fa_sha256 s;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7);
	for (size_t len = 0; len <= sizeof(data); len++) {
		fa_sha256_init(&s);
		fa_sha256_add(&s, data, len);
		fa_sha256_hex(&s, whole);
		fa_sha256_init(&s);
		for (size_t i = 0; i < len; i++)
			fa_sha256_add(&s, data + i, 1);
		fa_sha256_hex(&s, bytes);
		assert_string_equal(whole, bytes);
	}
}

static void a_file_is_hashed_and_a_missing_one_is_named(void **state)
{
	char hex[FA_SHA256_HEX], path[64];
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/fa-sha256-%ld", (long)getpid());
	assert_int_equal(fa_file_write(path, "abc", 3, &err), 0);
	assert_int_equal(fa_sha256_file(hex, path, &err), 0);
	assert_string_equal(hex, vectors[1].hex);
	unlink(path);
	assert_int_equal(fa_sha256_file(hex, path, &err), -1);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(fa_sha256_file(hex, "/tmp", &err), -1);
	assert_non_null(strstr(err.text, "/tmp: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_vectors_come_out_right),
		cmocka_unit_test(the_cut_of_the_input_does_not_matter),
		cmocka_unit_test(a_file_is_hashed_and_a_missing_one_is_named),
	};

	return cmocka_run_group_tests_name("sha256", tests, NULL, NULL) ? 1 : 0;
}
