#include "fetch.h"

#include "buf.h"
#include "fainstall.h"
#include "file.h"
#include "part.h"
#include "url.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
	LOOK_MS = 50, /* the cancel flag is looked at so often */
	REAL_PROGRESS =
	        1
	        << 20, /* bytes after which the count of tries begins anew: "any byte" would serve a trickling server for ever */
	MAX_RETRY_AFTER_S = 60,
	MAX_REDIRECTS = 5,
	DEFAULT_SILENCE_S = 30,
	DEFAULT_TRIES = 5,
	LOOKUP_TRIES = 3 /* a name or port that is not there seldom comes back within seconds */
};

enum fault { NO_FAULT, DISK, TOO_LONG, OTHER_LENGTH, OTHER_RANGE };
enum outcome { DONE, RETRY, FATAL };

struct response { /* of the last answer: a redirect's headers pass through here too */
	int status;
	int64_t length;      /* Content-Length, -1 none */
	int64_t range_start; /* Content-Range, -1 none */
	char etag[256], modified[64];
};

struct fetch {
	const struct fa_fetch_opts *o;
	struct fa_part part;
	struct response r;
	bool began; /* the body of this answer */
	enum fault fault;
	int write_errno;
	int64_t told_ms;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool cancelled(const struct fetch *f)
{
	return f->o->cancel && *f->o->cancel;
}

/* false: cancelled meanwhile. */
static bool nap(const struct fetch *f, int64_t ms)
{
	for (int64_t end = now_ms() + ms; !cancelled(f);) {
		int64_t rest = end - now_ms();
		struct timespec t = { .tv_nsec = (rest < LOOK_MS ? rest : LOOK_MS) * 1000000 };

		if (rest <= 0)
			return true;
		nanosleep(&t, NULL);
	}
	return false;
}

static void tell_progress(struct fetch *f, bool now)
{
	int64_t t = now_ms(), total = f->o->size;

	if (!f->o->progress || (!now && t - f->told_ms < 100))
		return;
	if (total < 0 && f->r.length >= 0)
		total = f->r.status == 206 && f->r.range_start >= 0 ? f->r.range_start + f->r.length : f->r.length;
	f->told_ms = t;
	f->o->progress(f->o->ctx, f->part.got, total);
}

/* ---- sentences */

static const char *name_of(const struct fetch *f)
{
	return f->o->name ? f->o->name : fa_path_base(f->o->path);
}

static int say_cancelled(const struct fetch *f, struct fa_err *err)
{
	return fa_err_set(err, FA_INTERRUPTED, "%s: download stopped as asked; what is here already is kept", name_of(f));
}

/* NAME from HOST: reason. No URL: it may hold credentials. */
static int say(const struct fetch *f, const char *url, enum fa_status status, const char *reason, struct fa_err *err)
{
	char *host = fa_url_host(url), *clean = fa_url_redact(reason);

	fa_err_set(err, status, "%s from %s: %s", name_of(f), host, clean);
	free(clean);
	free(host);
	return -1;
}

static void advise_on_status(int status, struct fa_err *err)
{
	if (status == 401 || status == 403)
		fa_err_next(err, "give credentials for that host in ~/.netrc, or use another source");
	else if (status == 407)
		fa_err_next(err, "give the proxy's user name and password in https_proxy");
	else if (status == 404 || status == 410)
		fa_err_next(err, "it is not there (any more): choose another version or source");
	else
		fa_err_next(err, "try again later, or use another source");
}

static int say_status(const struct fetch *f, const char *url, struct fa_err *err)
{
	char reason[64];

	snprintf(reason, sizeof(reason), "the server answers with status %d", f->r.status);
	say(f, url, FA_NETWORK, reason, err);
	advise_on_status(f->r.status, err);
	return -1;
}

static int say_fault(const struct fetch *f, const char *url, struct fa_err *err)
{
	char reason[160];

	if (f->fault == DISK)
		return fa_part_say(&f->part, f->write_errno, err);
	if (f->fault == TOO_LONG)
		snprintf(reason, sizeof(reason), "longer than the %lld bytes it must have", (long long)f->o->size);
	else
		snprintf(reason, sizeof(reason), "the server offers %lld bytes, it must have %lld", (long long)f->r.length,
		         (long long)f->o->size);
	say(f, url, FA_INTEGRITY, reason, err);
	fa_err_next(err, "another file, or a page of a proxy or portal: open the address in a browser, or use another source");
	return -1;
}

static void advise_on_curl(CURLcode code, struct fa_err *err)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
		fa_err_next(err, "check the network and https_proxy; --offline uses only what is here already");
		break;
	case CURLE_COULDNT_RESOLVE_PROXY: fa_err_next(err, "check https_proxy"); break;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		fa_err_next(err, "set SSL_CERT_FILE to a file with the certificates of your site");
		break;
	default: fa_err_next(err, "run it again: it goes on from where it stopped");
	}
}

