#include "buf.h"
#include "fetch.h"
#include "file.h"
#include "sha256.h"

#include "loopback.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

static struct loopback server;
static char work[64], cert[128];
static char *target, *part;

static int start_all(void **state)
{
	char *make;

	(void)state;
	snprintf(work, sizeof(work), "/tmp/fa-fetch-XXXXXX");
	if (!mkdtemp(work))
		return -1;
	target = fa_path_join(work, "file");
	part = fa_path_join(work, "file.part");
	snprintf(cert, sizeof(cert), "%s/cert.pem", work);
	make = fa_strf(
	        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=loopback -addext subjectAltName=IP:127.0.0.1 "
	        "-keyout %s -out %s.crt >/dev/null 2>&1 && cat %s.crt >>%s",
	        cert, cert, cert, cert);
	if (system(make) != 0)
		cert[0] = '\0';
	free(make);
	return loopback_start(&server, "tests/net/bad_server.py", "tests/data/index", cert[0] ? cert : NULL);
}

static int stop_all(void **state)
{
	(void)state;
	loopback_stop(&server);
	free(target);
	free(part);
	return fa_file_remove_tree(work, NULL);
}

static int clean(void **state)
{
	char *meta = fa_strf("%s.meta", part);

	(void)state;
	unlink(target);
	unlink(part);
	unlink(meta);
	free(meta);
	return 0;
}

/* The server's pattern, and its hash. */
static char *pattern(size_t size)
{
	char *p = fa_calloc(size, 1);

	for (size_t i = 0; i < size; i++)
		p[i] = (char)((i % 4096) * 131 + (i / 4096) * 7);
	return p;
}

static const char *pattern_hash(size_t size)
{
	static char hex[FA_SHA256_HEX];
	char *p = pattern(size);
	struct fa_sha256 s;

	fa_sha256_init(&s);
	fa_sha256_add(&s, p, size);
	fa_sha256_hex(&s, hex);
	free(p);
	return hex;
}

static char *url_of(const char *query)
{
	return fa_strf("http://127.0.0.1:%d/%s", server.port, query);
}

static int fetch(const char *query, size_t size, bool know_size, struct fa_err *err)
{
	char *url = !strncmp(query, "http", 4) ? fa_strdup(query) : url_of(query), got[FA_SHA256_HEX];
	struct fa_fetch_opts o = {
		.url = url, .path = target, .sha256 = pattern_hash(size), .size = know_size ? (int64_t)size : -1, .silence_s = 2
	};
	int rc = fa_fetch(got, &o, err);

	if (rc == 0)
		assert_string_equal(got, o.sha256);
	assert_int_equal(fa_file_exists(target), rc == 0);
	free(url);
	return rc;
}

/* How often the server was asked: in all, with Range, with If-Range, with credentials. */
static void count(const char *id, int out[4])
{
	char *url = fa_strf("http://127.0.0.1:%d/count?id=%s", server.port, id), *path = fa_path_join(work, "count");
	struct fa_fetch_opts o = { .url = url, .path = path, .size = -1 };
	struct fa_buf text = FA_BUF_INIT;

	assert_int_equal(fa_fetch(NULL, &o, NULL), 0);
	assert_int_equal(fa_file_read(&text, path, 100, NULL), 0);
	assert_int_equal(sscanf(fa_buf_str(&text), "%d %d %d %d", out, out + 1, out + 2, out + 3), 4);
	unlink(path);
	fa_buf_release(&text);
	free(path);
	free(url);
}

static void a_file_is_fetched_once(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	int n[4];
	struct stat st;

	(void)state;
	assert_int_equal(fetch("f?size=300000&id=once", 300000, true, &err), 0);
	assert_int_equal(fetch("f?size=300000&id=once", 300000, true, &err), 0);
	count("once", n);
	assert_int_equal(n[0], 1);
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_size, 300000);
	assert_int_not_equal(access(part, F_OK), 0);
}

static void an_unknown_hash_is_told(void **state)
{
	char *url = url_of("f?size=5000"), got[FA_SHA256_HEX];
	struct fa_fetch_opts o = { .url = url, .path = target, .size = -1 };
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_fetch(got, &o, &err), 0);
	assert_string_equal(got, pattern_hash(5000));
	free(url);
}

