/* SPDX-License-Identifier: MIT */
/*
 * One target, many threads: each gets the answers that a single thread gets, also while the budget
 * forces decoded units out again. ./dev tsan watches.
 */
#include "unit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fathom/fathom.h"

#define N_THREADS   8
#define N_ADDRESSES 600
#define ROUNDS      40
#define BATCH       50
#define STEP        127 /* bytes between addresses */

/* Code from here on is asked about: archives of others may lack debug information. */
static const char first_symbol[] = "fathom_symbolize";

/*
 * Bytes for units beside the indexes: less than the work keeps without a budget, more than
 * one unit needs.
 */
#define FOR_UNITS (32 << 10)

/* The program that is asked about: the command itself, which has debug information. */
static const char *program(void)
{
	static char path[4096];
	const char *build = getenv("BUILD");

	(void)snprintf(path, sizeof path, "%s/fathom", build ? build : ".");
	return path;
}

struct shared {
	struct fathom *session;
	struct fathom_target *target;
	uint64_t addresses[N_ADDRESSES];
	char *truth[N_ADDRESSES];
};

/* Returns all of an answer as text. */
static char *text_of(const struct fathom_answers *answers, size_t i)
{
	const struct fathom_answer *a = fathom_answers_get(answers, i);
	char text[8192];
	int at = snprintf(text, sizeof text, "%s+%llu", a->symbol ? a->symbol : "??",
			  (unsigned long long)a->offset);

	for (const struct fathom_frame *f = a->frame; f && at < (int)sizeof text - 512;
	     f = f->outer)
		at += snprintf(text + at, sizeof text - (size_t)at, " %s@%s:%u:%u",
			       f->function ? f->function : "??", f->file ? f->file : "-", f->line,
			       f->column);
	return strdup(text);
}

static void open_session(struct shared *s, uint64_t budget, uint32_t threads)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.threads = threads,
						.memory_budget = budget };

	memset(s, 0, sizeof *s);
	assert_int_equal(fathom_create(&options, &s->session, NULL), 0);
}

/* Answers addresses from @start on with one thread. */
static void find_truth(struct shared *s, uint64_t start)
{
	struct fathom_answers *answers;

	for (size_t i = 0; i < N_ADDRESSES; i++)
		s->addresses[i] = start + i * STEP;
	assert_int_equal(
		fathom_symbolize(s->target, NULL, s->addresses, NULL, N_ADDRESSES, &answers, NULL),
		0);
	for (size_t i = 0; i < N_ADDRESSES; i++)
		s->truth[i] = text_of(answers, i);
	fathom_answers_free(answers);
}

static void setup(struct shared *s, uint64_t budget, uint32_t threads)
{
	uint64_t text;

	open_session(s, budget, threads);
	assert_int_equal(fathom_target_open_file(s->session, program(), NULL, &s->target, NULL), 0);
	assert_int_equal(fathom_target_find_symbol(s->target, first_symbol, &text), 0);
	find_truth(s, text);
}

/* Returns a budget that leaves FOR_UNITS beside what is never evicted: the indexes. */
static uint64_t small_budget(void)
{
	const struct fathom_symbolize_options once = { .size = sizeof once,
						       .flags = FATHOM_ONE_SHOT };
	struct fathom_answers *answers;
	struct fathom_usage usage;
	uint64_t addresses[N_ADDRESSES];
	struct shared s;

	open_session(&s, 0, 1);
	assert_int_equal(fathom_target_open_file(s.session, program(), NULL, &s.target, NULL), 0);
	assert_int_equal(fathom_target_find_symbol(s.target, first_symbol, &addresses[0]), 0);
	for (size_t i = 1; i < N_ADDRESSES; i++)
		addresses[i] = addresses[0] + i * STEP;
	/* So many that each index is made. No unit is kept. */
	assert_int_equal(
		fathom_symbolize(s.target, &once, addresses, NULL, N_ADDRESSES, &answers, NULL), 0);
	fathom_get_usage(s.session, &usage);
	fathom_answers_free(answers);
	fathom_target_release(s.target);
	fathom_destroy(s.session);
	return usage.memory_used + FOR_UNITS;
}

static void teardown(struct shared *s)
{
	for (size_t i = 0; i < N_ADDRESSES; i++)
		free(s->truth[i]);
	fathom_target_release(s->target);
	fathom_destroy(s->session);
}

struct worker {
	struct shared *shared;
	unsigned seed;
	size_t wrong;
	pthread_t id;
};

