#include "gate.h"

#include "buf.h"
#include "file.h"
#include "gate_table.h"
#include "json.h"
#include "load.h"
#include "objects.h"
#include "strv.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	KEEP_OUTPUT = 1024 * 1024, /* bytes of a compiler's output */
	TICK_MS = 250,
	WAIT_MS = 500, /* between two looks at what might stop us; a place that becomes free is told at once */
	TRIES = 2,     /* of a unit that the kernel killed */
	HANG_S = 600,
	USUAL_MIB = 4000,
	USUAL_CXX_MIB = 1300
};

static volatile sig_atomic_t stopped; /* the signal that asked us to end */

struct gate {
	struct fa_gate_table table;
	struct fa_gate_room room;
	const char *dir; /* of the build; NULL: none, only the table counts */
	const char *compiler;
	struct fa_strv
	        wrapper; /* program and script that call the compiler of a part for the device; empty: it is called itself */
	char *unit;
	char *temporary; /* TMPDIR of the compiler: nothing of a killed one stays behind */
	bool cuda;       /* compiles kernels: called as nvcc or hipcc */
	bool hip;
	double expect_s, priority;
	int64_t expect_mib;
	struct fa_objects objects; /* dir NULL: none are kept */
	struct fa_object object;
	bool keeps; /* this one may be */
	const char *output;
};

struct run { /* one try of a unit */
	pid_t pid, watcher;
	int out, life; /* the compiler's output; our end of the watcher's pipe */
	struct fa_buf output;
	int wait_status;
	bool ended, pushed_out, stop_seen, hung;
	uint64_t ticks;      /* of CPU, when it was looked at last */
	double alive;        /* CLOCK_MONOTONIC, not while the machine sleeps: when it last used some */
	struct fa_load load; /* of the machine when it began */
	double seconds, cpu;
	double busy; /* cores of the machine that were busy meanwhile, by whomever; -1: unknown */
	int64_t peak_mib;
};

static void on_signal(int sig)
{
	stopped = sig;
}

static bool flag_is_up(const struct gate *g, const char *name)
{
	char *path = g->dir ? fa_path_join(g->dir, name) : NULL;
	bool up = path && access(path, F_OK) == 0;

	free(path);
	return up;
}

/* ---- what it tells the build */

static void append_line(const struct gate *g, const char *name, const char *text)
{
	char *path = fa_path_join(g->dir, name);
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

	if (fd >= 0) {
		if (write(fd, text, strlen(text)) < 0)
			perror(path);
		close(fd);
	}
	free(path);
}

/* One JSON line in one write: lines of many gates do not mix. */
static void tell(const struct gate *g, const char *what, const struct run *r, const char *text, size_t len)
{
	struct fa_json *j;
	char *line, *copy = text ? fa_strndup(text, len < 800 ? len : 800) : NULL;

	if (!g->dir) {
		free(copy);
		return;
	}
	j = fa_json_new_object();
	fa_json_set_string(j, "what", what);
	fa_json_set_string(j, "unit", g->unit);
	fa_json_set_string(j, "text", copy);
	if (r) {
		fa_json_set_number(j, "seconds", r->seconds);
		fa_json_set_number(j, "cpu", r->cpu);
		fa_json_set_number(j, "busy", r->busy);
		fa_json_set_number(j, "peak_mib", (double)r->peak_mib);
	}
	line = fa_json_print(j, false);
	fa_json_free(j);
	free(copy);
	copy = fa_strf("%s\n", line);
	append_line(g, "events", copy);
	free(copy);
	free(line);
}

/* How much room there is: read again each time, memory can be plugged in and taken away. */
static const struct fa_gate_room *look_round(void *ctx)
{
	struct gate *g = ctx;
	int64_t used = 0;

	fa_gate_table_used(&g->table, &used);
	fa_gate_room_read(&g->room, used, NULL);
	return &g->room;
}

/* ---- the unit and what is known of it */

static const char *output_of(char **argv)
{
	const char *out = NULL;
	bool compiles = false;

	for (char **a = argv + 1; *a; a++) {
		if (!strcmp(*a, "-c") || !strcmp(*a, "--compile"))
			compiles = true;
		else if (!strcmp(*a, "-o") && a[1])
			out = a[1];
	}
	return compiles ? out : NULL;
}

