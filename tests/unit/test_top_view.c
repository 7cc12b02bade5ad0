/* SPDX-License-Identifier: MIT */
/* Sums of samples that are made by hand: the times of all are known, so are the rows. */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/common.h"
#include "cli/top_view.h"

#define SECOND UINT64_C(1000000000)
#define NOW    (20 * SECOND)

void *must(void *memory)
{
	assert_non_null(memory);
	return memory;
}

static const struct fathom_profile_module jit = { .path = "/jit",
						  .kind = FATHOM_PROFILE_MODULE_JIT };
static const struct fathom_profile_module waits = { .path = "[waits]",
						    .kind = FATHOM_PROFILE_MODULE_WAITS };
static const struct fathom_profile_module file = { .path = "/bin/file",
						   .kind = FATHOM_PROFILE_MODULE_FILE };

/* Entries are those of the ten seconds before NOW, whatever the time is. */
static void begin(struct top_samples *s)
{
	top_samples_init(s, 10 * SECOND);
	s->base = s->first_ns = s->began = 1;
	s->frozen = NOW;
}

/* Adds a sample of thread @tid with the @stack "INNERMOST CALLER ...", up to @ns. */
static void add(struct top_samples *s, int32_t tid, const char *stack,
		enum fathom_profile_part part, uint64_t ns, uint64_t weight)
{
	const struct fathom_profile_thread t = {
		.pid = INT32_MAX, .tid = tid, .name = "thread", .process = "process", .cgroup = ""
	};
	struct fathom_record_frame frames[8] = { 0 };
	struct fathom_record_sample sample = { .thread = &t,
					       .frames = frames,
					       .ns = ns - 1,
					       .weight = weight,
					       .part = (uint8_t)part };
	char text[64];
	char *rest;

	strcpy(text, stack);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		struct fathom_record_frame *f = &frames[sample.n_frames++];

		f->module = *word == '[' ? &waits : *word == '@' ? &file : &jit;
		if (*word == '@')
			f->pc.address = strtoull(word + 1, NULL, 16);
		else
			f->name = word;
	}
	/* Texts are of this sample alone, as their addresses would not be. */
	s->raws.n = 0;
	free(s->by_raw.slots);
	s->by_raw = (struct top_index){ 0 };
	top_samples_add(s, &sample);
}

static const struct top_row *row_of(const struct top_view *v, enum top_list list, const char *name)
{
	for (size_t i = 0; i < v->lists[list].n; i++)
		if (strcmp(v->lists[list].items[i].name, name) == 0)
			return &v->lists[list].items[i];
	return NULL;
}

static void assert_function(const struct top_view *v, const char *name, uint64_t self,
			    uint64_t total)
{
	const struct top_row *r = row_of(v, TOP_FUNCTIONS, name);

	assert_non_null(r);
	assert_int_equal(r->self, self);
	assert_int_equal(r->total, total);
}

