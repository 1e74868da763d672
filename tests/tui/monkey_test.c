/* Random keys, events, sizes and plans: whatever happens, the model stays sound and every picture is whole. MONKEY=N sets the
 * number of turns (20,000), MONKEY_SEED the seed. */
#include "scene.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t state;

static uint32_t chance(uint32_t n) /* xorshift: the same on every machine */
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

static void press(struct scene *s)
{
	static const uint32_t usual[] = { '\r',
		                          '\r',
		                          ' ',
		                          ' ',
		                          27,
		                          '\t',
		                          'y',
		                          'n',
		                          'q',
		                          'f',
		                          'u',
		                          'l',
		                          'c',
		                          'r',
		                          '?',
		                          3,
		                          12,
		                          26,
		                          21,
		                          8,
		                          TUI_KEY_UP,
		                          TUI_KEY_DOWN,
		                          TUI_KEY_DOWN,
		                          TUI_KEY_LEFT,
		                          TUI_KEY_RIGHT,
		                          TUI_KEY_HOME,
		                          TUI_KEY_END,
		                          TUI_KEY_PAGE_UP,
		                          TUI_KEY_PAGE_DOWN,
		                          TUI_KEY_BACKSPACE,
		                          TUI_KEY_F1,
		                          TUI_KEY_F10 };
	uint32_t key = chance(8) ? usual[chance(sizeof usual / sizeof *usual)] : chance(0x110010);
	tui_model_key(&s->m, key);
}

static void happen(struct scene *s)
{
	static const char *const texts[] = {
		"",      "flash_bwd_hdim256_bf16_causal_sm80.cu", "错误：编译单元 flash_fwd 停止", "a\tb\x01\xff\xfe", "import",
		"verify"
	};
	struct fa_event e = fa_event_new(chance(FA_EVENT_COUNT));
	if (e.kind == FA_EVENT_DONE && chance(20))
		return;
	e.status = chance(5);
	e.code = chance(3) ? FA_OK : FA_BUILD;
	e.step = (int)chance(14) - 2;
	e.done = (int64_t)chance(100) - 1;
	e.total = (int64_t)chance(100) - 1;
	e.number = chance(12);
	e.peak_mib = (int64_t)chance(9000) - 1;
	e.seconds = chance(1000) - 1.0;
	e.value = chance(1000) / 3.0;
	snprintf(e.unit, sizeof e.unit, "%s", chance(2) ? "units" : chance(2) ? "bytes" : "TFLOP/s");
	snprintf(e.id, sizeof e.id, "%s%u", texts[chance(6)], chance(9));
	snprintf(e.text, sizeof e.text, "%s", texts[chance(6)]);
	snprintf(e.next, sizeof e.next, "%s", texts[chance(6)]);
	tui_model_event(&s->m, &e);
}

/* The loop's part: what is wanted is given, or not. */
static void give(struct scene *s, const struct fa_plan *plans, int n)
{
	struct fa_err err = FA_ERR_INIT;
	unsigned want = s->m.want;
	s->m.want = 0;
	fa_err_set(&err, FA_INTERNAL, "matrix/torch.json is not there");
	if (want & TUI_WANT_FACTS)
		tui_model_set_facts(&s->m, &s->facts);
	if (want & (TUI_WANT_PLAN | TUI_WANT_FACTS))
		tui_model_set_plan(&s->m, chance(12) ? &plans[chance((uint32_t)n)] : NULL, &err);
	if (want & TUI_WANT_STOP) {
		struct fa_event e = fa_event_new(FA_EVENT_DONE);
		e.code = FA_INTERRUPTED;
		tui_model_event(&s->m, &e);
	}
}

static void look(struct scene *s, struct tui_grid *g)
{
	g->ascii = chance(2);
	tui_draw(g, &s->m);
	assert_int_equal(g->rows, s->m.rows);
	assert_int_equal(g->cols, s->m.cols);
	for (int i = 0; i < g->rows * g->cols; i++) {
		const struct tui_cell *c = &g->cells[i];
		assert_true(c->role < TUI_ROLE_COUNT && c->width <= 2 && c->ch >= ' ');
		assert_true(c->width != 2 || (i % g->cols + 1 < g->cols && g->cells[i + 1].width == 0));
		assert_true(c->width != 0 || (i % g->cols > 0 && g->cells[i - 1].width == 2));
		assert_true(!g->ascii || c->ch < 0x7F);
	}
}

static void a_monkey_breaks_nothing(void **unused)
{
	static const char *const files[] = { "source.json",  "ready.json",       "wheel.json", "action.json",
		                             "actions.json", "unlike_plan.json", "lines.json", "impossible.json" };
	static const char *const facts[] = { "h200.json", "broken.json", "rtx3090.json", "chinese.json", "unlike.json" };
	enum { N = sizeof files / sizeof *files };
	const char *turns = getenv("MONKEY"), *seed = getenv("MONKEY_SEED");
	struct tui_grid g = TUI_GRID_INIT;
	struct scene s;
	(void)unused;
	state = seed ? (uint32_t)strtoul(seed, NULL, 10) : 20261130;
	scene_init(&s);
	s.m.start.active_env = "/home/me/环境/.venv";
	s.m.start.write_lock_path = "requirements.lock";
	for (int i = 0; i < N; i++)
		scene_plan(&s, files[i]);
	scene_facts(&s, facts[0]);
	assert_string_equal(s.error, "");
	for (long i = 0, n = turns ? atol(turns) : 20000; i < n; i++) {
		tui_model_tick(&s.m, i * 37);
		if (i % 1000 == 999)
			scene_facts(&s, facts[chance(5)]);
		if (chance(3))
			press(&s);
		else if (chance(40))
			happen(&s);
		else
			tui_model_resize(&s.m, chance(3) ? 24 : (int)chance(60), chance(3) ? 80 : (int)chance(160));
		give(&s, s.plans, N);
		if (i % 4 == 0)
			look(&s, &g);
	}
	tui_grid_release(&g);
	scene_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_monkey_breaks_nothing),
	};
	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
