/* The wheelhouse, $XDG_DATA_HOME/fainstall/wheels: built wheels, a plain folder that pip can use (--find-links). Beside each
 * NAME.whl: NAME.whl.sha256 and NAME.whl.json, its build record. A wheel that another one of the same name takes the place of
 * moves to older/SHA256/, so a lock that names it by hash still finds it. */
#ifndef FA_WHEELHOUSE_H
#define FA_WHEELHOUSE_H

#include "err.h"

struct fa_json;

char *fa_wheelhouse(void); /* its folder; the caller's */

/* Moves (or copies) the wheel in. record: the build record, taken into NAME.whl.json. out: its path there, the caller's. */
int fa_wheelhouse_add(char **out, const char *wheel, const char *sha256, const struct fa_json *record, struct fa_err *err);

/* A whole, undamaged wheel by its hash, or by the `key` of its record. NULL: none. The caller's. */
char *fa_wheelhouse_by_hash(const char *sha256);
char *fa_wheelhouse_by_key(const char *key);

/* A wheel in `dir` with that hash; NULL: none. The caller's. */
char *fa_wheel_in(const char *dir, const char *sha256);

/* A second name for the file in that folder, or a copy; what is there already with that hash stays. */
int fa_wheel_place(const char *wheel, const char *sha256, const char *dir, struct fa_err *err);

#endif
