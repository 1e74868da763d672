// The one struct that the kernels use of this torch header. profile.cpp asserts that torch's own is laid out alike.
#ifndef FA_SHADOW
#include_next <ATen/cuda/CUDAGeneratorImpl.h>
#else
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <tuple>
namespace at {
struct PhiloxCudaState {
	union Payload {
		uint64_t val;
		int64_t *ptr;
	};
	Payload seed_{};
	Payload offset_{};
	FA_INTRAGRAPH offset_intragraph_ = 0;
	bool captured_ = false;
};
}
#endif
