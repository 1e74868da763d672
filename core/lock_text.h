/* What the writer (lock.c) and the reader (lock_parse.c) of a lock agree on. */
#ifndef FA_LOCK_TEXT_H
#define FA_LOCK_TEXT_H

#define FA_LOCK_COMMENT "# fainstall: "
#define FA_LOCK_SCHEMA "fainstall.lock/1"
#define FA_LOCK_FIND_LINKS "--find-links ./wheels"

#endif
