// What the C++ entry file needs of Python and torch.
#include <Python.h>
#ifndef USE_ROCM
#include <c10/cuda/CUDAStream.h>
#endif
#include <c10/util/Exception.h>
#include <torch/version.h>

static PyModuleDef module = { PyModuleDef_HEAD_INIT, "fainstall_preflight", nullptr, -1, nullptr };

PyMODINIT_FUNC PyInit_fainstall_preflight(void)
{
	TORCH_CHECK(PY_VERSION_HEX != 0, "no Python");
	return PyModule_Create(&module);
}
