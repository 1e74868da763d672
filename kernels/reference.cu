/* reference IN OUT: attention in fp32 by the definition, without torch and without any library; one thread block for each row of
 * the result. It is the second witness for the fp32 numbers that everything else is compared with, so it is plain, not fast.
 * IN:  "FAR1", nine little-endian 32-bit integers b sq sk h hk d causal left right, then q (b,sq,h,d), k and v (b,sk,hk,d) as fp32.
 *      left and right: the window, -1 open; rows are counted from the end, so that the last query sees the last key.
 * OUT: (b,sq,h,d) as fp32. On stdout one JSON object. Errors: one line on stderr, exit 1; a damaged IN: 2; no card: 4.
 * Keeps to the API of CUDA 11.8. */
#include <cuda_runtime.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static void stop(int status, const char *what, const char *why)
{
	fprintf(stderr, "reference: %s: %s\n", what, why);
	exit(status);
}

#define CUDA(call)                                                            \
	do {                                                                  \
		cudaError_t e_ = (call);                                      \
		if (e_ != cudaSuccess)                                        \
			stop(1, #call, cudaGetErrorString(e_));               \
	} while (0)

struct shape {
	int32_t b, sq, sk, h, hk, d, causal, left, right;
};

enum { THREADS = 128 };

__device__ static float sum_of_block(float x)
{
	__shared__ float part[THREADS];

	__syncthreads();
	part[threadIdx.x] = x;
	__syncthreads();
	for (int step = THREADS / 2; step; step /= 2) {
		if (threadIdx.x < step)
			part[threadIdx.x] += part[threadIdx.x + step];
		__syncthreads();
	}
	return part[0];
}

__device__ static float max_of_block(float x)
{
	__shared__ float part[THREADS];

	__syncthreads();
	part[threadIdx.x] = x;
	__syncthreads();
	for (int step = THREADS / 2; step; step /= 2) {
		if (threadIdx.x < step)
			part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + step]);
		__syncthreads();
	}
	return part[0];
}

/* Block (row, head, batch). Scores of the row lie in shared memory. */
__global__ void attention(float *out, const float *q, const float *k, const float *v, shape s, float scale)
{
	extern __shared__ float score[];
	const int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, from = head / (s.h / s.hk);
	const float *qr = q + (((size_t)batch * s.sq + row) * s.h + head) * s.d;
	const int middle = row + s.sk - s.sq;
	float most = -INFINITY, total = 0;

	for (int j = threadIdx.x; j < s.sk; j += THREADS) {
		const float *kr = k + (((size_t)batch * s.sk + j) * s.hk + from) * s.d;
		const bool seen = !(s.causal && j > middle) && !(s.right >= 0 && j > middle + s.right) && !(s.left >= 0 && j < middle - s.left);
		float x = 0;

		for (int i = 0; i < s.d; i++)
			x = fmaf(qr[i], kr[i], x);
		score[j] = seen ? x * scale : -INFINITY;
		most = fmaxf(most, score[j]);
	}
	most = max_of_block(most);
	for (int j = threadIdx.x; j < s.sk; j += THREADS) {
		score[j] = most == -INFINITY ? 0.0f : expf(score[j] - most);
		total += score[j];
	}
	total = sum_of_block(total);
	for (int i = threadIdx.x; i < s.d; i += THREADS) {
		float x = 0;

		for (int j = 0; j < s.sk; j++)
			x = fmaf(score[j], v[(((size_t)batch * s.sk + j) * s.hk + from) * s.d + i], x);
		out[(((size_t)batch * s.sq + row) * s.h + head) * s.d + i] = total > 0 ? x / total : 0.0f;
	}
}

static void read_all(FILE *f, void *to, size_t size, const char *name)
{
	if (fread(to, 1, size, f) != size)
		stop(2, name, "ends too early");
}

static void check(const shape &s, const char *name)
{
	const int32_t most = 1 << 20;

	if (s.b < 1 || s.sq < 1 || s.sk < 1 || s.h < 1 || s.hk < 1 || s.d < 1 || s.b > 65535 || s.h > 65535 || s.sq > most ||
	    s.sk > 12000 || s.d > 4096 || s.h % s.hk)
		stop(2, name, "sizes out of range (sk at most 12,000: a row of scores lies in shared memory)");
}

static float *upload(FILE *f, size_t count, const char *name)
{
	std::vector<float> host(count);
	float *there;

	read_all(f, host.data(), count * sizeof(float), name);
	CUDA(cudaMalloc(&there, count * sizeof(float)));
	CUDA(cudaMemcpy(there, host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
	return there;
}

static void write_result(const char *name, const float *there, size_t count)
{
	std::vector<float> host(count);
	FILE *f;

	CUDA(cudaMemcpy(host.data(), there, count * sizeof(float), cudaMemcpyDeviceToHost));
	f = fopen(name, "wb");
	if (!f)
		stop(1, name, strerror(errno));
	if (fwrite(host.data(), sizeof(float), count, f) != count || fclose(f) != 0)
		stop(1, name, strerror(errno));
}

int main(int argc, char **argv)
{
	int count = 0;
	char magic[4];
	shape s;

	if (argc != 3) {
		fprintf(stderr, "usage: reference IN OUT\n");
		return 2;
	}
	FILE *f = fopen(argv[1], "rb");
	if (!f)
		stop(2, argv[1], strerror(errno));
	read_all(f, magic, sizeof(magic), argv[1]);
	if (memcmp(magic, "FAR1", 4))
		stop(2, argv[1], "not an input of this program");
	read_all(f, &s, sizeof(s), argv[1]);
	check(s, argv[1]);
	cudaError_t e = cudaGetDeviceCount(&count);
	if (e != cudaSuccess || count == 0)
		stop(4, "no card", e != cudaSuccess ? cudaGetErrorString(e) : "none is there");

	const size_t nq = (size_t)s.b * s.sq * s.h * s.d, nk = (size_t)s.b * s.sk * s.hk * s.d;
	float *q = upload(f, nq, argv[1]), *k = upload(f, nk, argv[1]), *v = upload(f, nk, argv[1]), *out;
	fclose(f);
	CUDA(cudaMalloc(&out, nq * sizeof(float)));
	attention<<<dim3(s.sq, s.h, s.b), THREADS, s.sk * sizeof(float)>>>(out, q, k, v, s, 1.0f / sqrtf((float)s.d));
	CUDA(cudaGetLastError());
	CUDA(cudaDeviceSynchronize());
	write_result(argv[2], out, nq);
	printf("{\"what\":\"reference\",\"b\":%d,\"sq\":%d,\"sk\":%d,\"h\":%d,\"hk\":%d,\"d\":%d,\"causal\":%d}\n", s.b, s.sq, s.sk, s.h, s.hk, s.d,
	       s.causal);
	CUDA(cudaFree(q));
	CUDA(cudaFree(k));
	CUDA(cudaFree(v));
	CUDA(cudaFree(out));
	return 0;
}
