/* SPDX-License-Identifier: MIT */
/*
 * Work that is long in itself asks in its middle, and a call that was cancelled there leaves whole
 * what other calls share: on the same target, the next one answers right.
 */
#include "unit.h"

#include <fathom/fathom.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_FUNCTIONS 12000
#define N_SYMBOLS   200000
#define N_NAMED     5000 /* symbols that are asked for */

/* Bytes of .debug_line_str: 38 steps of 1 MiB and a part. */
#define STRINGS_TEXT "40000000"
#define STRINGS      UINT64_C(40000000)

/* More questions than these are not all tried: each trial decodes all again. */
#ifdef SANITIZED
#define MANY_QUESTIONS 8
#else
#define MANY_QUESTIONS 20
#endif

/* What the caller's function has seen, and when it is to cancel. */
struct asked {
	pthread_t thread;
	unsigned calls;
	unsigned cancel_at;    /* 0: not by number */
	uint64_t cancel_total; /* within what has this total; 0: not by that */
	uint64_t cancel_done;  /* with it: when this much is done */
	uint32_t phases;       /* bits, by phase */
	bool is_wrong;         /* on another thread, or more was done than there is */
};

static struct asked asked;
static char folder[] = "/tmp/fathom-test-XXXXXX";
static uint64_t functions[N_FUNCTIONS];
static uint64_t symbols[N_NAMED];

static int on_progress(void *data, const struct fathom_progress *p)
{
	struct asked *a = data;

	a->calls++;
	a->phases |= 1u << p->phase;
	a->is_wrong |= !pthread_equal(a->thread, pthread_self());
	a->is_wrong |= p->total && p->done > p->total;
	if (a->cancel_total && p->total == a->cancel_total && p->done >= a->cancel_done)
		return FATHOM_CANCEL;
	return a->calls == a->cancel_at ? FATHOM_CANCEL : FATHOM_GO_ON;
}

static struct fathom *open_session(uint32_t threads, bool asks)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.threads = threads,
						.progress = asks ? on_progress : NULL,
						.progress_data = &asked };
	struct fathom *session;

	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	return session;
}

static struct fathom_target *open_file(struct fathom *session, const char *name)
{
	struct fathom_target *target;
	char path[64];

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(fathom_target_open_file(session, path, NULL, &target, NULL), 0);
	return target;
}

static void run(const char *format)
{
	char command[512];

	(void)snprintf(command, sizeof command, format, folder);
	assert_int_equal(system(command), 0);
}

/* Writes a library whose one unit of C has many functions, and which has still more symbols. */
static void write_library(void)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/many.c", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < N_FUNCTIONS; i++)
		(void)fprintf(f, "int f%d(int a) { { int b = a; return b; } }\n", i);
	assert_int_equal(fclose(f), 0);
	(void)snprintf(path, sizeof path, "%s/symbols.s", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fprintf(f, ".section .many, \"ax\"\n.globl quite_unlike_all_others\n"
			 "quite_unlike_all_others: .4byte 0\n");
	for (int i = 0; i < N_SYMBOLS; i++)
		(void)fprintf(f, "s%d: .4byte 0\n", i);
	assert_int_equal(fclose(f), 0);
	run("cd %s && cc -g -O0 -fPIC -shared -nostdlib -Wl,-z,noexecstack -o many.so many.c "
	    "symbols.s");
}

/* Writes copies whose names of files, with many zeros behind them, are compressed. */
static void write_compressed(void)
{
	run("cd %s && objcopy -O binary --set-section-flags .debug_line_str=alloc -j "
	    ".debug_line_str "
	    "many.so strings && truncate -s " STRINGS_TEXT " strings");
	run("cd %s && objcopy --update-section .debug_line_str=strings many.so padded.so");
	run("cd %s && objcopy --compress-debug-sections=zlib padded.so zlib.so");
	/* Not every objcopy can. */
	run("cd %s && { objcopy --compress-debug-sections=zstd padded.so zstd.so 2>/dev/null || "
	    "rm -f zstd.so; }");
}

/* Finds the addresses of the functions, with a session that asks nobody. */
static void find_functions(struct fathom_target *target)
{
	static char texts[N_FUNCTIONS][16];
	static const char *names[N_FUNCTIONS];
	static uint8_t reasons[N_FUNCTIONS];

	for (int i = 0; i < N_FUNCTIONS; i++) {
		(void)snprintf(texts[i], sizeof texts[i], "f%d", i);
		names[i] = texts[i];
	}
	assert_int_equal(
		fathom_target_find_symbols(target, 0, names, N_FUNCTIONS, functions, reasons, NULL),
		0);
	for (int i = 0; i < N_FUNCTIONS; i++)
		assert_int_equal(reasons[i], FATHOM_REASON_NONE);
}

