/* The real wizard on a real (pseudo) terminal: tui_run in a child, its output read by libvterm, keys typed by us, work done by
 * tests/data/tui/fake/fainstall-worker. No network, no card; bounded waits. */
#include "fainstall.h"
#include "tui/tui.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>

#include <cmocka.h>

enum { PATIENCE_MS = 15000 };

struct pty {
	int fd;
	pid_t pid;
	VTerm *vt;
	VTermScreen *screen;
	int rows, cols;
	bool alternate, cursor;
	struct fa_buf raw; /* every byte that came */
	struct termios before;
	int status; /* of waitpid; -1: still there */
};

static char folder[] = "/tmp/fainstall-pty-XXXXXX"; /* knowledge and the fake worker; also the working folder */

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the child */

struct setup {
	const char *term, *lang, *fake, *colors; /* NULL: xterm-256color, C.UTF-8, ok, as the terminal */
	int rows, cols;
};

static void load_facts(struct fa_facts *facts)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	char *path = fa_path_join(folder, "facts.json");
	if (fa_json_read_file(&j, path, &err) < 0 || fa_facts_from_json(facts, j, "facts", &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(99);
	}
	fa_json_free(j);
	free(path);
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static int wizard(const struct setup *s)
{
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_wish wish = FA_WISH_INIT;
	struct fa_matrix *m = NULL;
	struct fa_err err = FA_ERR_INIT;
	int rc;
	set("TERM", s->term ? *s->term ? s->term : NULL : "xterm-256color");
	set("LC_ALL", s->lang ? s->lang : "C.UTF-8");
	set("FAKE", s->fake ? s->fake : "ok");
	set("NO_COLOR", s->colors);
	set("FAINSTALL_DATA", folder);
	set("VIRTUAL_ENV", "/home/me/llm/.venv");
	unsetenv("COLUMNS");
	unsetenv("LINES");
	if (chdir(folder) < 0 || fa_matrix_open(&m, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 99;
	}
	load_facts(&facts);
	rc = tui_run(&facts, &wish, m, NULL);
	fa_facts_release(&facts);
	fa_wish_release(&wish);
	fa_matrix_close(m);
	return rc == TUI_PLAIN ? 77 : rc;
}

/* ---- the terminal */

static int on_property(VTermProp prop, VTermValue *value, void *ctx)
{
	struct pty *p = ctx;
	if (prop == VTERM_PROP_ALTSCREEN)
		p->alternate = value->boolean;
	else if (prop == VTERM_PROP_CURSORVISIBLE)
		p->cursor = value->boolean;
	return 1;
}

static void on_reply(const char *bytes, size_t len, void *ctx)
{
	struct pty *p = ctx;
	if (write(p->fd, bytes, len) < 0)
		return; /* the child is gone */
}

/* A terminal as a shell leaves it. */
static struct termios cooked(void)
{
	struct termios t = { .c_iflag = ICRNL | IXON,
		             .c_oflag = OPOST | ONLCR,
		             .c_cflag = CS8 | CREAD,
		             .c_lflag = ISIG | ICANON | ECHO | ECHOE | IEXTEN };
	t.c_cc[VINTR] = 3;
	t.c_cc[VEOF] = 4;
	t.c_cc[VSUSP] = 26;
	t.c_cc[VERASE] = 127;
	t.c_cc[VMIN] = 1;
	cfsetspeed(&t, B38400);
	return t;
}

static void pty_open(struct pty *p, struct setup s)
{
	static const VTermScreenCallbacks callbacks = { .settermprop = on_property };
	struct winsize size = { .ws_row = (unsigned short)(s.rows ? s.rows : 24),
		                .ws_col = (unsigned short)(s.cols ? s.cols : 80) };
	*p = (struct pty){ .rows = size.ws_row, .cols = size.ws_col, .cursor = true, .status = -1 };
	fflush(NULL);
	p->before = cooked();
	p->pid = forkpty(&p->fd, NULL, &p->before, &size);
	assert_true(p->pid >= 0);
	if (p->pid == 0)
		exit(wizard(&s));
	p->vt = vterm_new(p->rows, p->cols);
	vterm_set_utf8(p->vt, 1);
	vterm_output_set_callback(p->vt, on_reply, p);
	p->screen = vterm_obtain_screen(p->vt);
	vterm_screen_set_callbacks(p->screen, &callbacks, p);
	vterm_screen_enable_altscreen(p->screen, 1);
	vterm_screen_reset(p->screen, 1);
}

static void pty_close(struct pty *p)
{
	if (p->status == -1) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &p->status, 0);
	}
	close(p->fd);
	vterm_free(p->vt);
	fa_buf_release(&p->raw);
}