static void a_cut_download_goes_on_where_it_stopped(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	int n[4];

	(void)state;
	assert_int_equal(fetch("f?size=5000000&cut=1500000&id=cut", 5000000, true, &err), 0);
	count("cut", n);
	assert_int_equal(n[0], 4);
	assert_int_equal(n[1], 3);
	assert_int_equal(n[2], 3);
}

static void a_server_without_ranges_is_served_from_the_start(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *p = pattern(2000);

	(void)state;
	assert_int_equal(fa_file_write(part, p, 2000, NULL), 0);
	assert_int_equal(fetch("f?size=100000&norange", 100000, true, &err), 0);
	free(p);
}

static void another_file_behind_the_same_name_is_noticed(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_fetch_opts o = { .path = target, .size = -1, .tries = 2 };
	char *url = url_of("f?size=3000000&change&cut=2000000&id=change"), *whole = url_of("f?size=3000000&change&id=change");
	int n[4];

	(void)state;
	o.url = url;
	assert_int_equal(fa_fetch(NULL, &o, &err), -1); /* each answer is another file: nothing can be added up */
	assert_int_equal(err.status, FA_NETWORK);
	count("change", n);
	assert_int_equal(n[2], n[0] - 1);
	o.url = whole;
	assert_int_equal(fa_fetch(NULL, &o, &err), 0);
	free(url);
	free(whole);
}

static void a_part_of_an_earlier_run_is_used_or_replaced(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *p = pattern(200000);
	int n[4];

	(void)state;
	assert_int_equal(fa_file_write(part, p, 150000, NULL), 0); /* good */
	assert_int_equal(fetch("f?size=200000&id=good", 200000, true, &err), 0);
	count("good", n);
	assert_int_equal(n[1], 1);
	unlink(target);
	assert_int_equal(fa_file_write(part, p, 200000, NULL), 0); /* complete */
	assert_int_equal(fetch("f?size=200000&id=complete", 200000, true, &err), 0);
	count("complete", n);
	assert_int_equal(n[0], 0);
	unlink(target);
	assert_int_equal(fa_file_write(part, p, 200000, NULL), 0); /* too long */
	assert_int_equal(fetch("f?size=100000", 100000, true, &err), 0);
	unlink(target);
	assert_int_equal(fa_file_write(part, p, 200000, NULL), 0); /* complete, size unknown: 416 */
	assert_int_equal(fetch("f?size=200000", 200000, false, &err), 0);
	unlink(target);
	memset(p, 'x', 1000);
	assert_int_equal(fa_file_write(part, p, 150000, NULL), 0); /* garbage */
	assert_int_equal(fetch("f?size=200000", 200000, true, &err), 0);
	free(p);
}

static void without_validator_or_hash_a_part_is_not_trusted(void **state)
{
	char *url = url_of("f?size=3000&id=untrusted"), got[FA_SHA256_HEX];
	struct fa_fetch_opts o = { .url = url, .path = target, .size = -1 };
	struct fa_err err = FA_ERR_INIT;
	int n[4];

	(void)state;
	assert_int_equal(fa_file_write(part, "xxxxxxxx", 8, NULL), 0);
	assert_int_equal(fa_fetch(got, &o, &err), 0);
	assert_string_equal(got, pattern_hash(3000));
	count("untrusted", n);
	assert_int_equal(n[1], 0);
	free(url);
}

