/* Files of ours: read whole, written beside themselves and renamed; paths and folders. What describes the *machine* is read
 * through struct fa_sys instead, so that a recorded machine can stand in. */
#ifndef FA_FILE_H
#define FA_FILE_H

#include "buf.h"
#include "err.h"

#include <stdbool.h>

enum { FA_FILE_MAX = 256 * 1024 * 1024 }; /* bytes; larger "text" files are a mistake */

/* Appends the file to out. Errors name the path and the system's reason; a missing or unreadable file is FA_USAGE. */
int fa_file_read(struct fa_buf *out, const char *path, size_t max, struct fa_err *err);

/* Writes PATH.tmp.PID, flushes it to the disk and renames it: readers see the old or the new text, never half. Disk full and
 * permission are FA_MACHINE. */
int fa_file_write(const char *path, const void *data, size_t len, struct fa_err *err);

bool fa_file_exists(const char *path);
bool fa_file_is_dir(const char *path);
bool fa_file_is_executable(const char *path);

/* Makes the folder and those above it, mode 0777 less umask. */
int fa_file_mkdirs(const char *path, struct fa_err *err);

/* Removes a file or a whole folder without following links. Nothing there is no error. */
int fa_file_remove_tree(const char *path, struct fa_err *err);

/* Removes PATH.tmp.N where no process N lives and nothing was written for an hour: what a killed run left. */
void fa_file_remove_stale(const char *path);

/* "A/B" with exactly one slash between; B alone when it is absolute. The caller's. */
char *fa_path_join(const char *a, const char *b);
const char *fa_path_base(const char *path); /* after the last slash; borrowed */
char *fa_path_dir(const char *path);        /* before the last slash, "." without one; the caller's */
char *fa_path_absolute(const char *path);   /* made absolute by the working folder, links kept; the caller's */

/* Does a symbolic link called `name` (relative to a top folder) with this target lead to a place below the top? Without looking
 * at the disk, and whatever other links there are. */
bool fa_path_link_stays_inside(const char *name, const char *target);

/* Folders of the XDG base directory specification, made absolute, with /fainstall appended; not created. The caller's. */
char *fa_dir_data(void);   /* environments, wheelhouse, objects */
char *fa_dir_cache(void);  /* downloads, unpacked sources */
char *fa_dir_state(void);  /* logs */
char *fa_dir_config(void); /* settings, a lab's policy */

/* Where our own files lie: $FAINSTALL_DATA, else beside the program, else PREFIX/share/fainstall; FAINSTALL_LIBEXEC alike for
 * programs. NULL with err (FA_INTERNAL) when `name` ("matrix", "recipes/verify.py", "fainstall-worker") is not there. */
char *fa_dir_own(const char *name, struct fa_err *err);

#endif
