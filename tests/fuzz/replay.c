/* Stands in for the fuzzer: hands every file of the folders given, and of no file at all, to the target. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *dir, const char *name)
{
	static uint8_t data[1 << 20];
	char path[4096];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (!f)
		return -1;
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	for (size_t cut = 1; cut < size; cut = cut * 2 + 1) /* the same, truncated */
		LLVMFuzzerTestOneInput(data, cut);
	return 0;
}

int main(int argc, char **argv)
{
	int n = 0;

	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		struct dirent *e;

		while (d && (e = readdir(d)))
			if (e->d_name[0] != '.')
				n += replay(argv[i], e->d_name) == 0;
		if (d)
			closedir(d);
	}
	printf("%d files\n", n);
	return n ? 0 : 1;
}
