/* SPDX-License-Identifier: MIT */
/*
 * Files that are truncated while a program has them open through the library, with a handler of
 * SIGBUS that asks the session first; and the table that the handler searches.
 */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fathom/compat.h"
#include "fathom/fathom.h"
#include "host/base/mapping.h"
#include "host/base/pool.h"
#include "host/symbolize/batch.h"
#include "host/space/target.h"

#define PAGE 4096u

static _Atomic(struct fathom *) reading;
static _Atomic(struct fathom_mapped_table *) searched;
static _Atomic unsigned faults;

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	struct fathom *session = atomic_load(&reading);
	struct fathom_mapped_table *t = atomic_load(&searched);

	(void)number;
	(void)context;
	atomic_fetch_add(&faults, 1);
	if (!(session && fathom_handle_sigbus(session, info->si_addr)) &&
	    !(t && fathom_mapped_cut(t, (uintptr_t)info->si_addr)))
		_exit(99);
}

/* Called in each test: cmocka installs its own handler before. */
static void install(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error };

	action.sa_flags = (int)SA_SIGINFO;
	assert_int_equal(sigaction(SIGBUS, &action, NULL), 0);
	atomic_store(&faults, 0);
}

/* A copy of the command, which has debug information. */
static char path[4096];

static int copy_victim(void **state)
{
	const char *build = getenv("BUILD");
	char command[4 * sizeof path];

	(void)state;
	(void)snprintf(path, sizeof path, "%s/mapped-victim", build ? build : ".");
	(void)snprintf(command, sizeof command, "cp '%s/fathom' '%s' && rm -rf '%s.cache'",
		       build ? build : ".", path, path);
	return system(command);
}

static int remove_victim(void **state)
{
	char command[5 * sizeof path];

	(void)state;
	(void)snprintf(command, sizeof command, "rm -rf '%s' '%s.cache'", path, path);
	return system(command);
}

static struct fathom *open_victim(const struct fathom_options *options,
				  struct fathom_target **ret_target)
{
	struct fathom *session;

	assert_int_equal(fathom_create(options, &session, NULL), 0);
	assert_int_equal(fathom_target_open_file(session, path, NULL, ret_target, NULL), 0);
	atomic_store(&reading, session);
	install();
	return session;
}

static void close_victim(struct fathom *session, struct fathom_target *target)
{
	atomic_store(&reading, NULL);
	fathom_target_release(target);
	fathom_destroy(session);
}

static const struct fathom_options uncached = { .size = sizeof uncached,
						.flags = FATHOM_NO_CACHE,
						.threads = 4 };

static void every_call_says_that_the_file_changed(void **state)
{
	const char *const query = "main";
	struct fathom_target *target;
	struct fathom_answers *answers;
	struct fathom_matches *matches;
	struct fathom_disasm *code;
	struct fathom_errinfo info = { 0 };
	struct fathom *session = open_victim(&uncached, &target);
	uint64_t address;
	uint8_t byte;
	size_t got;

	(void)state;
	assert_int_equal(fathom_target_find_symbol(target, "main", &address), 0);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(fathom_symbolize(target, NULL, &address, NULL, 1, &answers, &info),
			 FATHOM_E_CHANGED);
	assert_string_equal(info.file, path);
	assert_true(atomic_load(&faults));
	assert_int_equal(fathom_find(target, NULL, &query, 1, &matches, NULL), FATHOM_E_CHANGED);
	assert_int_equal(fathom_disassemble(target, NULL, address, address + 16, &code, NULL),
			 FATHOM_E_CHANGED);
	assert_int_equal(fathom_target_read(target, address, &byte, 1, &got, NULL),
			 FATHOM_E_CHANGED);
	assert_int_equal(fathom_target_find_symbol(target, "main", &address), FATHOM_E_CHANGED);
	assert_int_equal(fathom_target_check(target, NULL), FATHOM_E_CHANGED);
	close_victim(session, target);
}

/* Answers @address, in the whole file of @target, into @answers. */
static void answer_again(struct fathom_target *target, const uint64_t *address,
			 struct fathom_answers *answers)
{
	const struct fathom_batch_options options = { .flags = FATHOM_BATCH_COMPAT };
	struct fathom_view *view;
	struct fathom_module_group group = { .addresses = address, .n = 1 };

	assert_int_equal(target->ops->begin(target, FATHOM_VIEW_LINES, NULL, 1, &view, NULL), 0);
	group.module = view->everywhere->holder->module;
	assert_int_equal(fathom_symbolize_group(&group, &options, answers), 0);
	fathom_view_end(view);
}

