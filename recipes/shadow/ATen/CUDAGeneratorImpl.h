// Where torch kept the header of the same name before 1.11; releases up to 2.7.0 name it and do not include it.
#ifndef FA_SHADOW
#include_next <ATen/CUDAGeneratorImpl.h>
#else
#include <ATen/cuda/CUDAGeneratorImpl.h>
#endif
