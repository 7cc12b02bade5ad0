/* SPDX-License-Identifier: MIT */
/* Samples while they are recorded (profile_record.h), beside the file of the same recording. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fathom/profile.h"

/* Bytes of the text that says all of a sample, its stack too. */
#define TEXT 8192

struct seen {
	char **texts;
	size_t n;
	size_t most;  /* ends the recording there; 0: never */
	FILE *file;   /* of the profile; NULL: none */
	int32_t pid;  /* of the program */
	bool is_over; /* the program is to end */
};

static char *remember(struct seen *seen)
{
	seen->texts = realloc(seen->texts, (seen->n + 1) * sizeof *seen->texts);
	assert_non_null(seen->texts);
	seen->texts[seen->n] = calloc(1, TEXT);
	assert_non_null(seen->texts[seen->n]);
	return seen->texts[seen->n++];
}

__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format, ...)
{
	const size_t n = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text + n, TEXT - n, format, arguments);
	va_end(arguments);
}

static void add_thread(char *text, const struct fathom_profile_thread *t)
{
	add(text, "%d/%d<%d %s in %s at %s", t->pid, t->tid, t->parent, t->name, t->process,
	    t->cgroup);
}

static void add_frame(char *text, const struct fathom_pc *pc, uint8_t trust,
		      const struct fathom_profile_module *m, const char *name)
{
	add(text, "; %#llx %d %d %s", (unsigned long long)pc->address, pc->kind, trust,
	    m ? m->path : "-");
	for (uint32_t i = 0; m && i < m->build_id_size; i++)
		add(text, "%02x", m->build_id[i]);
	add(text, " %s", name ? name : "-");
}

static int see(void *data, const struct fathom_record_sample *s)
{
	struct seen *seen = data;
	char *text = remember(seen);

	add_thread(text, s->thread);
	add(text, " ns %llu weight %llu part %d stop %d", (unsigned long long)s->ns,
	    (unsigned long long)s->weight, s->part, s->stop);
	for (size_t i = 0; i < s->n_frames && i < 40; i++)
		add_frame(text, &s->frames[i].pc, s->frames[i].trust, s->frames[i].module,
			  s->frames[i].name);
	return seen->most && seen->n >= seen->most;
}

static int put(void *data, const void *bytes, size_t n)
{
	struct seen *seen = data;

	return fwrite(bytes, 1, n, seen->file) == n;
}

/* A program that runs on when its recording has ended is killed. */
static int is_done(void *data)
{
	struct seen *seen = data;

	if (seen->most && seen->n >= seen->most)
		(void)kill(seen->pid, SIGKILL);
	return 0;
}

static void forget(struct seen *seen)
{
	for (size_t i = 0; i < seen->n; i++)
		free(seen->texts[i]);
	free(seen->texts);
}

/* The samples that were read, beside those that were seen. */
struct reading {
	const struct fathom_profile *profile;
	const struct seen *seen;
	size_t n;
};

static int compare(void *data, const struct fathom_profile_sample *s)
{
	struct reading *r = data;
	const struct fathom_profile_location *locations;
	const struct fathom_profile_module *modules;
	const struct fathom_profile_node *nodes;
	char text[TEXT] = "";
	size_t n;
	size_t depth = 0;

	locations = fathom_profile_locations(r->profile, &n);
	modules = fathom_profile_modules(r->profile, &n);
	nodes = fathom_profile_nodes(r->profile, &n);
	add_thread(text, &fathom_profile_threads(r->profile, &n)[s->thread]);
	add(text, " ns %llu weight %llu part %d stop %d", (unsigned long long)s->ns,
	    (unsigned long long)s->weight, s->part, s->stop);
	for (uint32_t node = s->node; node && depth < 40; node = nodes[node].caller, depth++) {
		const struct fathom_profile_location *l = &locations[nodes[node].location];

		add_frame(text, &l->pc, l->trust,
			  l->module == UINT32_MAX ? NULL : &modules[l->module], l->answer->symbol);
	}
	assert_true(r->n < r->seen->n);
	assert_string_equal(text, r->seen->texts[r->n]);
	r->n++;
	return 0;
}

/* Records a program that works, forks and waits. */
static struct fathom_record_result record(struct fathom *session, struct seen *seen,
					  enum fathom_profile_method method, const char *script)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	struct fathom_record_options o = { .size = sizeof o,
					   .argv = argv,
					   .method = method,
					   .sample = see,
					   .data = seen,
					   .pid = &seen->pid,
					   .is_done = is_done };
	struct fathom_record_result result;
	struct fathom_errinfo info;
	fathom_err err;

	o.write = seen->file ? put : NULL;
	err = fathom_record_run(session, &o, &result, &info);
	if (err == FATHOM_E_UNSUPPORTED || (err == FATHOM_E_OS && info.os_errno == EACCES))
		skip();
	assert_int_equal(err, FATHOM_OK);
	return result;
}

static const char script[] = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; "
			     "(sleep 0.05; exec sleep 0.05); exit 3";

static void test_beside_file(enum fathom_profile_method method)
{
	char path[] = "/tmp/fathom-observer-XXXXXX";
	struct seen seen = { .file = fdopen(mkstemp(path), "w") };
	struct fathom_record_result result;
	struct fathom_profile *profile;
	struct fathom *session;
	struct reading r = { .seen = &seen };

	assert_int_equal(fathom_create(NULL, &session, NULL), FATHOM_OK);
	result = record(session, &seen, method, script);
	assert_int_equal(fclose(seen.file), 0);
	assert_int_equal(result.status, 3 << 8);
	assert_int_equal(fathom_profile_open(session, path, &profile, NULL), FATHOM_OK);
	r.profile = profile;
	assert_int_equal(fathom_profile_each_sample(profile, compare, &r, NULL), FATHOM_OK);
	/* As many as the file has, among them all that have a stack. */
	assert_int_equal(r.n, seen.n);
	assert_true(seen.n >= result.n_samples && result.n_samples > 0);
	fathom_profile_free(profile);
	fathom_destroy(session);
	(void)unlink(path);
	forget(&seen);
}

static void test_perf_events(void **state)
{
	(void)state;
	test_beside_file(FATHOM_PROFILE_METHOD_PERF);
}

static void test_polling(void **state)
{
	(void)state;
	test_beside_file(FATHOM_PROFILE_METHOD_POLLING);
}

static void test_without_file(void **state)
{
	struct seen seen = { .most = 3 };
	struct fathom_record_result result;
	struct fathom *session;

	(void)state;
	assert_int_equal(fathom_create(NULL, &session, NULL), FATHOM_OK);
	result = record(session, &seen, FATHOM_PROFILE_METHOD_DEFAULT, "while :; do :; done");
	/* The third one has ended it. */
	assert_int_equal(seen.n, 3);
	assert_int_equal(result.bytes, 0);
	assert_int_equal(result.status, SIGKILL);
	fathom_destroy(session);
	forget(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf_events),
		cmocka_unit_test(test_polling),
		cmocka_unit_test(test_without_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