static void a_withdrawn_answer_keeps_no_detail(void **state)
{
	struct fathom_answers *answers = fathom_answers_create(1, FATHOM_BATCH_COMPAT);
	struct fathom_target *target;
	struct fathom *session = open_victim(&uncached, &target);
	struct fathom_compat_name name;
	uint64_t address;

	(void)state;
	assert_non_null(answers);
	assert_int_equal(fathom_target_find_symbol(target, "main", &address), 0);
	answer_again(target, &address, answers);
	assert_string_equal(fathom_answers_get(answers, 0)->symbol, "main");
	assert_int_equal(fathom_compat_symbol_name(answers, 0, &name), 1);
	assert_string_equal(name.linkage_name, "main");
	assert_int_equal(truncate(path, 0), 0);
	answer_again(target, &address, answers);
	assert_true(atomic_load(&faults));
	assert_null(fathom_answers_get(answers, 0)->symbol);
	assert_int_equal(fathom_answers_get(answers, 0)->reason, FATHOM_REASON_CHANGED);
	assert_int_equal(fathom_compat_symbol_name(answers, 0, &name), 0);
	assert_null(fathom_compat_symbol_file(answers, 0));
	fathom_answers_free(answers);
	close_victim(session, target);
}

static void other_faults_are_not_taken(void **state)
{
	struct fathom_target *target;
	struct fathom *session = open_victim(&uncached, &target);
	static char own[PAGE];

	(void)state;
	assert_int_equal(fathom_handle_sigbus(session, own), 0);
	assert_int_equal(fathom_handle_sigbus(session, NULL), 0);
	assert_int_equal(fathom_target_check(target, NULL), 0);
	close_victim(session, target);
}

