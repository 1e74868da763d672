/* Grid to curses, curses to keys. */
#include "term.h"

#include "model.h"
#include "restore.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

static struct {
	SCREEN *screen;
	WINDOW *keys; /* keys are read from a pad: reading from stdscr would refresh it */
	bool ascii;
	int colors; /* 0 mono, 8, 256 */
	attr_t attrs[TUI_ROLE_COUNT];
	short pairs[TUI_ROLE_COUNT];
} term;

static bool can(const char *capability)
{
	const char *text = tigetstr(capability);
	return text && text != (char *)-1 && *text;
}

/* A terminal that the system does not describe is most likely a newer one seen over ssh: they all speak xterm. */
static int set_up(char *why, unsigned long size)
{
	const char *name = getenv("TERM");
	int result = 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		snprintf(why, size, "stdin and stdout are no terminal");
		return -1;
	}
	if (!name || !*name) {
		snprintf(why, size, "TERM is not set");
		return -1;
	}
	if (setupterm(NULL, STDOUT_FILENO, &result) != OK) {
		if (setupterm("xterm-256color", STDOUT_FILENO, &result) != OK) {
			snprintf(why, size, "TERM=%.40s: this system has no description of it, nor of xterm-256color", name);
			return -1;
		}
		setenv("TERM", "xterm-256color", 1);
	}
	if (!can("cup") || !can("clear")) {
		snprintf(why, size, "TERM=%.40s cannot place the cursor", name);
		return -1;
	}
	return 0;
}

/* What cannot be shown is decided by the locale that the user set; widths need a UTF-8 one in any case. */
static void choose_glyphs(void)
{
	const char *name = getenv("TERM");
	setlocale(LC_CTYPE, "");
	bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	if (!utf8)
		setlocale(LC_CTYPE, "C.UTF-8");
	term.ascii = !utf8 || (name && !strcmp(name, "linux"));
}

/* COLORS(role, 256, 8 and 16, attribute, attribute without colour): -1 the terminal's own. */
#define ROLE_LOOKS(LOOK) \
	LOOK(TEXT, -1, -1, A_NORMAL, A_NORMAL) \
	LOOK(OK, 28, COLOR_GREEN, A_NORMAL, A_NORMAL) \
	LOOK(WARN, 130, COLOR_YELLOW, A_NORMAL, A_NORMAL) \
	LOOK(FAIL, 160, COLOR_RED, A_NORMAL, A_NORMAL) \
	LOOK(ACCENT, 27, -1, A_NORMAL, A_BOLD) \
	LOOK(STRONG, -1, -1, A_BOLD, A_BOLD) \
	LOOK(DIM, 243, -1, A_NORMAL, A_NORMAL) \
	LOOK(CURSOR, -1, -1, A_REVERSE, A_REVERSE) \
	LOOK(BAR, -1, -1, A_REVERSE, A_REVERSE) \
	LOOK(MARK, -1, -1, A_UNDERLINE, A_UNDERLINE) \
	LOOK(CHANGED, -1, -1, A_BOLD, A_BOLD)

static void choose_looks(bool color)
{
	static const struct {
		short many, few;
		attr_t with, without;
	} looks[TUI_ROLE_COUNT] = {
#define LOOK(role, many, few, with, without) [TUI_##role] = { many, few, with, without },
		ROLE_LOOKS(LOOK)
#undef LOOK
	};
	term.colors = 0;
	/* COLORS is known after start_color. */
	if (color && has_colors() && start_color() == OK && COLORS >= 8 && use_default_colors() == OK)
		term.colors = COLORS >= 256 ? 256 : 8;
	for (int role = 0; role < TUI_ROLE_COUNT; role++) {
		short fg = term.colors == 256 ? looks[role].many : term.colors ? looks[role].few : -1;
		term.attrs[role] = fg < 0 && looks[role].many >= 0 ? looks[role].without : looks[role].with;
		term.pairs[role] = 0;
		if (fg >= 0 && init_pair((short)(role + 1), fg, -1) == OK)
			term.pairs[role] = (short)(role + 1);
	}
}

int tui_term_open(char *why, unsigned long size, bool color)
{
	if (set_up(why, size) < 0)
		return -1;
	choose_glyphs();
	tui_restore_prepare(can("rmcup") ? tigetstr("rmcup") : "", can("rmkx") ? tigetstr("rmkx") : "",
	                    can("cnorm") ? tigetstr("cnorm") : "", can("sgr0") ? tigetstr("sgr0") : "");
	del_curterm(cur_term);
	term.screen = newterm(NULL, stdout, stdin);
	if (!term.screen) {
		snprintf(why, size, "TERM=%.40s: this system has no description of it", getenv("TERM"));
		return -1;
	}
	set_term(term.screen);
	tui_restore_arm();
	raw();
	noecho();
	nonl();
	set_escdelay(25);
	term.keys = newpad(1, 1);
	keypad(term.keys, TRUE);
	nodelay(term.keys, TRUE);
	choose_looks(color);
	return 0;
}