/* Asks one batch of random addresses, and compares it with the answers of one thread. */
static void ask(struct worker *w)
{
	struct shared *s = w->shared;
	struct fathom_answers *answers;
	uint64_t addresses[BATCH];
	size_t which[BATCH];
	struct fathom_symbolize_options options = { .size = sizeof options };

	options.flags = rand_r(&w->seed) % 4 == 0 ? FATHOM_ONE_SHOT : 0;
	for (size_t i = 0; i < BATCH; i++) {
		which[i] = (size_t)rand_r(&w->seed) % N_ADDRESSES;
		addresses[i] = s->addresses[which[i]];
	}
	if (fathom_symbolize(s->target, &options, addresses, NULL, BATCH, &answers, NULL)) {
		w->wrong++;
		return;
	}
	for (size_t i = 0; i < BATCH; i++) {
		char *text = text_of(answers, i);

		if (strcmp(text, s->truth[which[i]]) != 0 && !w->wrong++)
			fprintf(stderr, "# %s, not %s\n", text, s->truth[which[i]]);
		free(text);
	}
	fathom_answers_free(answers);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < ROUNDS; i++)
		ask(w);
	return NULL;
}

static size_t run_threads(struct shared *s)
{
	struct worker workers[N_THREADS];
	size_t wrong = 0;

	for (unsigned i = 0; i < N_THREADS; i++) {
		workers[i] = (struct worker){ .shared = s, .seed = i + 1 };
		assert_int_equal(pthread_create(&workers[i].id, NULL, worker_main, &workers[i]), 0);
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		(void)pthread_join(workers[i].id, NULL);
		wrong += workers[i].wrong;
	}
	return wrong;
}

static void eight_threads_get_the_answers_of_one(void **state)
{
	struct shared s;

	(void)state;
	setup(&s, 0, 2);
	assert_int_equal(run_threads(&s), 0);
	teardown(&s);
}

static void answers_stay_right_while_units_are_evicted(void **state)
{
	struct fathom_usage usage;
	struct shared s;
	struct worker last = { .shared = &s, .seed = 1 };

	(void)state;
	setup(&s, small_budget(), 1);
	assert_int_equal(run_threads(&s), 0);
	/* Of threads that end their last batches at once, one may leave it to the next call to make
	 * room. */
	ask(&last);
	assert_int_equal(last.wrong, 0);
	fathom_get_usage(s.session, &usage);
	if (usage.memory_used > usage.memory_budget)
		fprintf(stderr, "# %llu of %llu bytes\n", (unsigned long long)usage.memory_used,
			(unsigned long long)usage.memory_budget);
	assert_true(usage.memory_used <= usage.memory_budget);
	teardown(&s);
}

/* Without a budget the same work keeps more, so the budget above was in effect. */
static void without_a_budget_more_is_kept(void **state)
{
	struct fathom_usage usage;
	struct shared s;

	(void)state;
	setup(&s, 1 << 30, 1);
	assert_int_equal(run_threads(&s), 0);
	fathom_get_usage(s.session, &usage);
	assert_true(usage.memory_used > small_budget());
	teardown(&s);
}

/* The target is this process: each batch reads its map, and all share its files. */
static void a_process_is_asked_by_eight_threads(void **state)
{
	struct shared s;
	uint64_t at;

	(void)state;
	open_session(&s, 0, 1);
	assert_int_equal(fathom_target_open_process(s.session, getpid(), NULL, &s.target, NULL), 0);
	assert_int_equal(fathom_target_find_symbol(s.target, first_symbol, &at), 0);
	assert_true(at == (uint64_t)(uintptr_t)fathom_symbolize);
	find_truth(&s, at);
	assert_non_null(strstr(s.truth[0], "fathom_symbolize+0"));
	assert_int_equal(run_threads(&s), 0);
	teardown(&s);
}

#define CODE_SIZE ((size_t)N_ADDRESSES * 128)