static void wrong_bytes_are_an_integrity_error_and_removed(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fetch("f?size=100000&wrong", 100000, true, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	assert_non_null(strstr(err.text, pattern_hash(100000)));
	assert_non_null(strstr(err.text, "file from 127.0.0.1:"));
	assert_int_not_equal(access(part, F_OK), 0);
}

static void wrong_lengths_are_noticed(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fetch("f?size=100000&short=90000", 100000, true, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	assert_non_null(strstr(err.text, "offers 90000 bytes, it must have 100000"));
	assert_int_equal(fetch("f?size=100000&extra=5", 100000, true, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	assert_non_null(strstr(err.text, "longer than the 100000 bytes"));
	assert_int_equal(fetch("f?size=100000&short=90000", 100000, false, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	assert_int_equal(fetch("f?size=100000&nolength&cut=50000", 100000, false, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY); /* nothing but the hash can tell */
	assert_int_equal(fetch("f?size=100000&nolength", 100000, true, &err), 0);
}

static void another_range_than_asked_for_is_not_appended(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *p = pattern(2000);

	(void)state;
	assert_int_equal(fa_file_write(part, p, 2000, NULL), 0);
	assert_int_equal(fetch("f?size=100000&shift", 100000, true, &err), 0);
	free(p);
}

static double seconds_since(const struct timespec *begin)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)(t.tv_sec - begin->tv_sec) + (double)(t.tv_nsec - begin->tv_nsec) / 1e9;
}

static void a_busy_server_is_asked_again_when_it_says(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct timespec begin;
	int n[4];

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(fetch("f?size=1000&status=503&times=1&after=1&id=busy", 1000, true, &err), 0);
	assert_true(seconds_since(&begin) >= 1);
	count("busy", n);
	assert_int_equal(n[0], 2);
	unlink(target);
	assert_int_equal(fetch("f?size=1000&status=404&id=gone", 1001, true, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "status 404"));
	count("gone", n);
	assert_int_equal(n[0], 1);
	assert_int_not_equal(access(part, F_OK), 0);
}

static void only_https_is_fetched_and_only_https_is_followed(void **state)
{
	static const char *const bad[] = { "http://example.org/x",
		                           "file:///etc/passwd",
		                           "ftp://127.0.0.1/x",
		                           "https://",
		                           "x",
		                           "http://127.0.0.1.evil.org/",
		                           "http://127.0.0.1@evil.org/",
		                           "http://localhost\\@evil.org/",
		                           "https://a b/" };
	struct fa_err err = FA_ERR_INIT;
	char *url;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fa_fetch_opts o = { .url = bad[i], .path = target, .size = -1 };

		assert_int_equal(fa_fetch(NULL, &o, &err), -1);
		assert_int_equal(err.status, FA_USAGE);
	}
	assert_int_equal(fetch("f?to=http://example.org/x", 10, true, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "redirected to http://example.org/x, which is not https"));
	assert_int_equal(fetch("f?to=file:///etc/passwd", 10, true, &err), -1);
	assert_int_equal(fetch("f?to=/f?to=/f", 10, true, &err), -1);
	url = fa_strf("f?to=http://127.0.0.1:%d/g%%3Fsize=777", server.port);
	assert_int_equal(fetch(url, 777, true, &err), 0);
	unlink(target);
	free(url);
	assert_int_equal(fetch("f?to=/f%3Fto=/f%253Fto=/f%25253Fto=/f%2525253Fto=/f%252525253Fto=/f%25252525253Fto=/f", 10,
	                       true, &err),
	                 -1);
	assert_non_null(strstr(err.text, "redirected more than 5 times"));
}

static void a_trickling_or_silent_server_is_given_up(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct timespec begin;
	char *url = url_of("f?size=100000&slow"), *silent = url_of("f?silent");
	struct fa_fetch_opts o = { .url = url, .path = target, .size = 100000, .silence_s = 1, .tries = 2 };

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(fa_fetch(NULL, &o, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "too slow"));
	o.url = silent;
	assert_int_equal(fa_fetch(NULL, &o, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_true(seconds_since(&begin) < 12);
	free(url);
	free(silent);
}

static void a_server_that_is_not_there_is_named(void **state)
{
	struct fa_fetch_opts o = { .url = "http://127.0.0.1:1/x", .path = target, .size = -1, .tries = 1 };
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_fetch(NULL, &o, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "file from 127.0.0.1:1: "));
	assert_non_null(strstr(err.next, "check the network"));
}

static void *set_later(void *flag)
{
	struct timespec t = { .tv_nsec = 300 * 1000 * 1000 };

	nanosleep(&t, NULL);
	*(volatile int *)flag = 1;
	return NULL;
}

/* While connecting, in a body, in the pause between tries. */
static void a_set_flag_stops_it_and_the_part_stays(void **state)
{
	static const char *const queries[] = { "f?silent", "f?size=100000&slow", "f?size=10&status=503&after=50" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		volatile int cancel = 0;
		char *url = url_of(queries[i]);
		struct fa_fetch_opts o = {
			.url = url, .path = target, .size = -1, .sha256 = pattern_hash(100000), .cancel = &cancel
		};
		struct fa_err err = FA_ERR_INIT;
		struct timespec begin;
		pthread_t thread;

		pthread_create(&thread, NULL, set_later, (void *)(uintptr_t)&cancel);
		clock_gettime(CLOCK_MONOTONIC, &begin);
		assert_int_equal(fa_fetch(NULL, &o, &err), -1);
		pthread_join(thread, NULL);
		assert_int_equal(err.status, FA_INTERRUPTED);
		assert_true(seconds_since(&begin) < 0.3 + 1.5); /* 200 ms, and room for a busy machine */
		assert_int_equal(fa_file_exists(part), i == 1);
		unlink(part);
		free(url);
	}
}

static void a_full_disk_is_said(void **state)
{
	char *dir = fa_path_join(work, "full"), *path = fa_path_join(dir, "x"), *url = url_of("f?size=500000");
	char *command = fa_strf("mkdir -p %s && mount -t tmpfs -o size=64k tmpfs %s 2>/dev/null", dir, dir);
	struct fa_fetch_opts o = { .url = url, .path = path, .size = 500000 };
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	if (system(command) == 0) {
		assert_int_equal(fa_fetch(NULL, &o, &err), -1);
		free(command);
		command = fa_strf("umount %s", dir);
		assert_int_equal(system(command), 0);
		assert_int_equal(err.status, FA_MACHINE);
		assert_non_null(strstr(err.text, "No space left"));
	}
	o.path = "/proc/fa-nowhere";
	assert_int_equal(fa_fetch(NULL, &o, &err), -1);
	assert_int_equal(err.status, FA_MACHINE);
	fa_file_remove_tree(dir, NULL);
	free(command);
	free(url);
	free(path);
	free(dir);
}

static void two_at_once_fetch_it_once(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	pid_t pid = fork();
	int status, n[4];

	(void)state;
	if (pid == 0) {
		char *url = url_of("f?size=4000000&id=two");
		struct fa_fetch_opts o = { .url = url, .path = target, .sha256 = pattern_hash(4000000), .size = 4000000 };

		_exit(fa_fetch(NULL, &o, NULL) == 0 ? 0 : 1);
	}
	assert_int_equal(fetch("f?size=4000000&id=two", 4000000, true, &err), 0);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	count("two", n);
	assert_int_equal(n[0], 1);
	assert_int_not_equal(access(part, F_OK), 0);
}

static void a_certificate_must_be_known(void **state)
{
	char *url = fa_strf("https://127.0.0.1:%d/f?size=70000", server.second_port);
	char *down = fa_strf("https://127.0.0.1:%d/f?to=http://127.0.0.1:%d/f", server.second_port, server.port);
	char *ca = fa_strf("%s.crt", cert);
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_true(cert[0] != '\0'); /* made by openssl, which scripts/need.sh brings */
	unsetenv("SSL_CERT_DIR");
	setenv("CURL_CA_BUNDLE", "/etc/ssl/certs/ca-certificates.crt", 1);
	assert_int_equal(fetch(url, 70000, true, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "ertificate"));
	assert_non_null(strstr(err.next, "SSL_CERT_FILE"));
	unsetenv("CURL_CA_BUNDLE");
	setenv("SSL_CERT_FILE", ca, 1);
	assert_int_equal(fetch(url, 70000, true, &err), 0);
	unlink(target);
	assert_int_equal(fetch(down, 70000, true, &err), -1);
	assert_non_null(strstr(err.text, "which is not https"));
	setenv("SSL_CERT_FILE", "/no/such/file", 1);
	assert_int_equal(fetch(url, 70000, true, &err), -1);
	assert_non_null(strstr(err.text, "/no/such/file"));
	free(url);
	free(down);
	free(ca);
}

static void a_proxy_is_used_and_left_out_as_configured(void **state)
{
	char *url = fa_strf("https://127.0.0.1:%d/f?size=70000", server.second_port), *ca = fa_strf("%s.crt", cert);
	char *proxy = fa_strf("http://127.0.0.1:%d", server.port);
	struct fa_err err = FA_ERR_INIT;
	int n[4];

	(void)state;
	assert_true(cert[0] != '\0'); /* made by openssl, which scripts/need.sh brings */
	setenv("SSL_CERT_FILE", ca, 1);
	unsetenv("no_proxy");
	unsetenv("NO_PROXY");
	setenv("https_proxy", proxy, 1);
	assert_int_equal(fetch(url, 70000, true, &err), 0);
	count("proxy", n);
	assert_int_equal(n[0], 1);
	unlink(target);
	setenv("no_proxy", "127.0.0.1", 1);
	assert_int_equal(fetch(url, 70000, true, &err), 0);
	count("proxy", n);
	assert_int_equal(n[0], 1);
	unlink(target);
	unsetenv("no_proxy");
	setenv("https_proxy", "http://me:secret@127.0.0.1:1", 1);
	assert_int_equal(fetch(url, 70000, true, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_null(strstr(err.text, "secret"));
	unsetenv("https_proxy");
	free(url);
	free(ca);
	free(proxy);
}

static void credentials_of_a_url_are_sent_and_never_said(void **state)
{
	char *url = fa_strf("http://me:secret@127.0.0.1:%d/f?size=100&wrong&id=auth", server.port);
	struct fa_fetch_opts o = { .url = url, .path = target, .sha256 = pattern_hash(100), .size = 100 };
	struct fa_err err = FA_ERR_INIT;
	int n[4];

	(void)state;
	assert_int_equal(fa_fetch(NULL, &o, &err), -1);
	count("auth", n);
	assert_int_equal(n[3], 1);
	assert_null(strstr(err.text, "secret"));
	assert_null(strstr(err.text, "me:"));
	free(url);
}

static void on_progress(void *ctx, int64_t done, int64_t total)
{
	int64_t *last = ctx;

	assert_int_equal(total, 2000000);
	assert_true(done >= last[0]);
	last[0] = done;
	last[1]++;
}

static void progress_ends_at_the_whole(void **state)
{
	int64_t last[2] = { 0, 0 };
	char *url = url_of("f?size=2000000");
	struct fa_fetch_opts o = { .url = url, .path = target, .size = -1, .progress = on_progress, .ctx = last };

	(void)state;
	assert_int_equal(fa_fetch(NULL, &o, NULL), 0);
	assert_int_equal(last[0], 2000000);
	assert_in_range(last[1], 1, 200);
	free(url);
}

#define T(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_file_is_fetched_once),
		T(an_unknown_hash_is_told),
		T(a_cut_download_goes_on_where_it_stopped),
		T(a_server_without_ranges_is_served_from_the_start),
		T(another_file_behind_the_same_name_is_noticed),
		T(a_part_of_an_earlier_run_is_used_or_replaced),
		T(without_validator_or_hash_a_part_is_not_trusted),
		T(wrong_bytes_are_an_integrity_error_and_removed),
		T(wrong_lengths_are_noticed),
		T(another_range_than_asked_for_is_not_appended),
		T(a_busy_server_is_asked_again_when_it_says),
		T(only_https_is_fetched_and_only_https_is_followed),
		T(a_trickling_or_silent_server_is_given_up),
		T(a_server_that_is_not_there_is_named),
		T(a_set_flag_stops_it_and_the_part_stays),
		T(a_full_disk_is_said),
		T(two_at_once_fetch_it_once),
		T(a_certificate_must_be_known),
		T(a_proxy_is_used_and_left_out_as_configured),
		T(credentials_of_a_url_are_sent_and_never_said),
		T(progress_ends_at_the_whole),
	};

	return cmocka_run_group_tests_name("fetch", tests, start_all, stop_all) ? 1 : 0;
}