static void what_was_overwritten_is_told_apart_from_what_was_replaced(void **state)
{
	struct fathom_target *target;
	struct fathom *session = open_victim(&uncached, &target);
	struct fathom_errinfo info;
	char command[5 * sizeof path];
	struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	(void)state;
	assert_int_equal(fathom_target_check(target, NULL), 0);
	(void)snprintf(command, sizeof command, "cp '%s' '%s.new' && mv '%s.new' '%s'", path, path,
		       path, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(fathom_target_check(target, NULL), 0);
	close_victim(session, target);
	session = open_victim(&uncached, &target);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(fathom_target_check(target, &info), FATHOM_E_CHANGED);
	assert_string_equal(info.file, path);
	close_victim(session, target);
}

static char *name_of(struct fathom_target *target, uint64_t address)
{
	const struct fathom_pc pc = { .address = address };
	const struct fathom_answer *a;
	char *name;

	assert_int_equal(fathom_lookup(target, pc, NULL, &a, NULL), 0);
	name = a->symbol ? strdup(a->symbol) : NULL;
	fathom_answer_free(a);
	return name;
}

static void a_stored_index_that_was_truncated_is_not_used(void **state)
{
	struct fathom_options options = { .size = sizeof options, .threads = 1 };
	struct fathom_cache_result result;
	struct fathom_target *target;
	struct fathom *session;
	char command[5 * sizeof path];
	char dir[sizeof path + 8];
	uint64_t address;
	char *name;

	(void)state;
	(void)snprintf(dir, sizeof dir, "%s.cache", path);
	options.cache_dir = dir;
	session = open_victim(&options, &target);
	assert_int_equal(fathom_cache_store(target, true, 0, &result, NULL), 0);
	assert_true(result.complete);
	close_victim(session, target);
	session = open_victim(&options, &target);
	assert_int_equal(fathom_target_find_symbol(target, "main", &address), 0);
	/* Opening the file has read its header, but not what is needed now. */
	(void)snprintf(command, sizeof command, "truncate -s 4096 '%s'/*.fidx", dir);
	assert_int_equal(system(command), 0);
	name = name_of(target, address);
	assert_true(atomic_load(&faults));
	assert_string_equal(name, "main");
	free(name);
	close_victim(session, target);
}

static void look_at_signals(void *data, size_t task, unsigned thread)
{
	static const int ours[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE };
	static const int theirs[] = { SIGALRM, SIGTERM, SIGPROF, SIGUSR1, SIGCHLD };
	_Atomic unsigned *wrong = data;
	sigset_t blocked;

	(void)task;
	(void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		atomic_fetch_add(wrong, sigismember(&blocked, ours[i]) != 0);
	/* The first thread is the caller's. */
	for (size_t i = 0; thread && i < sizeof theirs / sizeof *theirs; i++)
		atomic_fetch_add(wrong, sigismember(&blocked, theirs[i]) != 1);
	if (!thread)
		(void)usleep(1000);
}

static void threads_block_no_signal_that_a_fault_raises(void **state)
{
	_Atomic unsigned wrong = 0;

	(void)state;
	fathom_pool_run(4, 64, look_at_signals, &wrong);
	assert_int_equal(wrong, 0);
}

/* Maps one page of its own file; if the file is empty, reading the page raises SIGBUS. */
static void *map_page(bool has_content)
{
	const int fd = memfd_create("page", MFD_CLOEXEC);
	void *page;

	if (fd < 0 || (has_content && ftruncate(fd, PAGE)))
		abort();
	page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return page;
}

#define N_FILES 1000

static void only_the_file_that_was_cut_is_marked(void **state)
{
	struct fathom_mapped_table t = { 0 };
	struct fathom_mapped *entry[N_FILES];
	void *page[N_FILES];

	(void)state;
	install();
	atomic_store(&searched, &t);
	for (size_t i = 0; i < N_FILES; i++) {
		page[i] = map_page(i != 777);
		entry[i] = fathom_mapping_add(&t, page[i], PAGE);
		assert_non_null(entry[i]);
	}
	for (size_t i = 0; i < N_FILES; i++)
		assert_int_equal(((const volatile char *)page[i])[5], 0);
	assert_int_equal(faults, 1);
	assert_int_equal(fathom_mapped_cuts(&t), 1);
	for (size_t i = 0; i < N_FILES; i++) {
		assert_int_equal(fathom_mapped_is_cut(entry[i]), i == 777);
		fathom_mapping_remove(&t, entry[i]);
		(void)munmap(page[i], PAGE);
	}
	/* A removed mapping is not found, and its slot is reused unmarked. */
	assert_false(fathom_mapped_cut(&t, (uintptr_t)page[0]));
	for (size_t i = 0; i < 4 * N_FILES; i++) {
		entry[0] = fathom_mapping_add(&t, page, PAGE);
		assert_false(fathom_mapped_is_cut(entry[0]));
		fathom_mapping_remove(&t, entry[0]);
	}
	atomic_store(&searched, NULL);
	fathom_mapping_deinit(&t);
}

struct mapper {
	struct fathom_mapped_table *table;
	unsigned seed;
	unsigned wrong;
	pthread_t id;
};

/* Maps, reads and unmaps pages, of which every other one raises SIGBUS. */
static void *run_mapper(void *arg)
{
	struct mapper *m = arg;

	for (int i = 0; i < 3000; i++) {
		const bool has_content = rand_r(&m->seed) % 2;
		void *page = map_page(has_content);
		struct fathom_mapped *entry = fathom_mapping_add(m->table, page, PAGE);

		m->wrong += ((const volatile char *)page)[(unsigned)rand_r(&m->seed) % PAGE] != 0;
		m->wrong += fathom_mapped_is_cut(entry) == has_content;
		fathom_mapping_remove(m->table, entry);
		(void)munmap(page, PAGE);
	}
	return NULL;
}

static void threads_find_their_own_files(void **state)
{
	struct fathom_mapped_table t = { 0 };
	struct mapper mappers[4];

	(void)state;
	install();
	atomic_store(&searched, &t);
	for (unsigned i = 0; i < 4; i++) {
		mappers[i] = (struct mapper){ .table = &t, .seed = i + 1 };
		assert_int_equal(pthread_create(&mappers[i].id, NULL, run_mapper, &mappers[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		(void)pthread_join(mappers[i].id, NULL);
		assert_int_equal(mappers[i].wrong, 0);
	}
	assert_int_equal(t.used, 0);
	atomic_store(&searched, NULL);
	fathom_mapping_deinit(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_call_says_that_the_file_changed, copy_victim,
						remove_victim),
		cmocka_unit_test_setup_teardown(a_withdrawn_answer_keeps_no_detail, copy_victim,
						remove_victim),
		cmocka_unit_test_setup_teardown(other_faults_are_not_taken, copy_victim,
						remove_victim),
		cmocka_unit_test_setup_teardown(
			what_was_overwritten_is_told_apart_from_what_was_replaced, copy_victim,
			remove_victim),
		cmocka_unit_test_setup_teardown(a_stored_index_that_was_truncated_is_not_used,
						copy_victim, remove_victim),
		cmocka_unit_test(threads_block_no_signal_that_a_fault_raises),
		cmocka_unit_test(only_the_file_that_was_cut_is_marked),
		cmocka_unit_test(threads_find_their_own_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
