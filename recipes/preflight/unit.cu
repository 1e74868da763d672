// What a kernel of Flash-Attention needs of the toolkit, the host compiler and its library, in three seconds. nv/target is what
// cuda_bf16.h needs of another package; itself it would cost a third more.
#include <cuda_runtime.h>
#include <nv/target>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

__global__ void fill(float *p)
{
	p[threadIdx.x] = 1.f;
}

extern "C" int fainstall_preflight(void *p)
{
	std::vector<std::string> v{ "one" };
	std::optional<std::tuple<int, int>> t = std::make_tuple(1, 2);

	fill<<<1, 32>>>((float *)p);
	return (int)v.size() + std::get<0>(*t) + (int)cudaGetLastError();
}
