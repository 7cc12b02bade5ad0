/* SPDX-License-Identifier: MIT */
/* Promises of the public headers that no other test covers. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fathom/compat.h"
#include "fathom/fathom.h"

static struct fathom *new_session(void)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	struct fathom *session;

	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	return session;
}

static void options_that_are_not_known_are_refused(void **state)
{
	struct {
		struct fathom_options options;
		uint64_t newer;
	} larger = { .options = { .size = sizeof larger } };
	struct fathom_options options = { .size = sizeof options };
	struct fathom *session;

	(void)state;
	/* Fields of a newer header are allowed as long as they are zero. */
	assert_int_equal(fathom_create(&larger.options, &session, NULL), 0);
	fathom_destroy(session);
	larger.newer = 1;
	assert_int_equal(fathom_create(&larger.options, &session, NULL), FATHOM_E_ARGUMENT);
	options.reserved[2] = 1;
	assert_int_equal(fathom_create(&options, &session, NULL), FATHOM_E_ARGUMENT);
	options.reserved[2] = 0;
	options.flags = 1u << 31;
	assert_int_equal(fathom_create(&options, &session, NULL), FATHOM_E_ARGUMENT);
	options = (struct fathom_options){ .size = 2 };
	assert_int_equal(fathom_create(&options, &session, NULL), FATHOM_E_ARGUMENT);
	/* An older header's struct is shorter. */
	options = (struct fathom_options){ .size = offsetof(struct fathom_options, cache_dir) };
	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	fathom_destroy(session);
}

struct refusal {
	const char *path;
	fathom_err err;
	int os_errno;
	const char *what;
};

static void files_that_cannot_be_read_say_why(void **state)
{
	static const struct refusal refusals[] = {
		{ "/nonexistent/file", FATHOM_E_OS, ENOENT, "No such file or directory" },
		{ "/", FATHOM_E_FORMAT, 0, "is a directory" },
		{ "/dev/null", FATHOM_E_FORMAT, 0, "is not a regular file" },
		{ "/etc/os-release", FATHOM_E_FORMAT, 0, "not an ELF file" },
	};
	struct fathom *session = new_session();
	struct fathom_target *target;
	struct fathom_errinfo info;

	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		assert_int_equal(
			fathom_target_open_file(session, refusals[i].path, NULL, &target, &info),
			refusals[i].err);
		assert_int_equal(info.err, refusals[i].err);
		assert_int_equal(info.os_errno, refusals[i].os_errno);
		assert_string_equal(info.what, refusals[i].what);
		assert_string_equal(info.file, refusals[i].path);
	}
	fathom_destroy(session);
}

static size_t count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static struct fathom_target *open_shell(struct fathom *session)
{
	struct fathom_target *target;

	assert_int_equal(fathom_target_open_file(session, "/bin/sh", NULL, &target, NULL), 0);
	return target;
}

static void no_descriptor_stays_open(void **state)
{
	const size_t before = count_descriptors();
	struct fathom *session = new_session();
	struct fathom_target *target;
	struct fathom_answers *answers;
	const uint64_t address = 0x1000;

	(void)state;
	target = open_shell(session);
	assert_int_equal(fathom_symbolize(target, NULL, &address, NULL, 1, &answers, NULL), 0);
	assert_int_equal(count_descriptors(), before);
	fathom_answers_free(answers);
	fathom_target_release(target);
	fathom_destroy(session);
}

/* gcc embeds no texts; those of a process are not searched. */
static void sources_that_are_not_embedded_are_not_found(void **state)
{
	struct fathom *session = new_session();
	struct fathom_target *targets[2] = { open_shell(session), NULL };
	const char *text = "untouched";
	size_t size = 9;

	(void)state;
	assert_int_equal(fathom_target_open_process(session, getpid(), NULL, &targets[1], NULL), 0);
	for (size_t i = 0; i < 2; i++) {
		struct fathom_errinfo info = { 0 };

		assert_int_equal(
			fathom_target_source(targets[i], 0x1000, "/src/sh.c", &text, &size, &info),
			FATHOM_E_NOT_FOUND);
		assert_int_equal(info.err, FATHOM_E_NOT_FOUND);
		assert_string_equal(text, "untouched");
		assert_int_equal(size, 9);
		fathom_target_release(targets[i]);
	}
	fathom_destroy(session);
}

