/* The whole screen for a state: model in, grid out. Nothing else is read. */
#ifndef TUI_DRAW_H
#define TUI_DRAW_H

#include "grid.h"
#include "model.h"

/* g is resized to the model's rows and columns. */
void tui_draw(struct tui_grid *g, const struct tui_model *m);

#endif