void tui_term_close(void)
{
	if (!term.screen)
		return;
	if (!can("rmcup")) { /* no second screen: what follows must not stand in the rest of a picture */
		erase();
		refresh();
	}
	delwin(term.keys);
	endwin();
	delscreen(term.screen);
	term.screen = NULL;
	tui_restore_disarm();
}

bool tui_term_ascii(void)
{
	return term.ascii;
}

void tui_term_size(int *rows, int *cols)
{
	struct winsize size;
	getmaxyx(stdscr, *rows, *cols);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col &&
	    (size.ws_row != *rows || size.ws_col != *cols)) {
		*rows = size.ws_row;
		*cols = size.ws_col;
		resizeterm(*rows, *cols);
	}
}

static void show_row(const struct tui_grid *g, int row)
{
	for (int col = 0; col < g->cols; col++) {
		const struct tui_cell *c = &g->cells[row * g->cols + col];
		wchar_t text[2] = { (wchar_t)c->ch, 0 };
		cchar_t cell;
		if (!c->width)
			continue;
		setcchar(&cell, text, term.attrs[c->role], term.pairs[c->role], NULL);
		mvadd_wch(row, col, &cell); /* ERR after the last cell of the screen: the cursor has nowhere to go */
	}
}

void tui_term_show(const struct tui_grid *g, bool anew)
{
	erase();
	for (int row = 0; row < g->rows; row++)
		show_row(g, row);
	curs_set(g->caret_row >= 0);
	if (g->caret_row >= 0)
		move(g->caret_row, g->caret_col);
	if (anew)
		clearok(stdscr, TRUE);
	refresh();
}

static uint32_t special(wint_t key)
{
	switch (key) {
	case KEY_UP: return TUI_KEY_UP;
	case KEY_DOWN: return TUI_KEY_DOWN;
	case KEY_LEFT: return TUI_KEY_LEFT;
	case KEY_RIGHT: return TUI_KEY_RIGHT;
	case KEY_HOME: return TUI_KEY_HOME;
	case KEY_END: return TUI_KEY_END;
	case KEY_PPAGE: return TUI_KEY_PAGE_UP;
	case KEY_NPAGE: return TUI_KEY_PAGE_DOWN;
	case KEY_BACKSPACE: return TUI_KEY_BACKSPACE;
	case KEY_ENTER: return '\r';
	case KEY_SUSPEND: return 26; /* TERM=linux calls Ctrl-Z so */
	case KEY_REFRESH: return 12;
	case KEY_CANCEL: return 27;
	case KEY_RESIZE: return TUI_TERM_RESIZED;
	case KEY_F(1): return TUI_KEY_F1;
	case KEY_F(10): return TUI_KEY_F10;
	default: return TUI_KEY_F10 + 1; /* a key, but none of ours */
	}
}

uint32_t tui_term_key(void)
{
	wint_t ch = 0;
	switch (wget_wch(term.keys, &ch)) {
	case OK: return ch ? (uint32_t)ch : TUI_KEY_F10 + 1;
	case KEY_CODE_YES: return special(ch);
	default: return 0;
	}
}

void tui_term_suspend(void)
{
	int rows, cols;
	endwin();
	tui_restore_disarm();
	void (*curses)(int) = signal(SIGTSTP, SIG_DFL);
	kill(0, SIGTSTP); /* the whole foreground group, as the terminal does */
	signal(SIGTSTP, curses);
	tui_restore_arm();
	tui_term_size(&rows, &cols);
	clearok(stdscr, TRUE);
	refresh();
}

void tui_term_clipboard(const char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text);
	printf("\033]52;c;");
	for (size_t i = 0; i < len; i += 3) {
		unsigned long b = (unsigned long)(unsigned char)text[i] << 16;
		b |= i + 1 < len ? (unsigned long)(unsigned char)text[i + 1] << 8 : 0;
		b |= i + 2 < len ? (unsigned char)text[i + 2] : 0;
		putchar(digits[b >> 18 & 63]);
		putchar(digits[b >> 12 & 63]);
		putchar(i + 1 < len ? digits[b >> 6 & 63] : '=');
		putchar(i + 2 < len ? digits[b & 63] : '=');
	}
	putchar('\a');
	fflush(stdout);
}
