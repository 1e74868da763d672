/* The questions of struct fa_sys, answered on the real machine. Each adds KEY=VALUE lines.
 *
 *   system        sysname, release, machine of uname(2), glibc, cores this process may use
 *   nvml          nvml=ok, driver, cuda, cards, then for each card gpu=N, name, arch, memory_mib, pci; or nvml=CODE and text
 *   pci           pci=ADDRESS vendor device class driver, of display controllers and accelerators
 *   torch FOLDER  of torch's folder: cxx11abi=0|1, archs=…, from the bytes of its libraries
 *   glibcxx FILE  glibcxx=3.4.30, the newest that this libstdc++ offers
 */
#ifndef FA_SYS_ASK_H
#define FA_SYS_ASK_H

struct fa_buf;

/* A driver without persistence wakes each card when it is asked: eight of them take seconds. */
enum { FA_ASK_TIMEOUT_MS = 10000 };

/* NULL: no such question. */
typedef int fa_answer(struct fa_buf *out, const char *question);
fa_answer *fa_ask_answer(const char *question);

#endif
