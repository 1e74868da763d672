// link: -lcublas
/* roofline [--quick] [--device N]: what this card reaches, so that shares can be told. One JSON object a line on stdout:
 *   {"what":"matmul","dtype":"bf16","n":8192,"ms":…,"low_ms":…,"high_ms":…,"tflops":…}      by cuBLAS, fp32 sums
 *   {"what":"copy","by":"kernel|memcpy","bytes":…,"ms":…,"low_ms":…,"high_ms":…,"gbs":…}    read and written bytes, 10^9 a second
 * Times are medians with their 95 % interval, after warming up until three groups agree. Errors: one line on stderr, exit 1; no card: 4.
 * Keeps to the API of CUDA 11.8. */
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static void stop(const char *what, const char *why, int line)
{
	fprintf(stderr, "roofline: %s: %s (line %d)\n", what, why, line);
	exit(1);
}

#define CUDA(call)                                                            \
	do {                                                                  \
		cudaError_t e_ = (call);                                      \
		if (e_ != cudaSuccess)                                        \
			stop(#call, cudaGetErrorString(e_), __LINE__);        \
	} while (0)

static const char *cublas_text(cublasStatus_t s)
{
	switch (s) {
	case CUBLAS_STATUS_NOT_INITIALIZED: return "not initialised";
	case CUBLAS_STATUS_ALLOC_FAILED: return "out of memory";
	case CUBLAS_STATUS_INVALID_VALUE: return "invalid value";
	case CUBLAS_STATUS_ARCH_MISMATCH: return "this card has no bf16";
	case CUBLAS_STATUS_NOT_SUPPORTED: return "not supported on this card";
	case CUBLAS_STATUS_EXECUTION_FAILED: return "execution stopped";
	default: return "internal error";
	}
}

#define CUBLAS(call)                                                          \
	do {                                                                  \
		cublasStatus_t s_ = (call);                                   \
		if (s_ != CUBLAS_STATUS_SUCCESS)                              \
			stop(#call, cublas_text(s_), __LINE__);               \
	} while (0)

/* Numbers that look random and lie around 0 like a normal distribution (sum of four uniform ones): the power that a card draws,
 * and so its clock, depends on the bits. */
__global__ void fill(__nv_bfloat16 *x, size_t n, unsigned seed)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
		unsigned long long h = (i + 1) * 0x9E3779B97F4A7C15ull + seed * 0xBF58476D1CE4E5B9ull;

		h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
		h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
		h ^= h >> 31;
		int sum = (int)(h & 0xffff) + (int)(h >> 16 & 0xffff) + (int)(h >> 32 & 0xffff) + (int)(h >> 48) - 131070;
		x[i] = __float2bfloat16(sum / 37837.0f);
	}
}

__global__ void copy(uint4 *to, const uint4 *from, size_t n)
{
	size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += step)
		to[i] = from[i];
}

struct timing {
	double ms, low, high;
};

/* Median time of one call of fn, ms. */
template <typename F> static timing measure(F fn, bool quick)
{
	const int n = quick ? 3 : 8, groups = quick ? 7 : 21;
	std::vector<float> warm, t;
	cudaEvent_t a, b;
	float ms;

	CUDA(cudaEventCreate(&a));
	CUDA(cudaEventCreate(&b));
	for (int g = 0; g < 12 + groups && (int)t.size() < groups; g++) {
		CUDA(cudaEventRecord(a));
		for (int i = 0; i < n; i++)
			fn();
		CUDA(cudaEventRecord(b));
		CUDA(cudaEventSynchronize(b));
		CUDA(cudaEventElapsedTime(&ms, a, b));
		ms /= n;
		size_t w = warm.size();
		bool steady = w >= 3 && std::max({ warm[w - 1], warm[w - 2], warm[w - 3] }) <
		                                1.02f * std::min({ warm[w - 1], warm[w - 2], warm[w - 3] });
		if (t.empty() && !steady && w < 12)
			warm.push_back(ms);
		else
			t.push_back(ms);
	}
	CUDA(cudaEventDestroy(a));
	CUDA(cudaEventDestroy(b));
	std::sort(t.begin(), t.end());
	double half = 0.98 * std::sqrt((double)t.size()), mid = t.size() / 2.0;
	size_t low = (size_t)std::max(0.0, std::floor(mid - half)), high = (size_t)std::min(t.size() - 1.0, std::ceil(mid + half));
	return { t[t.size() / 2], t[low], t[high] };
}

