// What a kernel of the CK build needs of ROCm: the compiler, its device libraries, linker and bundler, the headers of HIP.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

__global__ void fill(float *p)
{
	p[threadIdx.x + blockIdx.x] = __half2float(__float2half(1.f));
}

extern "C" int fainstall_preflight(void *p)
{
	std::vector<std::string> v{ "one" };
	std::optional<std::tuple<int, int>> t = std::make_tuple(1, 2);

	fill<<<1, 64>>>((float *)p);
	return (int)v.size() + std::get<0>(*t) + (int)hipGetLastError();
}
