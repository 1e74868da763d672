/* The driver's management library, loaded when asked: prints what sys_ask.h says. Runs in a child, since it may hang. */
#ifndef FA_SYS_NVML_H
#define FA_SYS_NVML_H

int fa_nvml_answer(const char *question);

#endif