static void matmul(size_t free_bytes, bool quick)
{
	int n = free_bytes > (size_t)1 << 30 ? 8192 : 4096;
	size_t count = (size_t)n * n;
	__nv_bfloat16 *x, *y, *z;
	cublasHandle_t handle;
	const float one = 1, zero = 0;

	CUDA(cudaMalloc(&x, count * 2));
	CUDA(cudaMalloc(&y, count * 2));
	CUDA(cudaMalloc(&z, count * 2));
	fill<<<1024, 256>>>(x, count, 1);
	CUDA(cudaGetLastError());
	fill<<<1024, 256>>>(y, count, 2);
	CUDA(cudaGetLastError());
	CUBLAS(cublasCreate(&handle));
	timing t = measure(
	        [&] {
		        CUBLAS(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, x, CUDA_R_16BF, n, y, CUDA_R_16BF, n,
		                            &zero, z, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
	        },
	        quick);
	printf("{\"what\":\"matmul\",\"dtype\":\"bf16\",\"n\":%d,\"ms\":%.5f,\"low_ms\":%.5f,\"high_ms\":%.5f,\"tflops\":%.1f}\n", n, t.ms,
	       t.low, t.high, 2.0 * n * (double)n * n / t.ms / 1e9);
	CUBLAS(cublasDestroy(handle));
	CUDA(cudaFree(x));
	CUDA(cudaFree(y));
	CUDA(cudaFree(z));
}

static void bandwidth(size_t free_bytes, int processors, bool quick)
{
	size_t bytes = std::min((size_t)2 << 30, free_bytes / 8) & ~(size_t)0xfff;
	uint4 *x, *y;

	CUDA(cudaMalloc(&x, bytes));
	CUDA(cudaMalloc(&y, bytes));
	CUDA(cudaMemset(x, 0x5a, bytes));
	timing k = measure(
	        [&] {
		        copy<<<processors * 8, 512>>>(y, x, bytes / sizeof(uint4));
		        CUDA(cudaGetLastError());
	        },
	        quick);
	timing m = measure([&] { CUDA(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, 0)); }, quick);
	bool kernel = k.ms < m.ms;
	timing t = kernel ? k : m;
	printf("{\"what\":\"copy\",\"by\":\"%s\",\"bytes\":%zu,\"ms\":%.5f,\"low_ms\":%.5f,\"high_ms\":%.5f,\"gbs\":%.1f}\n",
	       kernel ? "kernel" : "memcpy", bytes, t.ms, t.low, t.high, 2.0 * bytes / t.ms / 1e6);
	CUDA(cudaFree(x));
	CUDA(cudaFree(y));
}

int main(int argc, char **argv)
{
	bool quick = false;
	int device = 0, count = 0, processors = 0;
	size_t free_bytes = 0, total = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick"))
			quick = true;
		else if (!strcmp(argv[i], "--device") && i + 1 < argc)
			device = atoi(argv[++i]);
		else {
			fprintf(stderr, "usage: roofline [--quick] [--device N]\n");
			return 2;
		}
	}
	cudaError_t e = cudaGetDeviceCount(&count);
	if (e != cudaSuccess || device >= count) {
		fprintf(stderr, "roofline: no such card: %s\n", e != cudaSuccess ? cudaGetErrorString(e) : "fewer are there");
		return 4;
	}
	CUDA(cudaSetDevice(device));
	CUDA(cudaMemGetInfo(&free_bytes, &total));
	CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
	if (free_bytes < (size_t)256 << 20) {
		fprintf(stderr, "roofline: %zu MiB of the card's memory are free, 256 are needed\n", free_bytes >> 20);
		return 4;
	}
	matmul(free_bytes, quick);
	fflush(stdout);
	bandwidth(free_bytes, processors, quick);
	return 0;
}
