/* Keys and events in, state out: every scene of tests/tui/scenes; the name is what it shows. */
#include "scene.h"

#include <dirent.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char folder[] = "tests/tui/scenes";

static void play(void **state)
{
	struct scene s;
	char *path = fa_strf("%s/%s.scene", folder, (const char *)*state);
	scene_init(&s);
	int line = scene_play(&s, path);
	if (line)
		fail_msg("%s:%d: %s", path, line, s.error);
	scene_release(&s);
	free(path);
}

int main(void)
{
	struct CMUnitTest tests[100];
	struct dirent **list;
	int n = scandir(folder, &list, NULL, alphasort), count = 0, rc;
	setlocale(LC_CTYPE, "C.UTF-8");
	memset(tests, 0, sizeof tests);
	for (int i = 0; i < n && count < 100; i++) {
		char *dot = strstr(list[i]->d_name, ".scene");
		if (!dot)
			continue;
		*dot = '\0';
		tests[count++] = (struct CMUnitTest){ list[i]->d_name, play, NULL, NULL, list[i]->d_name };
	}
	rc = count ? _cmocka_run_group_tests("model", tests, (size_t)count, NULL, NULL) : 1;
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
	return rc != 0;
}