static char *unit_name(const char *output)
{
	char *name = fa_strdup(fa_path_base(output)), *dot = strrchr(name, '.');

	if (dot && dot != name)
		*dot = '\0';
	return name;
}

/* `units`: "name seconds MiB priority" a line; a part "name.2" without a line of its own counts as the whole. */
static void look_up(struct gate *g)
{
	char *path = g->dir ? fa_path_join(g->dir, "units") : NULL;
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[512], name[256];
	size_t len = strcspn(g->unit, ".");
	double seconds, priority;
	long mib;
	bool exact = false;

	g->expect_s = g->priority = 0;
	g->expect_mib = g->cuda ? USUAL_MIB : USUAL_CXX_MIB;
	while (f && !exact && fgets(line, sizeof(line), f)) {
		int fields = sscanf(line, "%255s %lf %ld %lf", name, &seconds, &mib, &priority);

		if (fields < 3)
			continue;
		exact = !strcmp(name, g->unit);
		if (exact || (strlen(name) == len && !strncmp(name, g->unit, len))) {
			g->expect_s = seconds;
			g->expect_mib = mib;
			g->priority = fields == 4 ? priority : seconds;
		}
	}
	if (f)
		fclose(f);
	free(path);
}

static int take_slot(struct gate *g, struct fa_err *err)
{
	struct fa_gate_slot *s;

	if (fa_gate_table_open(&g->table, getenv("FAINSTALL_GATE_TABLE"), err) < 0 || fa_gate_table_join(&g->table, err) < 0)
		return -1;
	s = fa_gate_table_mine(&g->table);
	s->jobs = (int)fa_gate_setting("FAINSTALL_GATE_JOBS", 0);
	s->expect_s = g->expect_s;
	s->priority = g->priority;
	s->expect_mib = s->told_mib = g->expect_mib;
	s->build = fa_gate_build_id(g->dir);
	snprintf(s->unit, sizeof(s->unit), "%s", g->unit);
	fa_gate_table_requeue(&g->table, false);
	return 0;
}

/* true: go. false: the build stops, or we do. */
static bool wait_for_turn(struct gate *g)
{
	while (!stopped && !flag_is_up(g, "stop") && !flag_is_up(g, "drain"))
		if (fa_gate_table_wait(&g->table, WAIT_MS, look_round, g))
			return true;
	return false;
}

/* ---- running it */

/* Ends the compiler's group when we die: read() returns once our end of the pipe is gone. It keeps the slot's lock until then. */
static _Noreturn void watch(int life, pid_t group)
{
	char c;

	prctl(PR_SET_NAME, "gate-watch");
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	setpgid(0, 0);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	while (read(life, &c, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < 200 && kill(-group, SIGKILL) == 0; i++)
		usleep(10000);
	_exit(0);
}

static void write_word(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, word, strlen(word)) < 0)
		errno = 0; /* a courtesy only */
	if (fd >= 0)
		close(fd);
}

static void call_compiler(const struct gate *g, char **argv)
{
	struct fa_strv all = FA_STRV_INIT;

	for (size_t i = 0; i < g->wrapper.n; i++)
		fa_strv_push(&all, g->wrapper.v[i]);
	fa_strv_push(&all, g->compiler);
	for (char **a = argv + 1; *a; a++)
		fa_strv_push(&all, *a);
	execv(all.v[0], all.v);
	dprintf(2, "%s: error: %s\n", all.v[0], strerror(errno));
	fa_strv_release(&all);
}

static _Noreturn void become_compiler(const struct gate *g, char **argv, int out)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	dup2(out, 1);
	dup2(out, 2);
	if (out > 2)
		close(out);
	if (nice((int)fa_gate_setting("FAINSTALL_GATE_NICE", 10)) == -1)
		errno = 0;
	write_word("/proc/self/oom_score_adj", "500"); /* rather the compiler than the desktop */
	if (g->temporary)
		setenv("TMPDIR", g->temporary, 1);
	call_compiler(g, argv);
	_exit(127);
}

