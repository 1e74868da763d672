/* Takes secrets out of text before it is shown, logged or written: user and password in a URL, tokens in its query. */
#ifndef FA_REDACT_H
#define FA_REDACT_H

struct fa_json;

/* In place; the result is never longer. "https://bob:pw@host/x?token=abc" becomes
 * "https://-@host/x?token=-". */
void fa_redact(char *text);

/* A copy of a JSON value with every string in it so treated. The caller's. */
struct fa_json *fa_redact_json(const struct fa_json *j);

#endif