/* Reads what comes within ms. false: the other end is closed. */
static bool pump(struct pty *p, int ms)
{
	struct pollfd f = { p->fd, POLLIN, 0 };
	char bytes[65536];
	if (poll(&f, 1, ms) <= 0)
		return true;
	ssize_t n = read(p->fd, bytes, sizeof bytes);
	if (n <= 0)
		return false;
	vterm_input_write(p->vt, bytes, (size_t)n);
	fa_buf_add(&p->raw, bytes, (size_t)n);
	return true;
}

static char *row_text(const struct pty *p, int row)
{
	struct fa_buf out = FA_BUF_INIT;
	for (int col = 0; col < p->cols; col++) {
		VTermScreenCell cell;
		vterm_screen_get_cell(p->screen, (VTermPos){ row, col }, &cell);
		uint32_t ch = cell.chars[0] ? cell.chars[0] : ' ';
		if (ch == (uint32_t)-1)
			continue; /* the right half of a wide one */
		if (ch < 0x80)
			fa_buf_addc(&out, (char)ch);
		else if (ch < 0x800)
			fa_buf_addf(&out, "%c%c", (int)(0xC0 | ch >> 6), (int)(0x80 | (ch & 0x3F)));
		else
			fa_buf_addf(&out, "%c%c%c", (int)(0xE0 | ch >> 12), (int)(0x80 | (ch >> 6 & 0x3F)),
			            (int)(0x80 | (ch & 0x3F)));
	}
	return fa_buf_detach(&out);
}

static bool shows(const struct pty *p, const char *text)
{
	bool found = false;
	for (int row = 0; row < p->rows && !found; row++) {
		char *line = row_text(p, row);
		found = strstr(line, text) != NULL;
		free(line);
	}
	return found;
}

static void print_screen(const struct pty *p)
{
	for (int row = 0; row < p->rows; row++) {
		char *line = row_text(p, row);
		print_message("|%s|\n", line);
		free(line);
	}
}

static void wait_for(struct pty *p, const char *text)
{
	int64_t until = now_ms() + PATIENCE_MS;
	bool alive = true;
	while (alive && !shows(p, text) && now_ms() < until)
		alive = pump(p, 100);
	if (!shows(p, text)) {
		print_screen(p);
		fail_msg("\"%s\" is not on the screen", text);
	}
}

static void type(struct pty *p, const char *keys)
{
	assert_int_equal(write(p->fd, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* Waits for the end of the child; its exit status, or 1000 + signal. */
static int ends(struct pty *p)
{
	int64_t until = now_ms() + PATIENCE_MS;
	while (now_ms() < until && waitpid(p->pid, &p->status, WNOHANG) == 0) {
		p->status = -1;
		pump(p, 50);
	}
	while (pump(p, 50) && p->raw.len && poll(&(struct pollfd){ p->fd, POLLIN, 0 }, 1, 0) > 0)
		;
	assert_int_not_equal(p->status, -1);
	return WIFSIGNALED(p->status) ? 1000 + WTERMSIG(p->status) : WEXITSTATUS(p->status);
}

/* Is the terminal as it was before the wizard: screen, cursor, line settings? */
static void is_restored(const struct pty *p)
{
	struct termios now;
	assert_false(p->alternate);
	assert_true(p->cursor);
	assert_int_equal(tcgetattr(p->fd, &now), 0);
	assert_int_equal(now.c_lflag & (ICANON | ECHO | ISIG), p->before.c_lflag & (ICANON | ECHO | ISIG));
	assert_int_equal(now.c_iflag & ICRNL, p->before.c_iflag & ICRNL);
	assert_int_equal(now.c_oflag & OPOST, p->before.c_oflag & OPOST);
}

static void go_to_review(struct pty *p)
{
	wait_for(p, "[Machine]");
	type(p, "\r");
	wait_for(p, "[Goal]");
	type(p, "\r");
	wait_for(p, "[Tree]");
	type(p, "\r");
	wait_for(p, "[Review]");
	wait_for(p, "Enter Start");
	poll(NULL, 0, 300); /* an Enter right after the one before starts nothing */
}

/* ---- tests */

static void enter_leads_through_to_done(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ 0 });
	go_to_review(&p);
	assert_true(p.alternate);
	type(&p, "\r");
	wait_for(&p, "[Install]");
	wait_for(&p, "[Verify]");
	wait_for(&p, "could not run here");
	wait_for(&p, "Enter Continue");
	type(&p, "\r");
	wait_for(&p, "[Done]");
	wait_for(&p, "Enter Finish");
	type(&p, "\r");
	assert_int_equal(ends(&p), 0);
	is_restored(&p);
	assert_true(shows(&p, "flash-attn 2.8.3 works."));
	assert_true(shows(&p, "fainstall --non-interactive --lock"));
	pty_close(&p);
}

static void enter_held_down_starts_nothing(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ 0 });
	wait_for(&p, "q Quit");
	type(&p, "\r\r\r\r\r\r\r\r");
	wait_for(&p, "press Enter again");
	assert_true(shows(&p, "[Review]"));
	type(&p, "q");
	assert_int_equal(ends(&p), 0);
	pty_close(&p);
}