/* ---- what curl calls */

static void header_value(char *out, size_t size, const char *line, size_t len, const char *name)
{
	size_t skip = strlen(name);

	if (len <= skip || strncasecmp(line, name, skip) != 0)
		return;
	line += skip;
	len -= skip;
	while (len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	while (len && strchr("\r\n \t", line[len - 1]))
		len--;
	snprintf(out, size, "%.*s", len < size ? (int)len : 0, line); /* half a validator is none */
}

static size_t on_header(char *line, size_t one, size_t len, void *ctx)
{
	struct fetch *f = ctx;
	char number[64] = "";

	(void)one;
	if (len > 5 && !strncmp(line, "HTTP/", 5)) {
		const char *blank = memchr(line, ' ', len);

		f->r = (struct response){ .length = -1, .range_start = -1 };
		f->r.status = blank ? atoi(blank + 1) : 0; /* a header line ends with CR LF */
	}
	header_value(f->r.etag, sizeof(f->r.etag), line, len, "ETag:");
	header_value(f->r.modified, sizeof(f->r.modified), line, len, "Last-Modified:");
	header_value(number, sizeof(number), line, len, "Content-Length:");
	if (number[0] >= '0' && number[0] <= '9')
		f->r.length = strtoll(number, NULL, 10);
	number[0] = '\0';
	header_value(number, sizeof(number), line, len, "Content-Range:");
	if (!strncasecmp(number, "bytes ", 6))
		f->r.range_start = strtoll(number + 6, NULL, 10);
	return len;
}

/* The first bytes of an answer decide whether they follow what is here or take its place. */
static int begin_body(struct fetch *f)
{
	f->began = true;
	if (f->r.status == 206 && f->r.range_start != f->part.got) {
		f->fault = OTHER_RANGE;
		return -1;
	}
	if (f->r.status != 206 && f->part.got && fa_part_restart(&f->part) < 0) {
		f->fault = DISK;
		f->write_errno = errno;
		return -1;
	}
	if (f->o->size >= 0 && f->r.length >= 0 && f->part.got + f->r.length != f->o->size) {
		f->fault = OTHER_LENGTH;
		return -1;
	}
	if (f->r.status != 206)
		fa_part_remember(&f->part, f->r.etag, f->r.modified);
	return 0;
}

static size_t on_body(char *data, size_t one, size_t len, void *ctx)
{
	struct fetch *f = ctx;

	(void)one;
	if (f->r.status < 200 || f->r.status > 299) /* the text of a redirect */
		return len;
	if (!f->began && begin_body(f) < 0)
		return 0;
	if (f->o->size >= 0 && f->part.got + (int64_t)len > f->o->size) {
		f->fault = TOO_LONG;
		return 0;
	}
	if (fa_part_add(&f->part, data, len) < 0) {
		f->fault = DISK;
		f->write_errno = errno;
		return 0;
	}
	tell_progress(f, false);
	return len;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return cancelled(ctx);
}

/* ---- one answer */

static void global_init(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* The library, unlike the program, looks at none of these by itself. */
static void set_certificates(CURL *c, const struct fa_fetch_opts *o)
{
	static const char *const variables[] = { "CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT" };
	const char *file = o->ca_file, *dir = getenv("SSL_CERT_DIR");

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables) && !(file && file[0]); i++)
		file = getenv(variables[i]);
	if (file && file[0])
		curl_easy_setopt(c, fa_file_is_dir(file) ? CURLOPT_CAPATH : CURLOPT_CAINFO, file);
	if (dir && dir[0] && !o->ca_file)
		curl_easy_setopt(c, CURLOPT_CAPATH, dir);
}

