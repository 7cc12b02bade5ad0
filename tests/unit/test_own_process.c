/* SPDX-License-Identifier: MIT */
/* The calling process as a target, also after fork(). */
#include "unit.h"

#include <fathom/fathom.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/space/user/space.h"

static int known_number = 42;

int known_code(int i);

__attribute__((noinline)) int known_code(int i)
{
	return i * 3 + known_number;
}

/* Asks @t for both by all verbs; returns how many answers are right. */
static int ask(struct fathom_target *t)
{
	const struct fathom_pc pc = { .address = (uintptr_t)known_code };
	const char *const names[] = { "known_code", "known_number" };
	const struct fathom_answer *answer;
	struct fathom_matches *matches;
	struct fathom_disasm *code;
	struct fathom_value value;
	int right = 0;

	if (!fathom_lookup(t, pc, NULL, &answer, NULL)) {
		right += answer->symbol && !strcmp(answer->symbol, names[0]);
		fathom_answer_free(answer);
	}
	if (!fathom_find(t, NULL, names, 2, &matches, NULL)) {
		right += fathom_matches_get(matches, 0)->address == (uintptr_t)known_code;
		right += fathom_matches_get(matches, 1)->address == (uintptr_t)&known_number;
		fathom_matches_free(matches);
	}
	if (!fathom_disassemble(t, NULL, pc.address, pc.address + 16, &code, NULL)) {
		right += !strcmp(fathom_disasm_get(code, 0)->frame->function, names[0]);
		fathom_disasm_free(code);
	}
	if (!fathom_value_read(t, "i32", (uintptr_t)&known_number, &value, NULL)) {
		right += value.count == 1 && *(const int64_t *)value.items == known_number;
		fathom_value_free(&value);
	}
	return right;
}

static void all_verbs(void **state)
{
	struct fathom_target_info info;
	struct fathom_target *t;
	struct fathom *session;
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(fathom_create(NULL, &session, NULL), FATHOM_OK);
	assert_int_equal(fathom_target_open_self(session, NULL, &t, NULL), FATHOM_OK);
	fathom_target_get_info(t, &info);
	assert_int_equal(info.kind, FATHOM_TARGET_SELF);
	assert_int_equal(info.pid, getpid());
	assert_int_equal(ask(t), 5);
	child = fork();
	if (!child) {
		known_number = 7; /* of the child alone */
		_exit(ask(t));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 5);
	fathom_target_release(t);
	fathom_destroy(session);
}

static void *describe_from_thread(void *data)
{
	struct fathom_space_facts *facts = data;
	struct fathom_target *t;
	struct fathom *session;

	assert_int_equal(prctl(PR_SET_NAME, "a thread"), 0);
	assert_int_equal(fathom_create(NULL, &session, NULL), FATHOM_OK);
	assert_int_equal(fathom_target_open_self(session, NULL, &t, NULL), FATHOM_OK);
	fathom_space_describe((const struct fathom_space *)t, facts);
	fathom_target_release(t);
	fathom_destroy(session);
	return NULL;
}

/* The command is the process's, whichever thread asks. */
static void command_of_the_process(void **state)
{
	struct fathom_space_facts facts;
	pthread_t thread;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "the program"), 0);
	assert_int_equal(pthread_create(&thread, NULL, describe_from_thread, &facts), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(facts.command, "the program");
	assert_int_equal(facts.pid, getpid());
	assert_int_equal(facts.uid, -1);
}

static void user_of_a_live_process_is_unknown(void **state)
{
	struct fathom_space_facts facts;
	struct fathom_target *t;
	struct fathom *session;

	(void)state;
	assert_int_equal(fathom_create(NULL, &session, NULL), FATHOM_OK);
	assert_int_equal(fathom_target_open_process(session, getpid(), NULL, &t, NULL), FATHOM_OK);
	fathom_space_describe((const struct fathom_space *)t, &facts);
	assert_int_equal(facts.uid, -1);
	assert_true(facts.entry != 0 && facts.entry == getauxval(AT_ENTRY));
	fathom_target_release(t);
	fathom_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_verbs),
					    cmocka_unit_test(command_of_the_process),
					    cmocka_unit_test(user_of_a_live_process_is_unknown) };

	return cmocka_run_group_tests_name("own_process", tests, NULL, NULL);
}
