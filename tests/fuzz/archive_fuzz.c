/* Hostile archives: whatever the bytes are, nothing is written outside the folder given. */
#include "archive.h"
#include "buf.h"
#include "file.h"
#include "strv.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64], dir[64];
	struct fa_strv names = FA_STRV_INIT;
	struct fa_buf text = FA_BUF_INIT;
	int fd = memfd_create("archive", MFD_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(dir, sizeof(dir), "/dev/shm/fa-fuzz-%ld", (long)getpid());
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (fa_archive_unpack(path, dir, size % 3 == 0, 1 << 20, NULL, NULL) == 0)
		fa_file_remove_tree(dir, NULL);
	if (fa_file_exists(dir))
		abort();
	if (fa_archive_list(&names, path, NULL) == 0 && names.n)
		fa_archive_read(&text, path, names.v[names.n - 1], 1 << 16, NULL);
	fa_buf_release(&text);
	fa_strv_release(&names);
	close(fd);
	return 0;
}
