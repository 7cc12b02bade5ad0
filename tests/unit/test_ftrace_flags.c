/* SPDX-License-Identifier: MIT */
/*
 * The stack of a new program, as the kernel makes it: flags are taken out of it, or, by what the
 * auxiliary vector says, left.
 */
#include "unit.h"

#include "trace/ftrace_flags.h"

/* Entries of the auxiliary vector, by their numbers in Linux (include/uapi/linux/auxvec.h). */
enum { PAGESZ = 6, UID = 11, EUID = 12, GID = 13, EGID = 14, SECURE = 23 };

/* argc, four arguments, NULL; two variables, NULL; six pairs, the end. */
struct stack {
	long words[1 + 5 + 3 + 14];
};

static char program[] = "program", ftrace[] = "--ftrace=x", strace[] = "----strace",
	    word[] = "word";
static char variable[] = "A=1", other[] = "B=2";

static struct stack make(long uid, long euid, long gid, long egid, long secure)
{
	return (struct stack){ { 4,
				 (long)program,
				 (long)ftrace,
				 (long)strace,
				 (long)word,
				 0,
				 (long)variable,
				 (long)other,
				 0,
				 PAGESZ,
				 4096,
				 UID,
				 uid,
				 EUID,
				 euid,
				 GID,
				 gid,
				 EGID,
				 egid,
				 SECURE,
				 secure,
				 0,
				 0 } };
}

static void flags_are_taken_from_a_program_of_its_user(void **state)
{
	struct stack s = make(1000, 1000, 100, 100, 0);
	long *at = fathom_trace_take_from_stack(s.words);

	(void)state;
	assert_int_equal(at[0], 3);
	assert_string_equal((char *)at[2], "--strace");
	assert_string_equal((char *)at[3], "word");
	assert_int_equal(at[4], 0);
	assert_string_equal((char *)at[6], "B=2");
	assert_int_equal(at[7], 0);
	assert_int_equal(at[8], PAGESZ);
	assert_true(fathom_trace_requested.wants_functions);
	assert_string_equal(fathom_trace_requested.options, "x");
}

static void flags_stay_where_a_program_has_more_rights(void **state)
{
	const struct stack stacks[] = { make(1000, 1000, 100, 100, 1), make(1000, 0, 100, 100, 0),
					make(1000, 1000, 100, 0, 0), make(0, 1000, 0, 100, 0) };

	(void)state;
	for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
		struct stack s = stacks[i];

		fathom_trace_requested = (struct fathom_trace_request){ 0 };
		assert_ptr_equal(fathom_trace_take_from_stack(s.words), s.words);
		assert_memory_equal(&s, &stacks[i], sizeof s);
		assert_true(fathom_trace_requested.has_entered);
		assert_false(fathom_trace_requested.wants_functions ||
			     fathom_trace_requested.wants_syscalls ||
			     fathom_trace_requested.options);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_are_taken_from_a_program_of_its_user),
		cmocka_unit_test(flags_stay_where_a_program_has_more_rights),
	};

	return cmocka_run_group_tests_name("ftrace_flags", tests, NULL, NULL);
}