/* A strong ETag or a date lets the server say that the file is another one now; without either the hash must. */
static struct curl_slist *request_headers(const struct fetch *f)
{
	struct curl_slist *h = NULL;
	char line[512];

	if (f->o->accept) {
		snprintf(line, sizeof(line), "Accept: %s", f->o->accept);
		h = curl_slist_append(h, line);
	}
	if (!f->part.got)
		return h;
	/* As headers: CURLOPT_RESUME_FROM_LARGE takes a 200 for an error. */
	snprintf(line, sizeof(line), "Range: bytes=%lld-", (long long)f->part.got);
	h = curl_slist_append(h, line);
	if (f->part.etag[0] == '"' || f->part.modified[0]) {
		snprintf(line, sizeof(line), "If-Range: %s", f->part.etag[0] == '"' ? f->part.etag : f->part.modified);
		h = curl_slist_append(h, line);
	}
	return h;
}

static void allow_one_protocol(CURL *c, bool http)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, http ? "http" : "https");
#else
	curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(http ? CURLPROTO_HTTP : CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L); /* a name server that hangs must not hold up a cancel */
#endif
}

static CURL *new_request(struct fetch *f, const char *url, struct curl_slist *headers, char *text)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned silence = f->o->silence_s ? f->o->silence_s : DEFAULT_SILENCE_S;
	bool loopback = !strncasecmp(url, "http://", 7); /* the check let no other http through */
	CURL *c;

	pthread_once(&once, global_init);
	c = curl_easy_init();
	if (!c)
		return NULL;
	curl_easy_setopt(c, CURLOPT_URL, url);
	allow_one_protocol(c, loopback);
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L); /* every hop is checked by us */
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, 1000L * (silence < 20 ? silence : 20));
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1024L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)silence);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "fainstall/" FA_VERSION);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 256L * 1024);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, f);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, f);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, text);
	if (loopback)
		curl_easy_setopt(c, CURLOPT_PROXY, "");
	set_certificates(c, f->o);
	return c;
}

/* With NOSIGNAL a lost TLS connection may raise SIGPIPE: held back here, and swallowed. */
static CURLcode perform(struct fetch *f, CURLM *m, CURL *c)
{
	struct timespec none = { 0 };
	sigset_t pipe_signal, before;
	CURLcode code = CURLE_OK;
	CURLMsg *msg;
	int running = 1, left;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	curl_multi_add_handle(m, c);
	while (running && !cancelled(f)) {
		if (curl_multi_perform(m, &running) != CURLM_OK)
			break;
		if (running)
			curl_multi_poll(m, NULL, 0, LOOK_MS, NULL);
	}
	code = running ? CURLE_ABORTED_BY_CALLBACK : CURLE_OK;
	while ((msg = curl_multi_info_read(m, &left)))
		if (msg->msg == CURLMSG_DONE)
			code = msg->data.result;
	curl_multi_remove_handle(m, c);
	if (!sigismember(&before, SIGPIPE))
		sigtimedwait(&pipe_signal, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

struct answer {
	CURLcode code;
	char text[CURL_ERROR_SIZE];
	char *redirect;      /* where it points; NULL: nowhere */
	int64_t retry_after; /* s; 0 not said */
};

static void ask_once(struct fetch *f, const char *url, struct answer *a)
{
	struct curl_slist *headers = request_headers(f);
	CURLM *m = curl_multi_init();
	curl_off_t after = 0;
	CURL *c;
	char *to = NULL;

	*a = (struct answer){ .code = CURLE_OUT_OF_MEMORY };
	f->r = (struct response){ .length = -1, .range_start = -1 };
	f->began = false;
	f->fault = NO_FAULT;
	c = m ? new_request(f, url, headers, a->text) : NULL;
	if (c) {
		a->code = perform(f, m, c);
		curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &to);
		curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &after);
		a->redirect = fa_strdup(to);
		a->retry_after = after > MAX_RETRY_AFTER_S ? MAX_RETRY_AFTER_S : after;
		curl_easy_cleanup(c);
	}
	curl_multi_cleanup(m);
	curl_slist_free_all(headers);
	if (!a->text[0])
		snprintf(a->text, sizeof(a->text), "%s", curl_easy_strerror(a->code));
}

