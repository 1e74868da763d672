// The one function that kernels up to 2.7.0 use of this torch header; torch_cuda defines it, profile.cpp asserts its type.
#ifndef FA_SHADOW
#include_next <ATen/cuda/CUDAContext.h>
#else
#pragma once
#include <c10/cuda/CUDAException.h>
namespace at::cuda {
cudaDeviceProp *getCurrentDeviceProperties();
}
#endif
