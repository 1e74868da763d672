/* Handlers for the signals that end a program at once. */
#include "restore.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const int fatal[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGQUIT };
enum { N_FATAL = sizeof fatal / sizeof *fatal };

static char sequence[512];
static struct termios settings;
static volatile sig_atomic_t armed, have_settings;
static char *stack;

/* Also at exit: memory that runs out ends the program so. */
static void put_in_order(void)
{
	if (!armed)
		return;
	armed = 0;
	for (size_t at = 0, len = strlen(sequence); at < len;) {
		ssize_t n = write(STDOUT_FILENO, sequence + at, len - at);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	if (have_settings)
		tcsetattr(STDIN_FILENO, TCSANOW, &settings);
}

/* SA_RESETHAND: the second time the signal does what it always does. */
static void on_fatal(int sig)
{
	put_in_order();
	raise(sig);
}

/* Some descriptions hold delays, $<50>: no terminal of today needs them, and they are no text. */
static void add(const char *text)
{
	size_t len = strlen(sequence);
	while (*text && len + 1 < sizeof sequence) {
		const char *end = text[0] == '$' && text[1] == '<' ? strchr(text, '>') : NULL;
		if (end) {
			text = end + 1;
			continue;
		}
		sequence[len++] = *text++;
	}
	sequence[len] = '\0';
}

void tui_restore_prepare(const char *leave, const char *keys_off, const char *cursor_on, const char *plain)
{
	sequence[0] = '\0';
	add(plain);
	add(keys_off);
	add(cursor_on);
	add(leave);
	add("\r\n");
	have_settings = tcgetattr(STDIN_FILENO, &settings) == 0;
}

void tui_restore_arm(void)
{
	struct sigaction action = { .sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK | SA_NODEFER };
	if (!stack) {
		atexit(put_in_order);
		stack_t s = { .ss_size = 65536 };
		s.ss_sp = stack = malloc(s.ss_size);
		if (stack)
			sigaltstack(&s, NULL);
	}
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < N_FATAL; i++)
		sigaction(fatal[i], &action, NULL);
	armed = 1;
}

void tui_restore_disarm(void)
{
	armed = 0;
	for (int i = 0; i < N_FATAL; i++)
		signal(fatal[i], SIG_DFL);
}