static void options_of_a_batch_may_be_those_of_another_version(void **state)
{
	struct {
		struct fathom_symbolize_options options;
		uint64_t newer;
	} larger = { .options = { .size = sizeof larger, .flags = FATHOM_NAMES_ONLY } };
	const struct fathom_symbolize_options older = {
		.size = offsetof(struct fathom_symbolize_options, reserved)
	};
	struct fathom_symbolize_options options = { .size = sizeof options };
	struct fathom *session = new_session();
	struct fathom_target *target;
	struct fathom_answers *answers;

	(void)state;
	target = open_shell(session);
	assert_int_equal(fathom_symbolize(target, &larger.options, NULL, NULL, 0, &answers, NULL),
			 0);
	fathom_answers_free(answers);
	assert_int_equal(fathom_symbolize(target, &older, NULL, NULL, 0, &answers, NULL), 0);
	fathom_answers_free(answers);
	larger.newer = 1;
	assert_int_equal(fathom_symbolize(target, &larger.options, NULL, NULL, 0, &answers, NULL),
			 FATHOM_E_ARGUMENT);
	options.reserved[3] = 1;
	assert_int_equal(fathom_symbolize(target, &options, NULL, NULL, 0, &answers, NULL),
			 FATHOM_E_ARGUMENT);
	fathom_target_release(target);
	fathom_destroy(session);
}

static void a_batch_may_be_empty_and_an_address_anything(void **state)
{
	const uint64_t addresses[] = { 0, UINT64_MAX, 0, UINT64_C(1) << 63 };
	struct fathom_symbolize_options options = { .size = sizeof options };
	struct fathom *session = new_session();
	struct fathom_target *target;
	struct fathom_answers *answers;

	(void)state;
	target = open_shell(session);
	assert_int_equal(fathom_symbolize(target, NULL, NULL, NULL, 0, &answers, NULL), 0);
	assert_int_equal(fathom_answers_count(answers), 0);
	fathom_answers_free(answers);
	for (options.flags = 0; options.flags < 8; options.flags++) {
		assert_int_equal(
			fathom_symbolize(target, &options, addresses, NULL, 4, &answers, NULL), 0);
		assert_int_equal(fathom_answers_count(answers), 4);
		for (size_t i = 0; i < 4; i++) {
			const struct fathom_answer *a = fathom_answers_get(answers, i);

			assert_true(a->pc.address == addresses[i]);
			assert_true(a->symbol || a->reason);
		}
		assert_int_equal(fathom_answers_get(answers, 1)->reason, FATHOM_REASON_UNMAPPED);
		fathom_answers_free(answers);
	}
	options.flags = 1u << 31;
	assert_int_equal(fathom_symbolize(target, &options, addresses, NULL, 4, &answers, NULL),
			 FATHOM_E_ARGUMENT);
	fathom_target_release(target);
	fathom_destroy(session);
}

static void a_return_address_is_looked_up_in_its_call(void **state)
{
	const struct fathom_pc exact = { .address = 0x1000 };
	const struct fathom_pc back = { .address = 0x1000, .kind = FATHOM_PC_RETURN };
	const struct fathom_pc none = { .kind = FATHOM_PC_RETURN };

	(void)state;
	assert_true(fathom_pc_lookup(exact) == 0x1000);
	assert_true(fathom_pc_lookup(back) == 0xfff);
	assert_true(fathom_pc_lookup(none) == 0);
}

/* A function that the compiler keeps, at its symbol. */
__attribute__((noinline)) int asked_about(int value);
int asked_about(int value)
{
	return value * 3;
}

static void each_address_of_a_batch_has_its_kind(void **state)
{
	uint8_t kinds[] = { FATHOM_PC_EXACT, FATHOM_PC_RETURN, FATHOM_PC_EXACT };
	struct fathom *session = new_session();
	struct fathom_target *target;
	struct fathom_answers *answers;
	const struct fathom_answer *a;
	uint64_t addresses[3];
	uint64_t size;

	(void)state;
	assert_int_equal(asked_about(2), 6);
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &target, NULL),
			 0);
	assert_int_equal(fathom_target_find_symbol(target, "asked_about", &addresses[0]), 0);
	assert_int_equal(fathom_symbolize(target, NULL, addresses, NULL, 1, &answers, NULL), 0);
	size = fathom_answers_get(answers, 0)->size;
	fathom_answers_free(answers);
	addresses[1] = addresses[2] = addresses[0] + size;
	assert_int_equal(fathom_symbolize(target, NULL, addresses, kinds, 3, &answers, NULL), 0);
	a = fathom_answers_get(answers, 1);
	assert_string_equal(a->symbol, "asked_about");
	assert_int_equal(a->symbol_size, strlen("asked_about"));
	assert_true(a->pc.address == addresses[1] && a->pc.kind == FATHOM_PC_RETURN);
	assert_true(a->offset == size && a->module_address == addresses[1]);
	a = fathom_answers_get(answers, 2);
	assert_int_equal(a->pc.kind, FATHOM_PC_EXACT);
	assert_true(!a->symbol || strcmp(a->symbol, "asked_about") != 0);
	fathom_answers_free(answers);
	kinds[2] = 2;
	assert_int_equal(fathom_symbolize(target, NULL, addresses, kinds, 3, &answers, NULL),
			 FATHOM_E_ARGUMENT);
	fathom_target_release(target);
	fathom_destroy(session);
}