/* ---- tries */

static bool hopeless(CURLcode code)
{
	switch (code) {
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_OUT_OF_MEMORY: return true;
	default: return false;
	}
}

/* What an answer means; `err` is set unless it is DONE. */
static enum outcome judge(struct fetch *f, const char *url, const struct answer *a, struct fa_err *err)
{
	char reason[160];

	if (cancelled(f)) {
		say_cancelled(f, err);
		return FATAL;
	}
	if (f->fault == OTHER_RANGE || (f->r.status == 416 && f->part.got)) { /* what is here does not fit: begin anew */
		say(f, url, FA_NETWORK, "the server sends another part of the file than asked for", err);
		if (fa_part_restart(&f->part) == 0)
			return RETRY;
		fa_part_say(&f->part, errno, err);
		return FATAL;
	}
	if (f->fault != NO_FAULT) {
		say_fault(f, url, err);
		return FATAL;
	}
	if (f->r.status >= 400) {
		say_status(f, url, err);
		return f->r.status == 408 || f->r.status == 425 || f->r.status == 429 || f->r.status >= 500 ? RETRY : FATAL;
	}
	if (a->code != CURLE_OK) {
		say(f, url, FA_NETWORK, a->text, err);
		advise_on_curl(a->code, err);
		return hopeless(a->code) ? FATAL : RETRY;
	}
	if (!f->began && f->r.status == 200 && f->part.got && fa_part_restart(&f->part) < 0) { /* an empty file by now */
		fa_part_say(&f->part, errno, err);
		return FATAL;
	}
	if (f->o->size >= 0 && f->part.got != f->o->size) {
		snprintf(reason, sizeof(reason), "ended after %lld of %lld bytes", (long long)f->part.got,
		         (long long)f->o->size);
		say(f, url, FA_NETWORK, reason, err);
		return RETRY;
	}
	return DONE;
}

/* Follows redirects: https to https only, http (loopback) to http (loopback) or https. */
static enum outcome try_once(struct fetch *f, struct answer *a, struct fa_err *err)
{
	char *url = fa_strdup(f->o->url);
	enum outcome out = FATAL;

	for (int hops = 0;; hops++) {
		ask_once(f, url, a);
		if (f->r.status < 300 || f->r.status > 399 || !a->redirect || cancelled(f)) {
			out = judge(f, url, a, err);
			break;
		}
		if (hops == MAX_REDIRECTS) {
			say(f, url, FA_NETWORK, "redirected more than 5 times", err);
			break;
		}
		if (fa_url_check(a->redirect, NULL) < 0 ||
		    (!strncasecmp(url, "https:", 6) && strncasecmp(a->redirect, "https:", 6) != 0)) {
			struct fa_buf why = FA_BUF_INIT;

			fa_buf_addf(&why, "redirected to %.200s, which is not https", a->redirect);
			say(f, url, FA_NETWORK, fa_buf_str(&why), err);
			fa_err_next(err, "use another source: this one would send the file unprotected");
			fa_buf_release(&why);
			break;
		}
		free(url);
		url = a->redirect;
		a->redirect = NULL;
	}
	free(a->redirect);
	free(url);
	return out;
}

