/* The driver's management library, loaded when asked: adds what sys_ask.h says. Runs in a child, since it may hang. */
#ifndef FA_SYS_NVML_H
#define FA_SYS_NVML_H

struct fa_buf;
int fa_nvml_answer(struct fa_buf *out, const char *question);

#endif
