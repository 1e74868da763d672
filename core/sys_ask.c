#include "sys_ask.h"

#include "buf.h"
#include "file.h"
#include "sys_nvml.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- system */

static int usable_cores(void)
{
	enum { CPUS = 8192 };
	cpu_set_t *set = CPU_ALLOC(CPUS);
	size_t size = CPU_ALLOC_SIZE(CPUS);
	int n = set && sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : (int)sysconf(_SC_NPROCESSORS_ONLN);

	CPU_FREE(set);
	return n;
}

static int answer_system(struct fa_buf *out, const char *question)
{
	struct utsname u;

	(void)question;
	if (uname(&u) == 0)
		fa_buf_addf(out, "sysname=%s\nrelease=%s\nmachine=%s\n", u.sysname, u.release, u.machine);
	fa_buf_addf(out, "glibc=%s\ncores=%d\n", gnu_get_libc_version(), usable_cores());
	return 0;
}

/* ---- pci */

/* The caller's; "" when it cannot be read. */
static char *read_word(const char *device, const char *name)
{
	char *path = fa_strf("/sys/bus/pci/devices/%s/%s", device, name);
	struct fa_buf b = FA_BUF_INIT;

	fa_file_read(&b, path, 256, NULL);
	if (b.data)
		b.data[strcspn(b.data, "\n")] = '\0';
	free(path);
	return b.data ? b.data : fa_strdup("");
}

static const char *driver_of(char *out, size_t size, const char *device)
{
	char path[512], *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", device);
	n = readlink(path, out, size - 1);
	if (n <= 0)
		return "-";
	out[n] = '\0';
	slash = strrchr(out, '/');
	return slash ? slash + 1 : out;
}

static void answer_pci_device(struct fa_buf *out, const char *device)
{
	char *class = read_word(device, "class"), *vendor = read_word(device, "vendor"), *id = read_word(device, "device");
	char link[512];

	if (!strncmp(class, "0x03", 4) || !strncmp(class, "0x12", 4))
		fa_buf_addf(out, "pci=%s %s %s %s %s\n", device, vendor, id, class, driver_of(link, sizeof(link), device));
	free(class);
	free(vendor);
	free(id);
}

static int answer_pci(struct fa_buf *out, const char *question)
{
	struct dirent **names = NULL;
	int n = scandir("/sys/bus/pci/devices", &names, NULL, alphasort);

	(void)question;
	fa_buf_addf(out, "bus=%s\n", n >= 0 ? "yes" : "no");
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.')
			answer_pci_device(out, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return 0;
}

/* ---- libraries, by their bytes */

struct map {
	const char *data;
	size_t len;
};

static bool map_file(struct map *out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return false;
	*out = (struct map){ p, (size_t)st.st_size };
	return true;
}

static void unmap(struct map *m)
{
	munmap((void *)(uintptr_t)m->data, m->len);
}

static int answer_glibcxx(struct fa_buf *out, const char *question)
{
	static const char prefix[] = "GLIBCXX_3.4.";
	const char *file = strchr(question, ' ');
	struct map m;
	long best = -1;

	if (!file || !map_file(&m, file + 1))
		return 1;
	for (const char *p = m.data; (p = memmem(p, m.len - (size_t)(p - m.data), prefix, sizeof(prefix) - 1));) {
		long n = 0;

		p += sizeof(prefix) - 1;
		for (; p < m.data + m.len && isdigit((unsigned char)*p) && n < 10000; p++)
			n = 10 * n + (*p - '0');
		if (p < m.data + m.len && *p == '\0' && n > best)
			best = n;
	}
	if (best >= 0)
		fa_buf_addf(out, "glibcxx=3.4.%ld\n", best);
	unmap(&m);
	return 0;
}

/* libc10 exports c10::detail::torchCheckFail(const char *, const char *, unsigned, const std::string &): its name tells which
 * std::string. */
static void answer_abi(struct fa_buf *out, const char *folder)
{
	static const char name[] = "_ZN3c106detail14torchCheckFailEPKcS2_jRK";
	char path[4096];
	struct map m;

	snprintf(path, sizeof(path), "%s/lib/libc10.so", folder);
	if (!map_file(&m, path))
		return;
	for (const char *p = m.data; (p = memmem(p, m.len - (size_t)(p - m.data), name, sizeof(name) - 1));) {
		p += sizeof(name) - 1;
		if (m.data + m.len - p < 16)
			break;
		if (!strncmp(p, "NSt7__cxx1112", 13) || !strncmp(p, "Ss", 2)) {
			fa_buf_addf(out, "cxx11abi=%d\n", *p == 'N');
			break;
		}
	}
	unmap(&m);
}

/* Length of a list such as "sm_75 sm_80 compute_90" or "gfx90a gfx942" at p; 0: none. Ends at the first other byte. */
static size_t list_length(const char *p, size_t len)
{
	size_t n = 0;

	while (n < len && n < 1024 &&
	       (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == ' ' || p[n] == '-' || p[n] == '+'))
		n++;
	return n < len && p[n] == '\0' ? n : 0;
}

static bool is_arch_list(const char *p, size_t len)
{
	size_t words = 0;

	for (size_t i = 0; i < len;) {
		size_t n = 0;

		while (i + n < len && p[i + n] != ' ')
			n++;
		if (!(n > 3 && !strncmp(p + i, "sm_", 3)) && !(n > 8 && !strncmp(p + i, "compute_", 8)) &&
		    !(n > 5 && !strncmp(p + i, "gfx", 3) && isdigit((unsigned char)p[i + 3])))
			return false;
		words++;
		i += n + 1;
	}
	return words > 0;
}

/* A list that begins with these four bytes, the first of which is the NUL of what stands before it. */
static bool find_arch_list(struct fa_buf *out, const struct map *m, const char begins[4])
{
	for (const char *p = m->data; (p = memmem(p, m->len - (size_t)(p - m->data), begins, 4)); p += 4) {
		size_t n = list_length(p + 1, m->len - (size_t)(p + 1 - m->data));

		if (n > 4 && is_arch_list(p + 1, n)) {
			fa_buf_addf(out, "archs=%.*s\n", (int)n, p + 1);
			return true;
		}
	}
	return false;
}

/* torch.cuda.get_arch_list() returns a text that stands in libtorch_python. */
static void answer_archs(struct fa_buf *out, const char *folder)
{
	static const char cuda[4] = { '\0', 's', 'm', '_' }, rocm[4] = { '\0', 'g', 'f', 'x' };
	char path[4096];
	struct map m;

	snprintf(path, sizeof(path), "%s/lib/libtorch_python.so", folder);
	if (!map_file(&m, path))
		return;
	if (!find_arch_list(out, &m, cuda))
		find_arch_list(out, &m, rocm);
	unmap(&m);
}

static int answer_torch(struct fa_buf *out, const char *question)
{
	const char *folder = strchr(question, ' ');

	if (!folder)
		return 1;
	answer_abi(out, folder + 1);
	answer_archs(out, folder + 1);
	return 0;
}

/* ---- */

fa_answer *fa_ask_answer(const char *question)
{
	static const struct {
		const char *word;
		fa_answer *answer;
	} answers[] = { { "system", answer_system },
		        { "pci", answer_pci },
		        { "nvml", fa_nvml_answer },
		        { "glibcxx", answer_glibcxx },
		        { "torch", answer_torch } };
	size_t len = strcspn(question, " ");

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (strlen(answers[i].word) == len && !strncmp(answers[i].word, question, len))
			return answers[i].answer;
	return NULL;
}
