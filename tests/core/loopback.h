/* Starts a Python server of tests/net that prints its ports, and ends it. Included by the tests that need one. */
#ifndef FA_TEST_LOOPBACK_H
#define FA_TEST_LOOPBACK_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct loopback {
	pid_t pid;
	int hold; /* its stdin: it ends when this is closed, also when we crash */
	int port, second_port;
};

static int loopback_start(struct loopback *s, const char *script, const char *a, const char *b)
{
	int in[2], out[2];
	FILE *f;

	if (pipe(in) < 0 || pipe(out) < 0)
		return -1;
	s->pid = fork();
	if (s->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		execlp("python3", "python3", script, a, a ? b : NULL, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	s->hold = in[1];
	f = fdopen(out[0], "r");
	s->port = s->second_port = 0;
	if (!f || fscanf(f, "%d", &s->port) != 1)
		return -1;
	if (b && fscanf(f, "%d", &s->second_port) != 1)
		return -1;
	fclose(f);
	return 0;
}

static void loopback_stop(struct loopback *s)
{
	close(s->hold);
	kill(s->pid, SIGTERM);
	waitpid(s->pid, NULL, 0);
}

#endif
