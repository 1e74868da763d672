// What the kernels use of this torch header; with FA_SHADOW it stands in for the real one. profile.cpp defines the function.
#ifndef FA_SHADOW
#include_next <c10/cuda/CUDAException.h>
#else
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
extern "C" void fa_cuda_failed(int err, const char *file, const char *func, unsigned line);
#define C10_CUDA_CHECK(EXPR) \
	do { \
		const cudaError_t fa_err = (EXPR); \
		if (fa_err != cudaSuccess) \
			fa_cuda_failed(fa_err, __FILE__, __func__, __LINE__); \
	} while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#endif