static int begin_group(void **state)
{
	struct fathom_target *target;
	struct fathom *session;
	uint64_t start;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	write_library();
	write_compressed();
	session = open_session(1, false);
	target = open_file(session, "many.so");
	find_functions(target);
	assert_int_equal(fathom_target_section_address(target, ".many", 0, &start), 0);
	for (uint64_t i = 0; i < N_NAMED; i++)
		symbols[i] = start + 4 + 4 * 40 * i;
	fathom_target_release(target);
	fathom_destroy(session);
	return 0;
}

static int end_group(void **state)
{
	(void)state;
	run("rm -rf %s");
	return 0;
}

/* Makes a call of @target; sets *@ret_right if it has answered right. */
typedef fathom_err call_fn(struct fathom_target *target, bool *ret_right,
			   struct fathom_errinfo *info);

typedef struct fathom_target *open_fn(struct fathom *session);

/* Opens the target anew and cancels the call as @when says; then makes it again. */
static void cancel(open_fn *open, call_fn *call, uint32_t threads, struct asked when)
{
	struct fathom *session = open_session(threads, true);
	struct fathom_target *target;
	struct fathom_errinfo info;
	bool right = false;

	asked = (struct asked){ .thread = pthread_self() };
	target = open(session);
	asked = when;
	asked.thread = pthread_self();
	assert_int_equal(call(target, &right, &info), FATHOM_E_CANCELLED);
	assert_int_equal(info.err, FATHOM_E_CANCELLED);
	assert_true(!when.cancel_at || asked.calls == when.cancel_at);
	assert_false(asked.is_wrong);
	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(call(target, &right, &info), 0);
	assert_true(right);
	fathom_target_release(target);
	fathom_destroy(session);
}

/*
 * Makes a call to its end: it must ask @least times or more, also in each of @phases. Then cancels
 * it at each question, or if they are many at 1, 2, each quarter and the last, of a new target.
 * How often several threads ask depends on the time they take: there, at the first only.
 */
static void check(open_fn *open, call_fn *call, uint32_t threads, unsigned least, uint32_t phases)
{
	struct fathom *session = open_session(threads, true);
	struct fathom_target *target;
	struct fathom_errinfo info;
	bool right = false;
	unsigned n;

	asked = (struct asked){ .thread = pthread_self() };
	target = open(session);
	asked = (struct asked){ .thread = pthread_self() };
	assert_int_equal(call(target, &right, &info), 0);
	assert_true(right);
	n = asked.calls;
	assert_true(n >= least);
	assert_int_equal(asked.phases & phases, phases);
	assert_false(asked.is_wrong);
	fathom_target_release(target);
	fathom_destroy(session);
	cancel(open, call, threads, (struct asked){ .cancel_at = 1 });
	if (threads == 1 && n > 1)
		cancel(open, call, threads, (struct asked){ .cancel_at = 2 });
	for (unsigned i = 3; threads == 1 && n <= MANY_QUESTIONS && i < n; i++)
		cancel(open, call, threads, (struct asked){ .cancel_at = i });
	for (unsigned i = 1; threads == 1 && n > MANY_QUESTIONS && i < 4; i++)
		cancel(open, call, threads, (struct asked){ .cancel_at = n * i / 4 });
	if (threads == 1 && n > 2)
		cancel(open, call, threads, (struct asked){ .cancel_at = n });
}

static struct fathom_target *open_many(struct fathom *session)
{
	return open_file(session, "many.so");
}

static struct fathom_target *open_zlib(struct fathom *session)
{
	return open_file(session, "zlib.so");
}

static struct fathom_target *open_zstd(struct fathom *session)
{
	return open_file(session, "zstd.so");
}

static fathom_err ask(struct fathom_target *target, uint32_t flags, const uint64_t *addresses,
		      size_t n, struct fathom_answers **ret, struct fathom_errinfo *info)
{
	const struct fathom_symbolize_options options = { .size = sizeof options, .flags = flags };

	return fathom_symbolize(target, &options, addresses, NULL, n, ret, info);
}

static fathom_err ask_names(struct fathom_target *target, bool *ret_right,
			    struct fathom_errinfo *info)
{
	struct fathom_answers *answers;
	char name[16];

	const fathom_err err = ask(target, FATHOM_NAMES_ONLY, symbols, N_NAMED, &answers, info);
	if (err)
		return err;
	*ret_right = true;
	for (int i = 0; i < N_NAMED; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, (size_t)i);

