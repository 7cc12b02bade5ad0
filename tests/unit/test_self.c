/* SPDX-License-Identifier: MIT */
/* This process asks itself: several threads while libraries come and go, and calls that fail. */
#include "unit.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fathom/fathom.h"
#include "host/base/context.h"
#include "safe/base/limits.h"
#include "safe/self/table.h"

static struct fathom *session;
static struct fathom_self *self;

static int begin(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };

	(void)state;
	return fathom_create(&options, &session, NULL) ||
	       fathom_self_prepare(session, NULL, &self, NULL);
}

static int end(void **state)
{
	(void)state;
	fathom_self_destroy(self);
	fathom_destroy(session);
	return 0;
}

static void options_that_are_not_known_are_refused(void **state)
{
	struct fathom_self_options options = { .size = sizeof options, .flags = 1u << 31 };
	struct fathom_self *other;

	(void)state;
	assert_int_equal(fathom_self_prepare(session, &options, &other, NULL), FATHOM_E_ARGUMENT);
	options = (struct fathom_self_options){ .size = sizeof options, .signal = 65 };
	assert_int_equal(fathom_self_prepare(session, &options, &other, NULL), FATHOM_E_ARGUMENT);
	options = (struct fathom_self_options){ .size = sizeof options, .reserved = { 0, 1 } };
	assert_int_equal(fathom_self_prepare(session, &options, &other, NULL), FATHOM_E_ARGUMENT);
	fathom_self_destroy(NULL);
}

/* An answer, and the buffer that it is in. */
struct looked {
	const struct fathom_answer *is;
	char buffer[FATHOM_SELF_BUFFER];
};

static bool look_up(struct looked *l, uintptr_t at)
{
	const struct fathom_pc pc = { .address = at };

	l->is = fathom_self_lookup(self, pc, 0, l->buffer, sizeof l->buffer);
	return l->is->symbol != NULL;
}

static bool look_up_now(struct looked *l, uintptr_t at)
{
	const struct fathom_pc pc = { .address = at };

	l->is = fathom_self_lookup_now(self, pc, 0, l->buffer, sizeof l->buffer);
	return l->is->symbol != NULL;
}

/* What the tables of @own say of @at. */
static bool answer_of(const struct fathom_self *own, uintptr_t at, struct looked *l)
{
	const struct fathom_pc pc = { .address = at };

	l->is = fathom_self_answer(own, pc, 0, true, l->buffer, sizeof l->buffer);
	return l->is->symbol != NULL;
}

static void an_answer_lies_in_its_buffer(void **state)
{
	const struct fathom_pc pc = { .address = (uintptr_t)begin + 1 };
	struct {
		char before[8];
		char buffer[300];
		char behind[8];
	} b;
	const struct fathom_answer *a;

	(void)state;
	for (size_t size = 0; size < sizeof b.buffer - 8; size++)
		for (size_t shift = 0; shift < 8; shift++) {
			memset(&b, 'x', sizeof b);
			a = fathom_self_lookup(self, pc, 0, b.buffer + shift, size);
			assert_true((a != NULL) == (size >= 256));
			for (size_t i = 0; i < sizeof b; i++)
				if (i < 8 + shift || i >= 8 + shift + size)
					assert_int_equal(((const char *)&b)[i], 'x');
			if (!a)
				continue;
			assert_true((const char *)a >= b.buffer + shift);
			assert_true((const char *)(a + 1) <= b.buffer + shift + size);
			assert_string_equal(a->symbol, "begin");
			assert_int_equal(a->symbol_size, 5);
			assert_true(a->pc.address == pc.address && a->offset == 1);
			assert_non_null(a->module->path);
		}
}

static _Atomic bool stop;
static _Atomic uint64_t n_answers;

static void *ask(void *unused)
{
	struct looked a;

	while (!atomic_load(&stop)) {
		/* What stays loaded has its name all the time. */
		if (!look_up(&a, (uintptr_t)begin + 1) || strcmp(a.is->symbol, "begin") != 0 ||
		    a.is->offset != 1)
			abort();
		if (!look_up_now(&a, (uintptr_t)labs))
			abort();
		atomic_fetch_add(&n_answers, 1);
	}
	return unused;
}

/* More libraries than are kept; each is a copy of one. */
#define N_COPIES (FATHOM_SELF_KEPT + 40)

static void copy_file(const char *from, const char *to)
{
	char buf[4096];
	FILE *in = fopen(from, "rb");
	FILE *out = fopen(to, "wb");
	size_t n;

	assert_true(in && out);
	while ((n = fread(buf, 1, sizeof buf, in)) > 0)
		assert_int_equal(fwrite(buf, 1, n, out), n);
	assert_int_equal(fclose(in) | fclose(out), 0);
}

/* Where libraries are, or were. */
static _Atomic uintptr_t somewhere;