static void a_failed_build_is_a_finding_and_exit_6(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ .fake = "failed" });
	go_to_review(&p);
	type(&p, "\r");
	wait_for(&p, "What happened");
	wait_for(&p, "identifier foo is undefined");
	wait_for(&p, "log line 2");
	type(&p, "q");
	assert_int_equal(ends(&p), 6);
	is_restored(&p);
	assert_true(shows(&p, "fainstall diagnose /tmp/fake.log"));
	pty_close(&p);
}

static void a_worker_that_crashes_leaves_the_screen_whole(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ .fake = "crash" });
	go_to_review(&p);
	type(&p, "\r");
	wait_for(&p, "fainstall-worker crashed");
	type(&p, "q");
	assert_int_equal(ends(&p), 8);
	is_restored(&p);
	pty_close(&p);
}

static void control_c_stops_the_work_within_two_seconds(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ .fake = "slow" });
	go_to_review(&p);
	type(&p, "\r");
	wait_for(&p, "1 of 2 units");
	type(&p, "\003");
	wait_for(&p, "Stop the work?");
	int64_t began = now_ms();
	type(&p, "y");
	wait_for(&p, "Stopped by you");
	assert_true(now_ms() - began < 2000);
	type(&p, "q");
	assert_int_equal(ends(&p), 130);
	is_restored(&p);
	pty_close(&p);
}

static void units_that_compile_may_finish_first(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ .fake = "drain" });
	go_to_review(&p);
	type(&p, "\r");
	wait_for(&p, "1 of 2 units");
	type(&p, "\033");
	wait_for(&p, "The 1 unit that compiles can finish first, about 44 s.");
	wait_for(&p, "f Finish what compiles");
	type(&p, "n");
	wait_for(&p, "1 of 2 units");
	type(&p, "\003");
	wait_for(&p, "can finish first");
	type(&p, "f");
	wait_for(&p, "Stopped by you");
	type(&p, "q");
	assert_int_equal(ends(&p), 130);
	is_restored(&p);
	pty_close(&p);
}

static void a_flood_of_output_does_not_stop_the_keys(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ .fake = "flood" });
	go_to_review(&p);
	type(&p, "\r");
	wait_for(&p, "Log");
	type(&p, "\r"); /* the log */
	wait_for(&p, "Log, lines");
	type(&p, "\033[H");
	type(&p, "q");
	wait_for(&p, "Stop the work and leave?");
	type(&p, "y");
	assert_int_equal(ends(&p), 130);
	is_restored(&p);
	/* At most ten pictures a second, and only what changed: the flood is not copied to the terminal. */
	assert_true(p.raw.len < 400000);
	pty_close(&p);
}

