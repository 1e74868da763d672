#include "sys_nvml.h"

#include "buf.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* As nvml.h has them; the library's names carry the version of their structs. */
struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

struct nvml {
	int (*init)(void);
	const char *(*error)(int code);
	int (*driver)(char *text, unsigned len);
	int (*cuda)(int *version);
	int (*count)(unsigned *n);
	int (*handle)(unsigned i, void **device);
	int (*name)(void *device, char *text, unsigned len);
	int (*memory)(void *device, struct nvml_memory *m);
	int (*capability)(void *device, int *major, int *minor);
	int (*pci)(void *device, struct nvml_pci *p);
};

static void look_up(void *library, const char *name, void *function /* pointer to a function pointer */)
{
	void *address = dlsym(library, name);

	memcpy(function, &address, sizeof(address));
}

/* WSL keeps the library outside the linker's path when ldconfig has not run. */
static void *open_library(void)
{
	static const char *const names[] = { "libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1", "libnvidia-ml.so",
		                             "/run/opengl-driver/lib/libnvidia-ml.so.1" };
	void *library = NULL;

	for (size_t i = 0; !library && i < sizeof(names) / sizeof(*names); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

static bool load(struct nvml *n)
{
	void *library = open_library();

	if (!library)
		return false;
	look_up(library, "nvmlInit_v2", &n->init);
	look_up(library, "nvmlErrorString", &n->error);
	look_up(library, "nvmlSystemGetDriverVersion", &n->driver);
	look_up(library, "nvmlSystemGetCudaDriverVersion_v2", &n->cuda);
	look_up(library, "nvmlDeviceGetCount_v2", &n->count);
	look_up(library, "nvmlDeviceGetHandleByIndex_v2", &n->handle);
	look_up(library, "nvmlDeviceGetName", &n->name);
	look_up(library, "nvmlDeviceGetMemoryInfo", &n->memory);
	look_up(library, "nvmlDeviceGetCudaComputeCapability", &n->capability);
	look_up(library, "nvmlDeviceGetPciInfo_v3", &n->pci);
	return n->init != NULL;
}

static const char *error_text(const struct nvml *n, int code)
{
	return n->error && n->error(code) ? n->error(code) : "?";
}

static void add_cuda(struct fa_buf *out, int version)
{
	fa_buf_addf(out, "cuda=%d.%d\n", version / 1000, version % 1000 / 10);
}

static void answer_driver(struct fa_buf *out, const struct nvml *n)
{
	char text[96] = "";
	int version = 0;

	if (n->driver && n->driver(text, sizeof(text)) == 0)
		fa_buf_addf(out, "driver=%s\n", text);
	if (n->cuda && n->cuda(&version) == 0 && version > 0)
		add_cuda(out, version);
}

static void answer_card(struct fa_buf *out, const struct nvml *n, unsigned i)
{
	struct nvml_memory memory = { .total = 0 };
	struct nvml_pci pci = { .domain = 0 };
	char name[128] = "";
	void *device = NULL;
	int major, minor, code = n->handle(i, &device);

	fa_buf_addf(out, "gpu=%u\n", i);
	if (code != 0) {
		fa_buf_addf(out, "text=Unable to determine the device handle for GPU %u: %s\n", i, error_text(n, code));
		return;
	}
	if (n->name && n->name(device, name, sizeof(name)) == 0)
		fa_buf_addf(out, "name=%s\n", name);
	if (n->capability && n->capability(device, &major, &minor) == 0)
		fa_buf_addf(out, "arch=%d%d\n", major, minor);
	if (n->memory && n->memory(device, &memory) == 0 && memory.total)
		fa_buf_addf(out, "memory_mib=%llu\n", memory.total >> 20);
	if (n->pci && n->pci(device, &pci) == 0)
		fa_buf_addf(out, "pci=%.31s\n", pci.bus_id);
}

/* The CUDA that the driver brings, when NVML cannot say it: this call needs no initialisation. */
static void answer_by_libcuda(struct fa_buf *out)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*get)(int *) = NULL, version = 0;

	if (!library)
		return;
	look_up(library, "cuDriverGetVersion", &get);
	if (get && get(&version) == 0 && version > 0)
		add_cuda(out, version);
}

int fa_nvml_answer(struct fa_buf *out, const char *question)
{
	struct nvml n = { 0 };
	unsigned count = 0;
	int code;

	(void)question;
	if (!load(&n)) {
		fa_buf_addf(out, "nvml=missing\ntext=NVML: couldn't find libnvidia-ml.so.1\n");
		answer_by_libcuda(out);
		return 0;
	}
	code = n.init();
	if (code != 0) {
		fa_buf_addf(out, "nvml=%d\ntext=Failed to initialize NVML: %s\n", code, error_text(&n, code));
		return 0;
	}
	fa_buf_adds(out, "nvml=ok\n");
	answer_driver(out, &n);
	if (n.count && n.count(&count) == 0 && n.handle) {
		fa_buf_addf(out, "cards=%u\n", count);
		for (unsigned i = 0; i < count && i < 4096; i++)
			answer_card(out, &n, i);
	}
	return 0; /* the child ends here: shutting down could only hang */
}