static void *ask_for_what_goes(void *unused)
{
	struct looked a;

	while (!atomic_load(&stop))
		(void)look_up(&a, atomic_load(&somewhere));
	return unused;
}

static void load_copy(const char *from, const char *to)
{
	struct looked a;
	struct link_map *map;
	void *handle;

	copy_file(from, to);
	handle = dlopen(to, RTLD_NOW);
	assert_non_null(handle);
	assert_int_equal(unlink(to), 0);
	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	assert_int_equal(fathom_self_refresh(self, NULL), 0);
	atomic_store(&somewhere, (uintptr_t)map->l_ld);
	(void)look_up(&a, (uintptr_t)map->l_ld);
	assert_non_null(a.is->module->path);
	assert_non_null(strstr(a.is->module->path, strrchr(to, '/')));
	dlclose(handle);
}

static void threads_ask_while_libraries_come_and_go(void **state)
{
	char dir[] = "/tmp/fathom-test-XXXXXX";
	pthread_t thread[4];
	struct link_map *map;
	char from[4096];
	char to[64];
	uint64_t first = 0;
	uint64_t each = 0;
	void *handle = dlopen("libBrokenLocale.so.1", RTLD_NOW);

	(void)state;
	assert_non_null(handle);
	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	assert_true(snprintf(from, sizeof from, "%s", map->l_name) < (int)sizeof from);
	dlclose(handle);
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < N_COPIES; i++) {
		(void)snprintf(to, sizeof to, "%s/%03d.so", dir, i);
		load_copy(from, to);
		/* While somebody reads, what should be freed may still be there. */
		if (i == 0)
			first = atomic_load(&session->memory.used);
		if (i != 1)
			continue;
		each = atomic_load(&session->memory.used) - first;
		for (int k = 0; k < 4; k++)
			assert_int_equal(pthread_create(&thread[k], NULL,
							k < 2 ? ask : ask_for_what_goes, NULL),
					 0);
	}
	/* Nothing is freed while somebody reads; then all that are too many are. */
	assert_true(each > 0);
	while (atomic_load(&n_answers) < 200)
		;
	atomic_store(&stop, true);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	load_copy(from, to);
	assert_true(atomic_load(&session->memory.used) <= first + (FATHOM_SELF_KEPT + 1) * each);
	assert_int_equal(rmdir(dir), 0);
}

/* A table of our own; of its modules, answers have only the bounds. */
static void tables_take_turns(void **state)
{
	static _Atomic uintptr_t lows[2][64];
	static struct fathom_self_row rows[2][64];
	struct fathom_self_table tables[2];
	static uint64_t starts[1] = { 0 };
	static uint32_t winners[1] = { 0 };
	static uint32_t buckets[65];
	static const struct fathom_self_symbol symbol = {
		.start = 0, .name = 1, .linkage = 1, .name_size = 4, .linkage_size = 4
	};
	static const struct fathom_self_module module = { .path = "module",
							  .strings = "\0name",
							  .starts = starts,
							  .winners = winners,
							  .n_starts = 1,
							  .n_buckets = 64,
							  .buckets = buckets,
							  .symbols = &symbol };
	_Atomic uintptr_t none[FATHOM_MAX_REGISTRIES] = { 0 };
	struct fathom_self own = { .registries = none };
	struct fathom_self_place p = { .low = 64,
				       .high = 128,
				       .bias = 64,
				       .flags = FATHOM_SELF_STAYS,
				       .module = (uintptr_t)&module };
	struct looked a;

	(void)state;
	for (int i = 1; i < 65; i++)
		buckets[i] = i > 1;
	for (int i = 0; i < 2; i++) {
		tables[i] =
			(struct fathom_self_table){ .cap = 64, .lows = lows[i], .rows = rows[i] };
		atomic_init(&own.tables[i], &tables[i]);
	}
	assert_false(answer_of(&own, 64, &a));
	fathom_self_publish(&own, &p, 1);
	assert_true(answer_of(&own, 64, &a));
	assert_string_equal(a.is->symbol, "name");
	assert_string_equal(a.is->module->path, "module");
	assert_int_equal(a.is->module_address, 0);
	assert_true(answer_of(&own, 127, &a));
	assert_int_equal(a.is->offset, 63);
	assert_false(answer_of(&own, 128, &a));
	assert_false(answer_of(&own, 63, &a));
	/* It is gone, and comes back elsewhere. */
	fathom_self_publish(&own, &p, 0);
	assert_false(answer_of(&own, 64, &a));
	p.low = 1024;
	p.high = 1030;
	p.bias = 1000;
	fathom_self_publish(&own, &p, 1);
	assert_false(answer_of(&own, 64, &a));
	assert_true(answer_of(&own, 1029, &a));
	assert_int_equal(a.is->offset, 29);
	/* Its stated addresses are near the end, so the bias is above the address. */
	p.bias = (uintptr_t)0 - 64;
	fathom_self_publish(&own, &p, 1);
	assert_true(answer_of(&own, 1025, &a));
	assert_int_equal(a.is->module_address, 1089);
	assert_int_equal(a.is->offset, 1089);
}