static void a_resize_keeps_the_state(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ 0 });
	wait_for(&p, "[Machine]");
	type(&p, "\r\r");
	wait_for(&p, "[Tree]");
	for (int i = 0; i < 3; i++) {
		static const int sizes[3][2] = { { 40, 120 }, { 10, 40 }, { 24, 80 } };
		static const char *const texts[3] = { "[Tree]", "Too small: 40x10", "[Tree]" };
		p.rows = sizes[i][0];
		p.cols = sizes[i][1];
		vterm_set_size(p.vt, p.rows, p.cols);
		ioctl(p.fd, TIOCSWINSZ,
		      &(struct winsize){ .ws_row = (unsigned short)p.rows, .ws_col = (unsigned short)p.cols });
		wait_for(&p, texts[i]);
		wait_for(&p, "q Quit");
	}
	type(&p, "q");
	assert_int_equal(ends(&p), 0);
	assert_true(shows(&p, "Nothing was changed."));
	pty_close(&p);
}

/* A crash of ours, and what a system sends: the terminal is in order, the exit status tells the signal. */
static void every_signal_that_ends_us_leaves_the_terminal_in_order(void **state)
{
	static const int signals[] = { SIGSEGV, SIGABRT, SIGBUS, SIGTERM, SIGHUP };
	(void)state;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		struct pty p;
		pty_open(&p, (struct setup){ 0 });
		wait_for(&p, "[Machine]");
		kill(p.pid, signals[i]);
		assert_int_equal(ends(&p), 1000 + signals[i]);
		is_restored(&p);
		pty_close(&p);
	}
}

static void work_ends_with_us(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ .fake = "slow" });
	go_to_review(&p);
	type(&p, "\r");
	wait_for(&p, "1 of 2 units");
	kill(p.pid, SIGTERM);
	assert_int_equal(ends(&p), 1000 + SIGTERM);
	is_restored(&p);
	pty_close(&p);
}

static void a_closed_terminal_ends_the_wizard(void **state)
{
	struct pty p;
	int64_t until = now_ms() + PATIENCE_MS;
	(void)state;
	pty_open(&p, (struct setup){ 0 });
	wait_for(&p, "[Machine]");
	close(p.fd);
	p.fd = open("/dev/null", O_RDWR);
	while (waitpid(p.pid, &p.status, WNOHANG) == 0 && now_ms() < until)
		poll(NULL, 0, 20);
	assert_true(p.status == SIGHUP || (WIFEXITED(p.status) && WEXITSTATUS(p.status) == 130));
	pty_close(&p);
}

static bool waits_for_lines(const struct pty *p)
{
	struct termios now;
	return tcgetattr(p->fd, &now) == 0 && (now.c_lflag & ICANON);
}

/* Pumps until the terminal waits for lines, or does not. */
static void wait_for_mode(struct pty *p, bool lines)
{
	for (int64_t until = now_ms() + PATIENCE_MS; waits_for_lines(p) != lines && now_ms() < until;)
		pump(p, 20);
	assert_int_equal(waits_for_lines(p), lines);
}

/* The child leads its session: the terminal cannot stop an orphaned group, so only the order of the terminal in between and the
 * picture afterwards are looked at. A shell's fg was tried by hand in tmux. */
static void control_z_gives_the_terminal_back_and_takes_it_again(void **state)
{
	/* linux: its description calls Ctrl-Z a key of its own. */
	static const char *const terms[] = { "xterm-256color", "screen", "linux" };
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct pty p;
		int status = 0;
		pty_open(&p, (struct setup){ .term = terms[i] });
		wait_for(&p, "q Quit");
		p.raw.len = 0;
		type(&p, "\032");
		for (int64_t until = now_ms() + PATIENCE_MS; !p.raw.len && now_ms() < until;)
			pump(&p, 20);
		waitpid(p.pid, &status, WNOHANG | WUNTRACED);
		kill(p.pid, SIGCONT);
		wait_for_mode(&p, false);
		wait_for(&p, "[Machine]");
		type(&p, "q");
		assert_int_equal(ends(&p), 0);
		is_restored(&p);
		assert_non_null(strstr(fa_buf_str(&p.raw), "[Machine]")); /* drawn anew */
		pty_close(&p);
	}
}