		(void)snprintf(name, sizeof name, "s%d", 40 * i);
		*ret_right &= a->symbol && strcmp(a->symbol, name) == 0;
	}
	fathom_answers_free(answers);
	return FATHOM_OK;
}

static fathom_err ask_lines(struct fathom_target *target, bool *ret_right,
			    struct fathom_errinfo *info)
{
	struct fathom_answers *answers;
	const fathom_err err = ask(target, 0, functions, N_FUNCTIONS, &answers, info);
	char name[16];

	if (err)
		return err;
	*ret_right = true;
	for (int i = 0; i < N_FUNCTIONS; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, (size_t)i);

		(void)snprintf(name, sizeof name, "f%d", i);
		*ret_right &= a->frame && a->frame->line == (uint32_t)i + 1 &&
			      strcmp(a->frame->function, name) == 0 && a->frame->file &&
			      strstr(a->frame->file, "/many.c");
	}
	/* Nothing was taken for damaged. */
	*ret_right &= !fathom_target_note(target, 0);
	fathom_answers_free(answers);
	return FATHOM_OK;
}

static void making_an_index_of_symbols(void **state)
{
	(void)state;
	/* Two passes of 13 and more tasks each, the sweep between 65,536 starts each. */
	check(open_many, ask_names, 1, 28, 1u << FATHOM_PHASE_INDEX);
	check(open_many, ask_names, 4, 1, 0);
}

static void decoding_a_large_unit(void **state)
{
	(void)state;
	/* What else is asked of 12,000 addresses: the one task, its one unit, and the index. */
	check(open_many, ask_lines, 1, 30, 1u << FATHOM_PHASE_ANSWER);
	check(open_many, ask_lines, 4, 1, 0);
}

static void decompressing_a_section(void **state)
{
	(void)state;
	char path[64];

	check(open_zlib, ask_lines, 1, 70, 1u << FATHOM_PHASE_OPEN);
	check(open_zlib, ask_lines, 4, 1, 0);
	cancel(open_zlib, ask_lines, 1, (struct asked){ .cancel_total = STRINGS });
	cancel(open_zlib, ask_lines, 1,
	       (struct asked){ .cancel_total = STRINGS, .cancel_done = STRINGS / 2 });
	(void)snprintf(path, sizeof path, "%s/zstd.so", folder);
	if (access(path, F_OK))
		return;
	check(open_zstd, ask_lines, 1, 70, 1u << FATHOM_PHASE_OPEN);
	cancel(open_zstd, ask_lines, 1, (struct asked){ .cancel_total = STRINGS });
	cancel(open_zstd, ask_lines, 1,
	       (struct asked){ .cancel_total = STRINGS, .cancel_done = STRINGS / 2 });
}

static fathom_err find_name(struct fathom_target *target, bool *ret_right,
			    struct fathom_errinfo *info)
{
	const char *query = "s4000";
	struct fathom_matches *matches;
	const fathom_err err = fathom_find(target, NULL, &query, 1, &matches, info);

	if (err)
		return err;
	*ret_right = fathom_matches_count(matches) == 1 &&
		     fathom_matches_get(matches, 0)->address == symbols[100];
	fathom_matches_free(matches);
	return FATHOM_OK;
}

/* Opens the file and searches it so often that the next search makes an index of its names. */
static struct fathom_target *open_searched(struct fathom *session)
{
	struct fathom_target *target = open_many(session);
	bool right;

	for (int i = 0; i < 16; i++)
		assert_int_equal(find_name(target, &right, NULL), 0);
	return target;
}

static void making_an_index_of_names(void **state)
{
	(void)state;
	/* One question for 65,536 symbols. */
	check(open_searched, find_name, 1, N_SYMBOLS / 65536, 1u << FATHOM_PHASE_INDEX);
}

static fathom_err find_near(struct fathom_target *target, bool *ret_right,
			    struct fathom_errinfo *info)
{
	char name[FATHOM_NEAR_SIZE];
	const fathom_err err = fathom_near_symbol(target, "quite_unlike_all_othres", name, info);

	*ret_right = !err && strcmp(name, "quite_unlike_all_others") == 0;
	return err;
}

static void suggesting_a_name(void **state)
{
	(void)state;
	/* Two at the beginning, then one for each 16,384 of the symbols of .symtab. */
	check(open_many, find_near, 1, 2 + N_SYMBOLS / 16384, 1u << FATHOM_PHASE_FIND);
}

#define N_VALUES 10000

static uint32_t values[N_VALUES];

static struct fathom_target *open_this_process(struct fathom *session)
{
	struct fathom_target *target;

	assert_int_equal(fathom_target_open_process(session, getpid(), NULL, &target, NULL), 0);
	return target;
}

