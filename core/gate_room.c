#include "gate.h"

#include "memory.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST_RESERVE_MIB = 1024, RESERVE_SHARE = 20 };

int64_t fa_gate_setting(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	long long n = text ? strtoll(text, &end, 10) : 0;

	return text && *text && !*end && n >= 0 ? (int64_t)n : otherwise;
}

static int cores_of(const struct fa_memory_reader *reader)
{
	cpu_set_t set;
	int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
	int quota = fa_memory_cores(reader, NULL);

	if (quota > 0 && quota < cores)
		cores = quota;
	return cores > 0 ? cores : 1;
}

void fa_gate_room_read(struct fa_gate_room *out, int64_t used_mib, const struct fa_memory_reader *reader)
{
	int64_t cap = fa_gate_setting("FAINSTALL_GATE_MEMORY_MIB", -1);
	int64_t share = fa_memory_total_mib(reader) / RESERVE_SHARE;

	if (cap >= 0) /* said, not found: a machine may grow as it is used */
		out->available_mib = cap > used_mib ? cap - used_mib : 0;
	else
		out->available_mib = fa_memory_available_mib(reader, NULL);
	out->reserve_mib = fa_gate_setting("FAINSTALL_GATE_RESERVE_MIB", share > LEAST_RESERVE_MIB ? share : LEAST_RESERVE_MIB);
	out->cores = (int)fa_gate_setting("FAINSTALL_GATE_CORES", cores_of(reader));
	out->pressure = fa_memory_pressure(reader);
}

void fa_gate_share(struct fa_gate_room *room, const struct fa_gate_others *others, int64_t held_mib)
{
	int left = room->cores - others->running, even = room->cores / (1 + others->users);
	int64_t all = room->available_mib - room->reserve_mib + held_mib + others->held_mib;

	if (others->users < 1)
		return;
	if (others->waiting_users > 0 && left < even)
		left = even;
	room->cores = left > 1 ? left : 1;
	if (room->available_mib < 0)
		return;
	room->available_mib -= others->growing_mib;
	if (others->waiting_users > 0 && room->available_mib > all / (1 + others->users) - held_mib + room->reserve_mib)
		room->available_mib = all / (1 + others->users) - held_mib + room->reserve_mib;
	if (room->available_mib < 0)
		room->available_mib = 0;
}
