// Seed and offset of the random numbers, under the name by which kernels up to 2.7.0 include them.
#ifndef FA_SHADOW
#include_next <ATen/cuda/CUDAGraphsUtils.cuh>
#else
#include <ATen/cuda/detail/UnpackRaw.cuh>
#endif
