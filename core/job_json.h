/* A job as one line of JSON: what the front end writes into the worker's stdin, once. */
#ifndef FA_JOB_JSON_H
#define FA_JOB_JSON_H

#include "job.h"

struct fa_json;

/* The job with everything it points to, read back by the worker. */
struct fa_job_read {
	struct fa_job_opts opts;
	struct fa_plan plan;
	struct fa_facts facts;
	char *lock_path, *write_lock_path, *report_path, *upstream_source, *upstream_tests;
};

/* The caller's. */
struct fa_json *fa_job_to_json(const struct fa_job_opts *opts);
int fa_job_from_json(struct fa_job_read *out, const struct fa_json *j, struct fa_err *err);
void fa_job_read_release(struct fa_job_read *j);

/* What the front end may write after the job: a line of this word. */
#define FA_JOB_DRAIN "drain"

#endif