static void one_address_is_a_call_of_its_own(void **state)
{
	struct fathom_pc pc = { .kind = FATHOM_PC_EXACT };
	struct fathom *session = new_session();
	struct fathom_target *target;
	const struct fathom_answer *a;

	(void)state;
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &target, NULL),
			 0);
	assert_int_equal(fathom_target_find_symbol(target, "asked_about", &pc.address), 0);
	assert_int_equal(fathom_lookup(target, pc, NULL, &a, NULL), 0);
	assert_string_equal(a->symbol, "asked_about");
	assert_string_equal(a->module->path, "/proc/self/exe");
	assert_non_null(a->frame);
	assert_string_equal(a->frame->function, "asked_about");
	assert_int_equal(a->frame->file_size, strlen(a->frame->file));
	assert_null(a->frame->outer);
	fathom_answer_free(a);
	fathom_answer_free(NULL);
	pc.address = 1;
	assert_int_equal(fathom_lookup(target, pc, NULL, &a, NULL), 0);
	assert_null(a->symbol);
	assert_null(a->frame);
	fathom_answer_free(a);
	fathom_target_release(target);
	fathom_destroy(session);
}

static void answers_are_an_array_with_a_stride(void **state)
{
	const uint64_t addresses[] = { 1, 2, 3 };
	struct fathom *session = new_session();
	struct fathom_target *target = open_shell(session);
	struct fathom_answers *answers;
	const char *first;
	size_t stride;

	(void)state;
	assert_int_equal(fathom_symbolize(target, NULL, addresses, NULL, 3, &answers, NULL), 0);
	first = (const char *)fathom_answers_array(answers, &stride);
	for (size_t i = 0; i < 3; i++)
		assert_ptr_equal(first + i * stride, fathom_answers_get(answers, i));
	fathom_answers_free(answers);
	fathom_target_release(target);
	fathom_destroy(session);
}

/* Returns whether two frames, which are different objects, are equal text by text. */
static bool are_twins(const struct fathom_frame *a, const struct fathom_frame *b)
{
	return a != b && a->outer == b->outer && a->start == b->start && a->line == b->line &&
	       a->column == b->column && a->discriminator == b->discriminator &&
	       a->function_size == b->function_size && a->file_size == b->file_size &&
	       (!a->function || strcmp(a->function, b->function) == 0) &&
	       (!a->file || strcmp(a->file, b->file) == 0);
}

#define N_FRAMED 4000

static void identical_frames_are_one_object(void **state)
{
	const struct fathom_options wanted = { .size = sizeof wanted,
					       .flags = FATHOM_NO_CACHE,
					       .threads = 4 };
	static uint64_t addresses[N_FRAMED];
	struct fathom *session;
	struct fathom_target *target;
	struct fathom_answers *answers;
	size_t shared = 0;

	(void)state;
	assert_int_equal(fathom_create(&wanted, &session, NULL), 0);
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &target, NULL),
			 0);
	assert_int_equal(fathom_target_section_address(target, ".text", 0, addresses), 0);
	/* Asks each address twice, far from each other. */
	for (size_t i = 1; i < N_FRAMED; i++)
		addresses[i] = addresses[0] + i % (N_FRAMED / 2);
	assert_int_equal(fathom_symbolize(target, NULL, addresses, NULL, N_FRAMED, &answers, NULL),
			 0);
	for (size_t i = 0; i < N_FRAMED; i++)
		for (size_t k = i + 1; k < N_FRAMED; k++) {
			const struct fathom_frame *a = fathom_answers_get(answers, i)->frame;
			const struct fathom_frame *b = fathom_answers_get(answers, k)->frame;

			if (!a || !b)
				continue;
			assert_false(are_twins(a, b));
			shared += a == b;
		}
	assert_true(shared > N_FRAMED / 4);
	fathom_answers_free(answers);
	fathom_target_release(target);
	fathom_destroy(session);
}