static fathom_err read_values(struct fathom_target *target, bool *ret_right,
			      struct fathom_errinfo *info)
{
	static struct fathom_value read[N_VALUES];
	static uint64_t addresses[N_VALUES];
	fathom_err err;

	for (uint32_t i = 0; i < N_VALUES; i++) {
		values[i] = i * 3 + 1;
		addresses[i] = (uintptr_t)&values[i];
	}
	err = fathom_values_read(target, "u32", addresses, N_VALUES, read, info);
	if (err)
		return err;
	*ret_right = true;
	for (uint32_t i = 0; i < N_VALUES; i++) {
		*ret_right &= read[i].count == 1 && *(const uint64_t *)read[i].items == i * 3 + 1;
		fathom_value_free(&read[i]);
	}
	return FATHOM_OK;
}

static fathom_err read_a_value(struct fathom_target *target, bool *ret_right,
			       struct fathom_errinfo *info)
{
	struct fathom_value value = { 0 };
	fathom_err err;

	values[0] = 77;
	err = fathom_value_read(target, "u32", (uintptr_t)values, &value, info);
	*ret_right = !err && value.count == 1 && *(const uint64_t *)value.items == 77;
	fathom_value_free(&value);
	return err;
}

static void reading_values(void **state)
{
	(void)state;
	/* One question for 2,048 values. */
	check(open_this_process, read_values, 1, 5, 1u << FATHOM_PHASE_READ);
	check(open_this_process, read_a_value, 1, 1, 1u << FATHOM_PHASE_READ);
}

#define KERNEL_START UINT64_C(0xffffffff81000000)
#define N_KALLSYMS   200000

static struct fathom_target *open_kernel(struct fathom *session)
{
	const struct fathom_target_options options = { .size = sizeof options, .root = folder };
	struct fathom_target *target;

	assert_int_equal(fathom_target_open_kernel(session, &options, &target, NULL), 0);
	return target;
}

/* Finds addresses, for which a list that is a second old is good enough. */
static fathom_err find_in_kernel(struct fathom_target *target, bool *ret_right,
				 struct fathom_errinfo *info)
{
	static const char *const names[] = { "k1", "k100000", "k200000" };
	uint64_t addresses[3];
	uint8_t reasons[3];
	const fathom_err err =
		fathom_target_find_symbols(target, 0, names, 3, addresses, reasons, info);

	*ret_right = !err && !reasons[0] && !reasons[1] && !reasons[2] &&
		     addresses[0] == KERNEL_START + 16 && addresses[1] == KERNEL_START + 1600000 &&
		     addresses[2] == KERNEL_START + 3200000;
	return err;
}

static fathom_err ask_kernel(struct fathom_target *target, bool *ret_right,
			     struct fathom_errinfo *info)
{
	static uint64_t addresses[N_NAMED];
	struct fathom_answers *answers;
	char name[16];
	fathom_err err;

	for (uint64_t i = 0; i < N_NAMED; i++)
		addresses[i] = KERNEL_START + 16 * (40 * i + 1) + 3;
	err = ask(target, FATHOM_NAMES_ONLY, addresses, N_NAMED, &answers, info);
	if (err)
		return err;
	*ret_right = true;
	for (int i = 0; i < N_NAMED; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, (size_t)i);

		(void)snprintf(name, sizeof name, "k%d", 40 * i + 1);
		*ret_right &= a->symbol && strcmp(a->symbol, name) == 0;
	}
	fathom_answers_free(answers);
	return FATHOM_OK;
}

static void reading_kallsyms(void **state)
{
	char path[64];
	FILE *f;

	(void)state;
	run("mkdir %s/proc");
	(void)snprintf(path, sizeof path, "%s/proc/kallsyms", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fprintf(f, "%llx T _text\n", (unsigned long long)KERNEL_START);
	for (unsigned i = 1; i <= N_KALLSYMS; i++)
		(void)fprintf(f, "%llx T k%u\n", (unsigned long long)(KERNEL_START + 16 * i), i);
	assert_int_equal(fclose(f), 0);
	/* Its 5 MB are read in pieces that double. */
	check(open_kernel, ask_kernel, 1, 3, 1u << FATHOM_PHASE_READ);
	check(open_kernel, find_in_kernel, 1, 3, 1u << FATHOM_PHASE_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(making_an_index_of_symbols),
		cmocka_unit_test(making_an_index_of_names),
		cmocka_unit_test(decoding_a_large_unit),
		cmocka_unit_test(decompressing_a_section),
		cmocka_unit_test(suggesting_a_name),
		cmocka_unit_test(reading_values),
		cmocka_unit_test(reading_kallsyms),
	};

	return cmocka_run_group_tests(tests, begin_group, end_group);
}