static void an_unknown_terminal_is_taken_for_an_xterm(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ .term = "xterm-of-next-year" });
	wait_for(&p, "[Machine]");
	type(&p, "q");
	assert_int_equal(ends(&p), 0);
	is_restored(&p);
	pty_close(&p);
}

static void a_dumb_terminal_gets_plain_lines(void **state)
{
	struct pty p;
	(void)state;
	pty_open(&p, (struct setup){ .term = "dumb" });
	assert_int_equal(ends(&p), 77);
	assert_true(shows(&p, "TERM=dumb cannot place the cursor; going on in plain lines."));
	pty_close(&p);
	pty_open(&p, (struct setup){ .term = "" });
	assert_int_equal(ends(&p), 77);
	assert_true(shows(&p, "TERM is not set"));
	pty_close(&p);
}

static bool only_ascii(const struct pty *p)
{
	for (size_t i = 0; i < p->raw.len; i++)
		if ((unsigned char)p->raw.data[i] >= 0x80)
			return false;
	return true;
}

static void without_utf8_every_byte_is_ascii(void **state)
{
	static const struct setup setups[] = { { .lang = "C" },
		                               { .lang = "POSIX", .term = "vt100" },
		                               { .term = "linux" },
		                               { .lang = "C", .term = "screen", .rows = 40, .cols = 120 } };
	(void)state;
	for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
		struct pty p;
		pty_open(&p, setups[i]);
		wait_for(&p, "[Machine]");
		type(&p, "\r\r");
		wait_for(&p, "[Tree]");
		wait_for(&p, "* Machine");
		type(&p, "q");
		assert_int_equal(ends(&p), 0);
		assert_true(only_ascii(&p));
		pty_close(&p);
	}
}

static bool has_color(const struct pty *p)
{
	VTermScreenCell cell;
	for (int row = 0; row < p->rows; row++)
		for (int col = 0; col < p->cols; col++)
			if (vterm_screen_get_cell(p->screen, (VTermPos){ row, col }, &cell) &&
			    !VTERM_COLOR_IS_DEFAULT_FG(&cell.fg))
				return true;
	return false;
}

static void no_color_means_none(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct pty p;
		pty_open(&p, (struct setup){ .colors = i ? "1" : NULL });
		wait_for(&p, "q Quit");
		assert_int_equal(has_color(&p), !i);
		type(&p, "q");
		assert_int_equal(ends(&p), 0);
		pty_close(&p);
	}
}

/* ---- the folder of the fake world: the real knowledge, a recorded machine, the fake worker */

static void link_in(const char *root, const char *what, const char *name)
{
	char *target = fa_strf("%s/%s", root, what), *link = fa_strf("%s/%s", folder, name);
	assert_int_equal(symlink(target, link), 0);
	free(target);
	free(link);
}

static int make_folder(void **state)
{
	char *root = realpath(".", NULL);
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	link_in(root, "matrix", "matrix");
	link_in(root, "recipes", "recipes");
	link_in(root, "tests/data/tui/h200.json", "facts.json");
	link_in(root, "tests/data/tui/fake/fainstall-worker", "fainstall-worker");
	free(root);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return fa_file_remove_tree(folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enter_leads_through_to_done),
		cmocka_unit_test(enter_held_down_starts_nothing),
		cmocka_unit_test(a_failed_build_is_a_finding_and_exit_6),
		cmocka_unit_test(a_worker_that_crashes_leaves_the_screen_whole),
		cmocka_unit_test(control_c_stops_the_work_within_two_seconds),
		cmocka_unit_test(units_that_compile_may_finish_first),
		cmocka_unit_test(a_flood_of_output_does_not_stop_the_keys),
		cmocka_unit_test(a_resize_keeps_the_state),
		cmocka_unit_test(every_signal_that_ends_us_leaves_the_terminal_in_order),
		cmocka_unit_test(work_ends_with_us),
		cmocka_unit_test(a_closed_terminal_ends_the_wizard),
		cmocka_unit_test(control_z_gives_the_terminal_back_and_takes_it_again),
		cmocka_unit_test(an_unknown_terminal_is_taken_for_an_xterm),
		cmocka_unit_test(a_dumb_terminal_gets_plain_lines),
		cmocka_unit_test(without_utf8_every_byte_is_ascii),
		cmocka_unit_test(no_color_means_none),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder) != 0;
}