/* What is opened in a session keeps it: run under a sanitizer or valgrind, too. */
static void a_session_and_its_targets_are_released_in_any_order(void **state)
{
	struct fathom *session = new_session();
	struct fathom_target *file;
	struct fathom_target *process;
	struct fathom_self *self;
	const struct fathom_answer *a;
	struct fathom_pc pc = { .address = (uintptr_t)asked_about };
	char buffer[FATHOM_SELF_BUFFER];

	(void)state;
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &file, NULL), 0);
	assert_int_equal(fathom_target_open_process(session, getpid(), NULL, &process, NULL), 0);
	assert_int_equal(fathom_self_prepare(session, NULL, &self, NULL), 0);
	fathom_destroy(session);
	assert_int_equal(fathom_lookup(process, pc, NULL, &a, NULL), 0);
	assert_string_equal(a->symbol, "asked_about");
	fathom_answer_free(a);
	fathom_target_release(process);
	assert_string_equal(fathom_self_lookup(self, pc, 0, buffer, sizeof buffer)->symbol,
			    "asked_about");
	fathom_self_destroy(self);
	assert_int_equal(fathom_target_find_symbol(file, "asked_about", &pc.address), 0);
	fathom_target_release(file);
}

static void options_of_opening_are_copied_and_checked(void **state)
{
	char dir[] = "/nonexistent";
	const char *dirs[] = { dir, NULL };
	struct fathom_target_options where = { .size = sizeof where, .debug_dirs = dirs };
	struct fathom *session = new_session();
	struct fathom_target *target;

	(void)state;
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", &where, &target, NULL),
			 0);
	memset(dir, 0, sizeof dir);
	fathom_target_release(target);
	where.flags = UINT32_C(1) << 31;
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", &where, &target, NULL),
			 FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_target_open_process(session, getpid(), &where, &target, NULL),
			 FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_target_open_kernel(session, &where, &target, NULL),
			 FATHOM_E_ARGUMENT);
	fathom_destroy(session);
}

static void notes_that_are_not_there_are_null(void **state)
{
	struct fathom *session = new_session();
	struct fathom_target *target;

	(void)state;
	target = open_shell(session);
	assert_null(fathom_target_note(target, 0));
	assert_null(fathom_target_note(target, SIZE_MAX));
	fathom_target_release(fathom_target_acquire(target));
	fathom_target_release(target);
	fathom_target_release(NULL);
	fathom_destroy(session);
	fathom_destroy(NULL);
}

/* A stored index that others could have written is not read. */
static void an_index_that_others_can_write_is_not_read(void **state)
{
	char dir[] = "/tmp/fathom-test-XXXXXX";
	struct fathom_options options = { .size = sizeof options, .cache_dir = dir };
	struct fathom_cache_result result;
	struct fathom_target *target;
	struct fathom *session;
	struct dirent *entry;
	char path[512] = "";
	DIR *listing;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int round = 0; round < 3; round++) {
		assert_int_equal(fathom_create(&options, &session, NULL), 0);
		target = open_shell(session);
		assert_int_equal(fathom_cache_store(target, true, 0, &result, NULL), 0);
		/* Round 1 finds the index of round 0; round 2 must not. */
		assert_int_equal(result.file_size == 0, round == 1);
		fathom_target_release(target);
		fathom_destroy(session);
		listing = opendir(dir);
		while ((entry = readdir(listing)) != NULL)
			if (entry->d_name[0] != '.')
				(void)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		(void)closedir(listing);
		assert_int_equal(chmod(path, round == 0 ? 0600 : 0622), 0);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_that_are_not_known_are_refused),
		cmocka_unit_test(files_that_cannot_be_read_say_why),
		cmocka_unit_test(no_descriptor_stays_open),
		cmocka_unit_test(sources_that_are_not_embedded_are_not_found),
		cmocka_unit_test(options_of_a_batch_may_be_those_of_another_version),
		cmocka_unit_test(a_batch_may_be_empty_and_an_address_anything),
		cmocka_unit_test(a_return_address_is_looked_up_in_its_call),
		cmocka_unit_test(each_address_of_a_batch_has_its_kind),
		cmocka_unit_test(one_address_is_a_call_of_its_own),
		cmocka_unit_test(answers_are_an_array_with_a_stride),
		cmocka_unit_test(identical_frames_are_one_object),
		cmocka_unit_test(a_session_and_its_targets_are_released_in_any_order),
		cmocka_unit_test(options_of_opening_are_copied_and_checked),
		cmocka_unit_test(notes_that_are_not_there_are_null),
		cmocka_unit_test(an_index_that_others_can_write_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