static int start(struct gate *g, struct run *r, char **argv)
{
	int out[2], life[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		return -1;
	if (pipe2(life, O_CLOEXEC) < 0) {
		close(out[0]);
		close(out[1]);
		return -1;
	}
	r->pid = fork();
	if (r->pid == 0)
		become_compiler(g, argv, out[1]);
	close(out[1]);
	r->out = out[0];
	r->life = life[1];
	if (r->pid > 0) {
		setpgid(r->pid, r->pid);
		fa_gate_table_mine(&g->table)->group = r->pid;
		r->watcher = fork();
		if (r->watcher == 0) {
			close(life[1]);
			close(out[0]);
			watch(life[0], r->pid);
		}
	}
	close(life[0]);
	return r->pid > 0 ? 0 : -1;
}

static void read_output(struct run *r)
{
	char chunk[16384];
	ssize_t n = read(r->out, chunk, sizeof(chunk));

	if (n <= 0) {
		if (n == 0 || errno != EINTR) {
			close(r->out);
			r->out = -1;
		}
		return;
	}
	if (r->output.len < KEEP_OUTPUT)
		fa_buf_add(&r->output, chunk, (size_t)n);
}

static double awake(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(struct gate *g, struct run *r)
{
	struct fa_gate_slot *s = fa_gate_table_mine(&g->table);
	struct fa_tree_use use;

	fa_tree_use(&use, getpid());
	s->rss_mib = use.resident_kib / 1024;
	if (s->rss_mib > r->peak_mib)
		r->peak_mib = s->rss_mib;
	fa_gate_table_outgrown(&g->table, s->rss_mib);
	if (use.ticks != r->ticks || use.waits || r->alive <= 0)
		r->alive = awake();
	r->ticks = use.ticks;
	s->cpu_s = (double)use.ticks / (double)sysconf(_SC_CLK_TCK);
}

static void end_group(struct run *r)
{
	kill(-r->pid, SIGKILL);
	r->stop_seen = true;
}

static void look_for_reasons_to_stop(struct gate *g, struct run *r)
{
	if (r->stop_seen)
		return;
	if (stopped || flag_is_up(g, "stop")) {
		end_group(r);
	} else if (fa_gate_table_mine(&g->table)->stop) {
		r->pushed_out = true;
		end_group(r);
	} else if (awake() - r->alive > (double)fa_gate_setting("FAINSTALL_GATE_HANG_S", HANG_S)) {
		r->hung = true;
		end_group(r);
		fa_buf_addf(&r->output, "\n%s: error: the compiler hangs: it used no CPU for %.0f s and was stopped\n", g->unit,
		            awake() - r->alive);
	}
}

static void reap(struct run *r)
{
	struct rusage use;

	if (r->ended || wait4(r->pid, &r->wait_status, WNOHANG, &use) != r->pid)
		return;
	r->ended = true;
	r->cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
	if (use.ru_maxrss / 1024 > r->peak_mib) /* the largest single process: missed between two looks */
		r->peak_mib = use.ru_maxrss / 1024;
}

/* Until the compiler has ended and its output is read; a grandchild that keeps the pipe open is not waited for. */
static void follow(struct gate *g, struct run *r)
{
	double began = fa_gate_clock(), looked = 0;
	struct fa_load load;

	fa_load_read(&r->load);
	while (!r->ended || r->out >= 0) {
		struct pollfd p = { .fd = r->out, .events = POLLIN };
		int ready = poll(&p, 1, r->ended ? 0 : r->out < 0 ? 20 : TICK_MS);

		if (ready > 0)
			read_output(r);
		reap(r);
		if (r->ended && ready <= 0)
			break;
		if (!r->ended && fa_gate_clock() - looked >= TICK_MS / 1000.0) {
			looked = fa_gate_clock();
			measure(g, r);
			look_for_reasons_to_stop(g, r);
		}
	}
	r->seconds = fa_gate_clock() - began;
	fa_load_read(&load);
	r->busy = fa_load_between(&r->load, &load);
}

static void finish(struct run *r)
{
	kill(-r->pid, SIGKILL); /* whatever it left in its group */
	if (r->out >= 0)
		close(r->out);
	if (r->watcher > 0) {
		kill(r->watcher, SIGKILL);
		waitpid(r->watcher, NULL, 0);
	}
	close(r->life);
}

static int exit_of(const struct run *r)
{
	return WIFEXITED(r->wait_status) ? WEXITSTATUS(r->wait_status) : 128 + WTERMSIG(r->wait_status);
}

static bool killed_for_memory(const struct run *r)
{
	if (r->stop_seen || exit_of(r) == 0)
		return r->pushed_out;
	return exit_of(r) == 128 + SIGKILL || fa_gate_speaks_of_memory(fa_buf_str(&r->output));
}

static bool try_again(struct gate *g, struct run *r, int tries)
{
	struct fa_gate_slot *s = fa_gate_table_mine(&g->table);

	fa_gate_table_outgrown(&g->table, r->peak_mib);
	if (stopped || !killed_for_memory(r) || (!r->pushed_out && tries >= TRIES))
		return false;
	if (r->peak_mib + r->peak_mib / 4 > s->expect_mib)
		s->expect_mib = r->peak_mib + r->peak_mib / 4;
	tell(g, r->pushed_out ? "pushed_out" : "killed", r, NULL, 0);
	fa_gate_table_requeue(&g->table, true);
	return true;
}

/* The first unit that fails stops the rest. */
static void stop_the_rest(const struct gate *g)
{
	char *path = g->dir ? fa_path_join(g->dir, "stop") : NULL;
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;

	if (fd >= 0)
		close(fd);
	free(path);
}

static void report_failure(struct gate *g, struct run *r)
{
	const char *text = fa_buf_str(&r->output), *line, *what = killed_for_memory(r) ? "no_memory" : "failed";
	size_t len = 0;
	char silent[64];

	if ((r->stop_seen && !r->hung) || stopped) {
		tell(g, "stopped", r, NULL, 0);
		return;
	}
	if (WIFSIGNALED(r->wait_status) && WTERMSIG(r->wait_status) == SIGKILL)
		snprintf(silent, sizeof(silent), "the kernel killed it (signal 9) at %lld MiB", (long long)r->peak_mib);
	else
		snprintf(silent, sizeof(silent), "%s %d without a word",
		         WIFSIGNALED(r->wait_status) ? "ended by signal" : "exit status",
		         WIFSIGNALED(r->wait_status) ? WTERMSIG(r->wait_status) : exit_of(r));
	line = fa_gate_first_error(text, &len);
	if (!line) {
		line = r->output.len ? text : silent;
		len = strcspn(line, "\n");
	}
	tell(g, what, r, line, len);
	stop_the_rest(g);
}

/* So that the next build knows an object that a power cut, or somebody, has damaged since. */
static void note_made(const struct gate *g)
{
	char hash[FA_SHA256_HEX], *path, *line;

	if (!g->dir || fa_sha256_file(hash, g->output, NULL) < 0)
		return;
	path = fa_path_absolute(g->output);
	line = fa_strf("%s %s\n", hash, path);
	append_line(g, "made", line);
	free(line);
	free(path);
}

static void leave_place(struct gate *g)
{
	__atomic_store_n(&fa_gate_table_mine(&g->table)->state, FA_GATE_FREE, __ATOMIC_SEQ_CST);
	fa_gate_table_ring(&g->table);
}

/* It is told once it is kept: what was told is not compiled again, whatever is killed. */
static void succeed(struct gate *g, struct run *r)
{
	leave_place(g);
	if (g->keeps)
		fa_objects_store(&g->objects, &g->object, NULL);
	note_made(g);
	tell(g, "end", r, NULL, 0);
}

static int run_unit(struct gate *g, char **argv)
{
	int status = 1;

	for (int tries = 1; wait_for_turn(g); tries++) {
		struct run r = { .out = -1, .life = -1, .output = FA_BUF_INIT, .busy = -1 };

		tell(g, "begin", NULL, NULL, 0);
		if (start(g, &r, argv) < 0) {
			fprintf(stderr, "%s: %s\n", g->compiler, strerror(errno));
			break;
		}
		follow(g, &r);
		finish(&r);
		if (try_again(g, &r, tries)) {
			fa_buf_release(&r.output);
			continue;
		}
		fwrite(fa_buf_str(&r.output), 1, r.output.len, stdout);
		fflush(stdout);
		status = exit_of(&r);
		if (status == 0)
			succeed(g, &r);
		else
			report_failure(g, &r);
		fa_buf_release(&r.output);
		break;
	}
	leave_place(g);
	return stopped ? 128 + stopped : status;
}

/* torch asks hipcc for no list of the headers read; without one no object can be kept. The caller's; the texts are borrowed but the
 * last. */
static char **with_depfile(char **argv, const char *output)
{
	size_t n = 0;
	char **more;

	while (argv[n] && strcmp(argv[n], "-MF") != 0)
		n++;
	if (argv[n])
		return NULL;
	more = fa_calloc(n + 4, sizeof(*more));
	memcpy(more, argv, n * sizeof(*more));
	more[n] = (char *)"-MD";
	more[n + 1] = (char *)"-MF";
	more[n + 2] = fa_strf("%s.d", output);
	return more;
}

/* Kernels that read none of torch's headers do not care which torch, or which Python, is in the include path. CK's read none. (A file that
 * does has them in its list of headers, by content.) */
static void look_for_kept(struct gate *g, char **argv)
{
	const char *dir = getenv("FAINSTALL_GATE_OBJECTS");
	bool free_of_torch = g->hip;

	if (!dir || !*dir || !g->cuda)
		return;
	for (char **a = argv + 1; *a; a++)
		free_of_torch |= !strcmp(*a, "-DFA_SHADOW");
	fa_objects_init(&g->objects, dir, getenv("FAINSTALL_GATE_IDENTITY"), getenv("FAINSTALL_GATE_ROOTS"));
	g->keeps = fa_objects_look(&g->object, &g->objects, argv, free_of_torch ? "TP" : NULL) == 0;
}

/* Parts for the device lie in a folder of that name (recipes/profile_units.py). */
static void look_for_wrapper(struct gate *g, char **argv)
{
	const char *wrapper = getenv("FAINSTALL_GATE_DEVICE");
	bool part = false;

	for (char **a = argv + 1; *a && g->cuda; a++)
		part |= strstr(*a, "/generated/device/") && strlen(*a) > 3 && !strcmp(*a + strlen(*a) - 3, ".cu");
	if (part && wrapper)
		fa_strv_split(&g->wrapper, wrapper, "\n");
}

static void make_temporary(struct gate *g)
{
	char *parent = g->dir ? fa_path_join(g->dir, "tmp") : NULL;

	if (!parent)
		return;
	g->temporary = fa_strf("%s/%d", parent, (int)getpid());
	if (fa_file_mkdirs(g->temporary, NULL) < 0) {
		free(g->temporary);
		g->temporary = NULL;
	}
	free(parent);
}

static void catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal };

	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGHUP, &a, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int fa_gate_main(int argc, char **argv)
{
	struct gate g = { .table = { .fd = -1, .leader_fd = -1, .mine = -1 } };
	struct fa_err err = FA_ERR_INIT;
	const char *output;
	char **more = NULL;
	int rc = 1;

	g.hip = argc > 0 && !strcmp(fa_path_base(argv[0]), "hipcc");
	g.cuda = g.hip || (argc > 0 && !strcmp(fa_path_base(argv[0]), "nvcc"));
	g.compiler = getenv(g.cuda ? "FAINSTALL_GATE_NVCC" : "FAINSTALL_GATE_CXX");
	g.dir = getenv("FAINSTALL_GATE_DIR");
	if (!g.compiler) {
		fprintf(stderr, "%s: no compiler named; the gate is called by a build of fainstall\n",
		        argc > 0 ? argv[0] : "gate");
		return FA_INTERNAL;
	}
	output = output_of(argv);
	if (!output) { /* asks for a version, links: nothing to wait for */
		call_compiler(&g, argv);
		return 127;
	}
	look_for_wrapper(&g, argv);
	catch_signals();
	g.output = output;
	g.unit = unit_name(output);
	if (g.hip && (more = with_depfile(argv, output)))
		argv = more;
	look_for_kept(&g, argv);
	if (g.keeps && fa_objects_fetch(&g.objects, &g.object)) {
		note_made(&g);
		tell(&g, "kept", NULL, NULL, 0);
		rc = 0;
		goto done;
	}
	look_up(&g);
	if (take_slot(&g, &err) < 0) {
		fprintf(stderr, "error: %s\n", err.text);
		goto done;
	}
	make_temporary(&g);
	rc = run_unit(&g, argv);
	if (rc != 0)
		unlink(output); /* half an object is no object */
done:
	fa_gate_table_close(&g.table);
	if (g.temporary)
		fa_file_remove_tree(g.temporary, NULL);
	if (more)
		free(more[argc + 2]);
	free(more);
	free(g.temporary);
	free(g.unit);
	fa_objects_release(&g.objects);
	fa_strv_release(&g.wrapper);
	return rc;
}