/* Makes memory for code, each 100 bytes of which have a name in a perf map. */
static uint8_t *make_code(char *path, size_t cap)
{
	uint8_t *code =
		mmap(NULL, CODE_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *file;

	assert_true(code != MAP_FAILED);
	(void)snprintf(path, cap, "/tmp/perf-%d.map", (int)getpid());
	file = fopen(path, "w");
	assert_non_null(file);
	for (size_t i = 0; i + 100 <= CODE_SIZE; i += 100)
		assert_true(fprintf(file, "%llx 64 code%zu\n",
				    (unsigned long long)(uintptr_t)(code + i), i) > 0);
	assert_int_equal(fclose(file), 0);
	return code;
}

/* A batch takes over what another has read of the perf map, or reads it anew meanwhile. */
static void code_that_was_made_is_asked_by_eight_threads(void **state)
{
	struct shared s;
	char path[64];
	uint8_t *code = make_code(path, sizeof path);

	(void)state;
	open_session(&s, 0, 1);
	assert_int_equal(fathom_target_open_process(s.session, getpid(), NULL, &s.target, NULL), 0);
	find_truth(&s, (uint64_t)(uintptr_t)code);
	assert_string_equal(s.truth[0], "code0+0");
	assert_string_equal(s.truth[2], "code200+54");
	assert_int_equal(run_threads(&s), 0);
	teardown(&s);
	(void)unlink(path);
	(void)munmap(code, CODE_SIZE);
}

#define KERNEL_START UINT64_C(0xffffffff81000000)

/* Makes a root directory with a kernel and, after its image, a module, of functions of 64 bytes. */
static void make_kernel(char *root)
{
	const uint64_t end = KERNEL_START + (uint64_t)N_ADDRESSES * 127;
	char path[64];
	FILE *f;

	assert_non_null(mkdtemp(root));
	(void)snprintf(path, sizeof path, "%s/proc", root);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof path, "%s/proc/kallsyms", root);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%016" PRIx64 " T _text\n", KERNEL_START);
	for (uint64_t at = KERNEL_START; at < end; at += 64)
		fprintf(f, "%016" PRIx64 " t function_%" PRIx64 "%s\n", at, at,
			at < KERNEL_START + (end - KERNEL_START) / 2 ? "" : "\t[module]");
	fclose(f);
}

static void remove_kernel(const char *root)
{
	char path[64];

	(void)snprintf(path, sizeof path, "%s/proc/kallsyms", root);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof path, "%s/proc", root);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(root), 0);
}

/* Because of the module, each batch reads the list of symbols anew. */
static void the_kernel_is_asked_by_eight_threads(void **state)
{
	char root[] = "/tmp/fathom-unit-XXXXXX";
	const struct fathom_target_options options = { .size = sizeof options, .root = root };
	struct fathom_usage usage;
	struct shared s;

	(void)state;
	make_kernel(root);
	open_session(&s, 0, 1);
	assert_int_equal(fathom_target_open_kernel(s.session, &options, &s.target, NULL), 0);
	find_truth(&s, KERNEL_START);
	assert_string_equal(s.truth[0], "function_ffffffff81000000+0");
	assert_string_equal(s.truth[1], "function_ffffffff81000040+63");
	assert_int_equal(run_threads(&s), 0);
	remove_kernel(root);
	fathom_target_release(s.target);
	s.target = NULL;
	fathom_get_usage(s.session, &usage);
	assert_true(usage.memory_used == 0);
	teardown(&s);
}

static void answers_outlive_their_target(void **state)
{
	struct fathom_answers *answers;
	struct shared s;
	char *text;

	(void)state;
	setup(&s, 0, 1);
	assert_int_equal(
		fathom_symbolize(s.target, NULL, s.addresses, NULL, N_ADDRESSES, &answers, NULL),
		0);
	fathom_target_release(s.target);
	s.target = NULL;
	for (size_t i = 0; i < N_ADDRESSES; i++) {
		text = text_of(answers, i);
		assert_string_equal(text, s.truth[i]);
		free(text);
	}
	fathom_answers_free(answers);
	teardown(&s);
}

static void *store_main(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 5; i++)
		w->wrong += fathom_cache_store(w->shared->target, false, 0, NULL, NULL) != 0;
	return NULL;
}

static void many_threads_may_store_one_target(void **state)
{
	char dir[] = "/tmp/fathom-threads-XXXXXX";
	struct fathom_options options = { .size = sizeof options, .cache_dir = dir };
	struct worker workers[N_THREADS];
	struct shared s;
	uint64_t removed;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(fathom_create(&options, &s.session, NULL), 0);
	assert_int_equal(fathom_target_open_file(s.session, program(), NULL, &s.target, NULL), 0);
	for (unsigned i = 0; i < N_THREADS; i++) {
		workers[i] = (struct worker){ .shared = &s };
		assert_int_equal(pthread_create(&workers[i].id, NULL, store_main, &workers[i]), 0);
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		(void)pthread_join(workers[i].id, NULL);
		assert_int_equal(workers[i].wrong, 0);
	}
	fathom_target_release(s.target);
	assert_int_equal(fathom_cache_clear(s.session, &removed, NULL), 0);
	assert_int_equal(removed, 1);
	fathom_destroy(s.session);
	/* Nothing else is left. */
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eight_threads_get_the_answers_of_one),
		cmocka_unit_test(answers_stay_right_while_units_are_evicted),
		cmocka_unit_test(without_a_budget_more_is_kept),
		cmocka_unit_test(a_process_is_asked_by_eight_threads),
		cmocka_unit_test(code_that_was_made_is_asked_by_eight_threads),
		cmocka_unit_test(the_kernel_is_asked_by_eight_threads),
		cmocka_unit_test(answers_outlive_their_target),
		cmocka_unit_test(many_threads_may_store_one_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
