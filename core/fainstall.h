/* All that a front end needs of core: facts, wish, plan, events, jobs. tui/ includes this and nothing else of core. */
#ifndef FA_FAINSTALL_H
#define FA_FAINSTALL_H

#include "buf.h"
#include "detect.h"
#include "err.h"
#include "event.h"
#include "facts.h"
#include "file.h"
#include "job.h"
#include "json.h"
#include "matrix.h"
#include "plan.h"
#include "source.h"
#include "strv.h"
#include "sys.h"
#include "version.h"
#include "wish.h"

#define FA_VERSION "0.1.0"

#endif