#define DEPTH 8 /* of inlined calls: more than fit a buffer of the least size */

/* An index with one block of @size bytes of code from 0 on; it fits the first page. */
struct small_index {
	struct fathom_index_header header;
	struct fathom_index_segment segment;
	struct fathom_block block;
	struct fathom_block_row row;
	struct fathom_block_node nodes[DEPTH];
};

/* Fills in the calls, each inlined into the one before, and one row without a file. */
static struct fathom_index make_small_index(struct small_index *x)
{
	memset(x, 0, sizeof *x);
	x->header.segments = (struct fathom_index_part){ offsetof(struct small_index, segment), 1 };
	x->header.blocks =
		(struct fathom_index_part){ offsetof(struct small_index, block),
					    sizeof *x - offsetof(struct small_index, block) };
	x->header.checks.off = sizeof *x;
	x->segment = (struct fathom_index_segment){ .high = 64, .block = x->header.blocks.off };
	x->block = (struct fathom_block){ .size = 64,
					  .bytes = x->header.blocks.n,
					  .flags = FATHOM_BLOCK_WIDE,
					  .n_rows = 1,
					  .n_nodes = DEPTH };
	x->row = (struct fathom_block_row){ .file = FATHOM_BLOCK_NONE, .node = DEPTH - 1 };
	for (uint32_t i = 0; i < DEPTH; i++)
		x->nodes[i] = (struct fathom_block_node){ .parent = i - 1,
							  .function = FATHOM_BLOCK_NONE,
							  .call_file = FATHOM_BLOCK_NONE };
	return (struct fathom_index){ .file = { (const uint8_t *)x, sizeof *x },
				      .header = &x->header };
}

static size_t count_frames(const struct fathom_answer *a)
{
	size_t n = 0;

	for (const struct fathom_frame *f = a->frame; f; f = f->outer)
		n++;
	return n;
}

static void a_chain_that_is_cut_is_said_to_be(void **state)
{
	static _Atomic uintptr_t lows[1];
	static struct fathom_self_row rows[1];
	static struct small_index file;
	struct fathom_index lines = make_small_index(&file);
	struct fathom_self_table table = { .cap = 1, .lows = lows, .rows = rows };
	const uint64_t starts[1] = { 0 };
	const uint32_t winners[1] = { 0 };
	const uint32_t buckets[2] = { 0, 1 };
	const struct fathom_self_symbol symbol = {
		.size = 64, .name = 1, .linkage = 1, .name_size = 4, .linkage_size = 4
	};
	const struct fathom_self_module module = { .path = "module",
						   .no_lines = FATHOM_REASON_NO_DEBUG_INFO,
						   .strings = "\0name",
						   .starts = starts,
						   .winners = winners,
						   .n_starts = 1,
						   .n_buckets = 1,
						   .buckets = buckets,
						   .shift = 6,
						   .symbols = &symbol,
						   .lines = &lines };
	const struct fathom_self_place p = { .low = 64,
					     .high = 128,
					     .bias = 64,
					     .flags = FATHOM_SELF_STAYS,
					     .module = (uintptr_t)&module };
	const struct fathom_pc pc = { .address = 64 };
	_Atomic uintptr_t none[FATHOM_MAX_REGISTRIES] = { 0 };
	struct fathom_self own = { .registries = none };
	struct looked a;

	(void)state;
	for (int i = 0; i < 2; i++)
		atomic_init(&own.tables[i], &table);
	fathom_self_publish(&own, &p, 1);
	a.is = fathom_self_answer(&own, pc, 0, true, a.buffer, sizeof a.buffer);
	assert_int_equal(count_frames(a.is), DEPTH);
	assert_int_equal(a.is->reason, FATHOM_REASON_NO_DEBUG_INFO);
	a.is = fathom_self_answer(&own, pc, 0, true, a.buffer, 256);
	assert_in_range(count_frames(a.is), 1, DEPTH - 1);
	assert_string_equal(a.is->symbol, "name");
	assert_int_equal(a.is->reason, FATHOM_REASON_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_that_are_not_known_are_refused),
		cmocka_unit_test(an_answer_lies_in_its_buffer),
		cmocka_unit_test(tables_take_turns),
		cmocka_unit_test(a_chain_that_is_cut_is_said_to_be),
		cmocka_unit_test(threads_ask_while_libraries_come_and_go),
	};

	return cmocka_run_group_tests_name("self", tests, begin, end);
}