static void functions_are_summed_up(void **state)
{
	const struct top_choice choice = { 0 };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	add(&s, 1, "leaf middle main", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 300);
	add(&s, 1, "middle main", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 200);
	/* One that calls itself counts once. */
	add(&s, 2, "leaf middle leaf main", FATHOM_PROFILE_SAMPLED, 16 * SECOND, 50);
	add(&s, 2, "", FATHOM_PROFILE_UNSAMPLED, 16 * SECOND, 7);
	add(&s, 2, "main", FATHOM_PROFILE_KERNEL_HIDDEN, 16 * SECOND, 3);
	add(&s, 2, "[futex] wait main", FATHOM_PROFILE_WAITING, 17 * SECOND, SECOND);
	top_view_make(&s, &choice, NOW, &v);
	assert_function(&v, "leaf", 350, 350);
	assert_function(&v, "middle", 200, 550);
	assert_function(&v, "main", 0, 553);
	assert_function(&v, "[not sampled]", 7, 7);
	assert_function(&v, "[kernel, stack not permitted]", 3, 3);
	assert_null(row_of(&v, TOP_FUNCTIONS, "wait"));
	assert_int_equal(v.running, 560);
	assert_int_equal(v.shown, 560);
	assert_int_equal(v.waited, SECOND);
	assert_int_equal(v.span_ns, 10 * SECOND);
	/* The first row has the highest time of its own. */
	assert_string_equal(v.lists[TOP_FUNCTIONS].items[0].name, "leaf");
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void waits_are_of_functions_if_that_is_wanted(void **state)
{
	struct top_choice choice = { .time = TOP_WAITING };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	add(&s, 1, "busy main", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 100);
	add(&s, 1, "[futex] lock main", FATHOM_PROFILE_WAITING, 16 * SECOND, 40);
	top_view_make(&s, &choice, NOW, &v);
	assert_function(&v, "lock", 40, 40);
	assert_function(&v, "main", 0, 40);
	assert_null(row_of(&v, TOP_FUNCTIONS, "busy"));
	assert_null(row_of(&v, TOP_FUNCTIONS, "[futex]"));
	top_view_deinit(&v);
	choice.time = TOP_BOTH;
	top_view_make(&s, &choice, NOW, &v);
	assert_function(&v, "main", 0, 140);
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void the_window_cuts_what_is_longer(void **state)
{
	struct top_choice choice = { 0 };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	/* The window is from 10 to 20: of these, 1, 5 and 2 seconds are within it. */
	add(&s, 1, "f", FATHOM_PROFILE_SAMPLED, 11 * SECOND, 2 * SECOND);
	add(&s, 2, "[read] f", FATHOM_PROFILE_WAITING, 15 * SECOND, 10 * SECOND);
	add(&s, 3, "[read] f", FATHOM_PROFILE_RUNNABLE, 22 * SECOND, 4 * SECOND);
	/* And nothing of this one. */
	add(&s, 4, "g", FATHOM_PROFILE_SAMPLED, 9 * SECOND, SECOND);
	top_view_make(&s, &choice, NOW, &v);
	assert_int_equal(v.running, SECOND);
	assert_int_equal(v.waited, 5 * SECOND);
	assert_int_equal(v.ready, 2 * SECOND);
	assert_null(row_of(&v, TOP_FUNCTIONS, "g"));
	top_view_deinit(&v);
	choice.is_all = true;
	top_view_make(&s, &choice, NOW, &v);
	assert_int_equal(v.running, 3 * SECOND);
	assert_int_equal(v.waited, 10 * SECOND);
	/* Nothing that comes later changes it: two of four seconds, none of the last sample. */
	assert_int_equal(v.ready, 2 * SECOND);
	assert_int_equal(v.span_ns, NOW - 1);
	top_view_deinit(&v);
	add(&s, 1, "f", FATHOM_PROFILE_SAMPLED, 25 * SECOND, SECOND);
	top_view_make(&s, &choice, NOW, &v);
	assert_int_equal(v.running, 3 * SECOND);
	assert_int_equal(v.span_ns, NOW - 1);
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void threads_have_their_times_and_reasons(void **state)
{
	struct top_choice choice = { .pid = INT32_MAX, .tid = 2 };
	struct top_samples s;
	const struct top_row *r;
	struct top_view v;

	(void)state;
	begin(&s);
	add(&s, 1, "f", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 10);
	add(&s, 1, "[read] f", FATHOM_PROFILE_WAITING, 15 * SECOND, 5);
	add(&s, 2, "[read] f", FATHOM_PROFILE_WAITING, 15 * SECOND, 7);
	add(&s, 2, "[futex] f", FATHOM_PROFILE_WAITING, 15 * SECOND, 4);
	add(&s, 2, "[futex] g", FATHOM_PROFILE_WAITING, 15 * SECOND, 5);
	add(&s, 2, "", FATHOM_PROFILE_RUNNABLE, 15 * SECOND, 3);
	top_view_make(&s, &choice, NOW, &v);
	/* One alone: sums and reasons are its, the list of threads is whole. */
	assert_int_equal(v.running, 0);
	assert_int_equal(v.waited, 16);
	assert_int_equal(v.ready, 3);
	assert_int_equal(v.lists[TOP_THREADS].n, 2);
	r = &v.lists[TOP_THREADS].items[1];
	assert_int_equal(r->tid, 2);
	assert_int_equal(r->waited, 16);
	assert_int_equal(r->total, 19);
	assert_string_equal(r->reason, "[futex]");
	assert_int_equal(row_of(&v, TOP_WAITS, "[futex]")->self, 9);
	assert_int_equal(row_of(&v, TOP_WAITS, "[waits for a processor]")->self, 3);
	top_view_deinit(&v);
	choice.pid = choice.tid = 0;
	top_view_make(&s, &choice, NOW, &v);
	r = row_of(&v, TOP_WAITS, "[read]");
	assert_int_equal(r->self, 12);
	assert_int_equal(r->n_threads, 2);
	assert_int_equal(v.lists[TOP_FUNCTIONS].n, 1);
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

/* Asserts that row @i of the paths is so. */
static void assert_path(const struct top_view *v, size_t i, const char *name, uint32_t depth,
			uint64_t self, uint64_t total)
{
	const struct top_row *r = &v->lists[TOP_PATHS].items[i];

	assert_true(i < v->lists[TOP_PATHS].n);
	assert_string_equal(r->name, name);
	assert_int_equal(r->depth, depth);
	assert_int_equal(r->self, self);
	assert_int_equal(r->total, total);
}

static void paths_lead_up_and_down(void **state)
{
	struct top_choice choice = { .module = "/jit", .key = "f" };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	add(&s, 1, "x f a main", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 60);
	add(&s, 1, "f b main", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 30);
	add(&s, 1, "y f a main", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 10);
	add(&s, 1, "z main", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 1000);
	top_view_make(&s, &choice, NOW, &v);
	assert_path(&v, 0, "f", 0, 0, 100);
	assert_path(&v, 1, "a", 1, 0, 70);
	assert_path(&v, 2, "main", 2, 70, 70);
	assert_path(&v, 3, "b", 1, 0, 30);
	assert_path(&v, 4, "main", 2, 30, 30);
	assert_int_equal(v.lists[TOP_PATHS].n, 5);
	top_view_deinit(&v);
	choice.is_down = true;
	top_view_make(&s, &choice, NOW, &v);
	assert_path(&v, 0, "f", 0, 30, 100);
	assert_path(&v, 1, "x", 1, 60, 60);
	assert_path(&v, 2, "y", 1, 10, 10);
	assert_int_equal(v.lists[TOP_PATHS].n, 3);
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void near_samples_are_one_entry(void **state)
{
	const struct top_choice choice = { 0 };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	for (uint64_t i = 0; i < 100000; i++)
		add(&s, (int32_t)(i % 2), "f", FATHOM_PROFILE_SAMPLED, 15 * SECOND + i * 100, 50);
	assert_int_equal(s.n_entries, 2);
	assert_int_equal(s.cells.n, 2);
	top_view_make(&s, &choice, NOW, &v);
	assert_int_equal(v.running, 5000000);
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void places_are_named_later(void **state)
{
	const struct fathom_frame outer = { .function = "outer", .linkage_name = "outer" };
	const struct fathom_frame inner = { .function = "inner(int)",
					    .linkage_name = "_Z5inneri",
					    .outer = &outer };
	const struct fathom_answer answer = { .symbol = "outer",
					      .linkage_name = "outer",
					      .frame = &inner };
	const struct top_choice choice = { 0 };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	add(&s, 1, "@1000 @2000", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 10);
	assert_int_equal(s.n_to_name, 2);
	top_view_make(&s, &choice, NOW, &v);
	assert_function(&v, "[not named yet]", 10, 10);
	assert_int_equal(v.n_unnamed, 2);
	top_view_deinit(&v);
	top_place_name(&s, 0, &answer);
	top_place_name(&s, 1, NULL);
	assert_int_equal(s.n_to_name, 0);
	top_view_make(&s, &choice, NOW, &v);
	assert_function(&v, "inner(int)", 10, 10);
	assert_function(&v, "outer", 0, 10);
	assert_function(&v, "??", 0, 10);
	assert_string_equal(row_of(&v, TOP_FUNCTIONS, "inner(int)")->linkage_name, "_Z5inneri");
	assert_string_equal(row_of(&v, TOP_FUNCTIONS, "??")->module, "/bin/file");
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void the_window_stays_when_all_else_is_forgotten(void **state)
{
	struct top_choice choice = { 0 };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	for (uint64_t i = 0; i < 1000; i++) {
		char stack[32];

		(void)snprintf(stack, sizeof stack, "old%llu main", (unsigned long long)i);
		add(&s, 1, stack, FATHOM_PROFILE_SAMPLED, 5 * SECOND, 10);
	}
	add(&s, 1, "@1000 @2000 main", FATHOM_PROFILE_SAMPLED, 15 * SECOND, 10);
	add(&s, 2, "[read] main", FATHOM_PROFILE_WAITING, 16 * SECOND, 20);
	top_place_name(&s, (uint32_t)s.places.n - 3, NULL);
	assert_true(s.cells.n > 1000 && s.functions.n > 1000 && s.n_to_name == 1);
	top_samples_forget(&s);
	assert_int_equal(s.cells.n, 2);
	assert_int_equal(s.threads.n, 2);
	assert_int_equal(s.n_to_name, 1);
	assert_int_equal(s.generation, 1);
	assert_true(s.functions.n < 12);
	top_view_make(&s, &choice, NOW, &v);
	assert_int_equal(v.running, 10);
	assert_int_equal(v.waited, 20);
	assert_function(&v, "main", 0, 10);
	assert_function(&v, "??", 10, 10);
	assert_function(&v, "[not named yet]", 0, 10);
	assert_int_equal(row_of(&v, TOP_WAITS, "[read]")->self, 20);
	top_view_deinit(&v);
	/* Sums of all begin anew. */
	choice.is_all = true;
	top_view_make(&s, &choice, NOW, &v);
	assert_int_equal(v.running + v.waited, 0);
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void a_window_that_fills_the_tables_is_cut(void **state)
{
	const struct top_choice choice = { 0 };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	/* One cell for eight seconds, then so many in a short time that not all have room. */
	for (uint64_t i = 1; i <= 8000; i++)
		add(&s, 1, "", FATHOM_PROFILE_SAMPLED, 11 * SECOND + i * 1000000, 1000);
	for (uint64_t i = 1; !top_samples_is_full(&s); i++) {
		char stack[32];

		(void)snprintf(stack, sizeof stack, "f%llu", (unsigned long long)i);
		add(&s, 1, stack, FATHOM_PROFILE_SAMPLED, 19 * SECOND + i * 1000, 1000);
	}
	assert_int_equal(s.whole_from, 0);
	top_samples_forget(&s);
	assert_false(top_samples_is_full(&s));
	assert_true(s.cells.n > 1 << 14 && s.cells.n <= 1 << 15);
	assert_true(s.whole_from > 19 * SECOND && s.whole_from < NOW);
	/* The span is that of which all is known. */
	top_view_make(&s, &choice, NOW, &v);
	assert_int_equal(v.span_ns, NOW - s.whole_from);
	assert_int_equal(v.running, s.n_entries * 1000);
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void the_span_is_whole_without_early_samples(void **state)
{
	const struct top_choice choice = { 0 };
	struct top_samples s;
	struct top_view v;

	(void)state;
	begin(&s);
	add(&s, 1, "f", FATHOM_PROFILE_SAMPLED, 5 * SECOND, 10);
	add(&s, 1, "f", FATHOM_PROFILE_SAMPLED, 19 * SECOND, 10);
	/* The first one was too old, and nothing else is unknown. */
	assert_int_equal(s.first_entry, 1);
	top_view_make(&s, &choice, NOW, &v);
	assert_int_equal(v.span_ns, 10 * SECOND);
	top_view_deinit(&v);
	top_samples_deinit(&s);
}

static void the_first_thread_names_its_process(void **state)
{
	struct fathom_profile_thread t = {
		.pid = INT32_MAX, .tid = INT32_MAX, .name = "sh", .process = "sh", .cgroup = ""
	};
	const struct fathom_record_sample sample = { .thread = &t, .ns = NOW, .weight = 1 };
	struct top_samples s;

	(void)state;
	begin(&s);
	top_samples_add(&s, &sample);
	assert_string_equal(s.threads.items[0].process, "sh");
	/* It has called exec(). */
	t.name = t.process = "cat";
	top_samples_add(&s, &sample);
	assert_int_equal(s.threads.n, 1);
	assert_string_equal(s.threads.items[0].process, "cat");
	top_samples_deinit(&s);
}

static void a_function_of_a_newer_file_is_found_first(void **state)
{
	const struct fathom_profile_module newer = { .path = "/jit",
						     .kind = FATHOM_PROFILE_MODULE_JIT,
						     .file_size = 2 };
	struct fathom_record_frame frame = { .module = &jit, .name = "f" };
	const struct fathom_profile_thread t = {
		.pid = INT32_MAX, .tid = 1, .name = "t", .process = "p", .cgroup = ""
	};
	const struct fathom_record_sample sample = {
		.thread = &t, .frames = &frame, .n_frames = 1, .ns = NOW, .weight = 1
	};
	struct top_samples s;

	(void)state;
	begin(&s);
	top_samples_add(&s, &sample);
	frame.module = &newer;
	top_samples_add(&s, &sample);
	assert_int_equal(s.modules.n, 2);
	assert_int_equal(s.functions.items[top_function_find(&s, "/jit", "f")].module, 1);
	top_samples_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_summed_up),
		cmocka_unit_test(waits_are_of_functions_if_that_is_wanted),
		cmocka_unit_test(the_window_cuts_what_is_longer),
		cmocka_unit_test(threads_have_their_times_and_reasons),
		cmocka_unit_test(paths_lead_up_and_down),
		cmocka_unit_test(near_samples_are_one_entry),
		cmocka_unit_test(places_are_named_later),
		cmocka_unit_test(the_window_stays_when_all_else_is_forgotten),
		cmocka_unit_test(a_window_that_fills_the_tables_is_cut),
		cmocka_unit_test(the_span_is_whole_without_early_samples),
		cmocka_unit_test(the_first_thread_names_its_process),
		cmocka_unit_test(a_function_of_a_newer_file_is_found_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