static bool is_lookup(CURLcode code)
{
	return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_PROXY;
}

static int transfer(struct fetch *f, struct fa_err *err)
{
	int tries = f->o->tries ? (int)f->o->tries : DEFAULT_TRIES, failed = 0;
	struct answer a;

	if (f->o->size >= 0 && f->part.got == f->o->size)
		return 0;
	for (;;) {
		int64_t before = f->part.got, wait;
		enum outcome out = try_once(f, &a, err);

		if (out != RETRY)
			return out == DONE ? 0 : -1;
		failed = f->part.got - before >= REAL_PROGRESS ? 1 : failed + 1;
		if (failed >= tries || (is_lookup(a.code) && failed >= LOOKUP_TRIES))
			return -1;
		wait = a.retry_after ? a.retry_after * 1000 : INT64_C(500) << (failed < 6 ? failed - 1 : 5);
		if (!nap(f, wait))
			return say_cancelled(f, err);
	}
}

/* ---- the whole */

static bool is_right(const struct fetch *f, char hex[FA_SHA256_HEX])
{
	fa_part_hex(&f->part, hex);
	return !f->o->sha256 || !strcasecmp(hex, f->o->sha256);
}

static int say_other_hash(const struct fetch *f, const char *hex, struct fa_err *err)
{
	char reason[256];

	snprintf(reason, sizeof(reason), "sha256 is %s, it must be %s; removed", hex, f->o->sha256);
	say(f, f->o->url, FA_INTEGRITY, reason, err);
	fa_err_next(err,
	            "the source gives another file than the one named: use another source, or find out why before trusting it");
	return -1;
}

static bool is_there_already(const struct fa_fetch_opts *o, char hex[FA_SHA256_HEX])
{
	return o->sha256 && fa_file_exists(o->path) && fa_sha256_file(hex, o->path, NULL) == 0 && !strcasecmp(hex, o->sha256);
}

static int fetch_part(struct fetch *f, char hex[FA_SHA256_HEX], struct fa_err *err)
{
	if (fa_part_take_up(&f->part, f->o->size, f->o->sha256 != NULL, f->o->cancel, err) < 0 || transfer(f, err) < 0)
		return -1;
	if (!is_right(f, hex) && f->part.from_before) { /* the old part may be to blame: once more from the start */
		if (fa_part_restart(&f->part) < 0)
			return fa_part_say(&f->part, errno, err);
		if (transfer(f, err) < 0)
			return -1;
	}
	if (!is_right(f, hex))
		return say_other_hash(f, hex, err);
	tell_progress(f, true);
	return fa_part_commit(&f->part, err);
}

int fa_fetch(char *sha256_out, const struct fa_fetch_opts *opts, struct fa_err *err)
{
	struct fetch f = { .o = opts, .part = { .fd = -1 }, .r = { .length = -1 } };
	char hex[FA_SHA256_HEX] = "", *dir = fa_path_dir(opts->path);
	struct fa_err why = FA_ERR_INIT;
	int rc = -1;

	if (is_there_already(opts, hex)) {
		rc = 0;
		goto done;
	}
	if (fa_url_check(opts->url, &why) < 0 || fa_file_mkdirs(dir, &why) < 0 ||
	    fa_part_open(&f.part, opts->path, opts->url, opts->cancel, &why) < 0)
		goto done;
	if (is_there_already(opts, hex)) { /* by whoever owned the part until now */
		fa_part_discard(&f.part);
		rc = 0;
		goto done;
	}
	rc = fetch_part(&f, hex, &why);
	if (rc < 0 && why.status == FA_INTEGRITY)
		fa_part_discard(&f.part);
done:
	if (rc == 0 && sha256_out)
		memcpy(sha256_out, hex, sizeof(hex));
	if (rc < 0 && err)
		*err = why;
	if (opts->answer)
		*opts->answer = f.r.status;
	fa_part_close(&f.part);
	free(dir);
	return rc;
}
