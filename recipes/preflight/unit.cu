// What a kernel of Flash-Attention needs of the toolkit, the host compiler and its library, in five seconds.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

__global__ void fill(__nv_bfloat16 *p)
{
	p[threadIdx.x] = __float2bfloat16(1.f);
}

extern "C" int fainstall_preflight(void *p)
{
	std::vector<std::string> v{ "one" };
	std::optional<std::tuple<int, int>> t = std::make_tuple(1, 2);

	fill<<<1, 32>>>((__nv_bfloat16 *)p);
	return (int)v.size() + std::get<0>(*t) + (int)cudaGetLastError();
}
