/* What an earlier build left in a source folder, before the build system takes it for made. */
#ifndef FA_BUILD_KEPT_H
#define FA_BUILD_KEPT_H

struct fa_sink;

/* Removes objects that are not as they were made (`made` of the gate's folder: a hash and a path a line, the last of a path counts): a power cut
 * leaves empty ones with the right time. The build system makes again what is gone, or the store has it. A WARNING "damaged_object" each.
 *
 * Times that lie ahead (the clock was wrong when they were written): the build system would compile what depends on such a file again at each
 * run, or never. Sources get the present time, objects go. A NOTE "clock". */
void fa_build_check_kept(const char *source, const char *gate_dir, const struct fa_sink *sink);

#endif
