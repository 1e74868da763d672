#include "sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define HAVE_SHA_NI 1
#endif

enum { BLOCK = 64 };

static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
	0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
	0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
	0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load_be(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void expand(uint32_t w[64], const unsigned char *p)
{
	for (int i = 0; i < 16; i++)
		w[i] = load_be(p + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
}

static void blocks_plain(uint32_t h[8], const unsigned char *p, size_t n)
{
	uint32_t w[64], v[8];

	for (; n; n--, p += BLOCK) {
		expand(w, p);
		memcpy(v, h, sizeof(v));
		for (int i = 0; i < 64; i++) {
			uint32_t s1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
			uint32_t s0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
			uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + round_constants[i] + w[i];
			uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

			memmove(v + 1, v, 7 * sizeof(*v));
			v[4] += t1;
			v[0] = t1 + t2;
		}
		for (int i = 0; i < 8; i++)
			h[i] += v[i];
	}
}

#ifdef HAVE_SHA_NI
/* The instructions keep the state as ABEF and CDGH; four rounds a step. */
__attribute__((target("sha,sse4.1,ssse3"))) static void blocks_sha_ni(uint32_t h[8], const unsigned char *p, size_t n)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i lo = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)h), 0xb1);
	__m128i hi = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(h + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(lo, hi, 8), cdgh = _mm_blend_epi16(hi, lo, 0xf0);

	for (; n; n--, p += BLOCK) {
		__m128i abef0 = abef, cdgh0 = cdgh, w[4], sum;

		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
		for (int i = 0; i < 16; i++) {
			sum = _mm_add_epi32(w[i & 3],
			                    _mm_loadu_si128((const __m128i *)(const void *)(round_constants + 4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			if (i < 12) { /* the words of four steps later take the place of these */
				__m128i next = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);

				next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
				w[i & 3] = _mm_sha256msg2_epu32(next, w[(i + 3) & 3]);
			}
		}
		abef = _mm_add_epi32(abef, abef0);
		cdgh = _mm_add_epi32(cdgh, cdgh0);
	}
	lo = _mm_shuffle_epi32(abef, 0x1b);
	hi = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)(void *)h, _mm_blend_epi16(lo, hi, 0xf0));
	_mm_storeu_si128((__m128i *)(void *)(h + 4), _mm_alignr_epi8(hi, lo, 8));
}

static int has_sha_ni(void)
{
	static int known = -1; /* the same answer whoever asks first */
	unsigned a, b, c, d, c1 = 0;

	if (known >= 0)
		return known;
	if (__get_cpuid(1, &a, &b, &c, &d))
		c1 = c;
	known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1) && (c1 >> 9 & 1) && (c1 >> 19 & 1);
	return known;
}
#endif

static void blocks(uint32_t h[8], const unsigned char *p, size_t n)
{
#ifdef HAVE_SHA_NI
	if (has_sha_ni()) {
		blocks_sha_ni(h, p, n);
		return;
	}
#endif
	blocks_plain(h, p, n);
}

void fa_sha256_init(struct fa_sha256 *s)
{
	static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, start, sizeof(s->h));
	s->bytes = 0;
}

void fa_sha256_add(struct fa_sha256 *s, const void *data, size_t len)
{
	const unsigned char *p = data;
	size_t have = s->bytes % BLOCK, part;

	s->bytes += len;
	if (have) {
		part = len < BLOCK - have ? len : BLOCK - have;
		memcpy(s->block + have, p, part);
		if (have + part < BLOCK)
			return;
		blocks(s->h, s->block, 1);
		p += part;
		len -= part;
	}
	blocks(s->h, p, len / BLOCK);
	if (len % BLOCK)
		memcpy(s->block, p + len / BLOCK * BLOCK, len % BLOCK);
}

void fa_sha256_hex(struct fa_sha256 *s, char out[FA_SHA256_HEX])
{
	unsigned char tail[2 * BLOCK] = { 0x80 };
	uint64_t bits = s->bytes * 8;
	size_t have = s->bytes % BLOCK, pad = (have < 56 ? 56 : 120) - have;

	for (int i = 0; i < 8; i++)
		tail[pad + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
	fa_sha256_add(s, tail, pad + 8);
	for (int i = 0; i < 64; i++)
		out[i] = "0123456789abcdef"[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
	out[64] = '\0';
}

int fa_sha256_file(char out[FA_SHA256_HEX], const char *path, struct fa_err *err)
{
	unsigned char buf[65536];
	struct fa_sha256 s;
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = -1;
	ssize_t n = -1;

	fa_sha256_init(&s);
	while (fd >= 0 && ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			fa_sha256_add(&s, buf, (size_t)n);
	if (n < 0) {
		fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
		goto done;
	}
	fa_sha256_hex(&s, out);
	rc = 0;
done:
	if (fd >= 0)
		close(fd);
	return rc;
}
