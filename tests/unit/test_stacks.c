/* SPDX-License-Identifier: MIT */
/* Stacks by the public calls, of a child whose functions are known. */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fathom/fathom.h>

/*
 * The calls that the child is asleep in: its own function, called by level() five times, called by
 * outermost().
 */
__attribute__((noinline)) int asleep(int ready);
__attribute__((noinline)) int level(int n, int ready);
__attribute__((noinline)) int outermost(int ready);
__attribute__((noinline)) int interrupted(int ready);

int asleep(int ready)
{
	const char byte = 1;
	volatile int result = (int)write(ready, &byte, 1);

	while (result)
		result = pause();
	return result;
}

int level(int n, int ready)
{
	const int result = n > 1 ? level(n - 1, ready) : asleep(ready);

	__asm__ volatile("" ::: "memory"); /* else this becomes a loop */
	return result + 1;
}

int outermost(int ready)
{
	volatile int five = 5; /* not a constant: else there would be a copy for each */
	const int result = level(five, ready);

	__asm__ volatile("" ::: "memory");
	return result + 1;
}

/* The same, interrupted by a signal whose handler is on a stack of its own. */
static int ready_in_handler;
static bool is_busy;

static void handler(int number)
{
	const char byte = 1;

	(void)number;
	if (write(ready_in_handler, &byte, 1) != 1)
		_exit(1);
	while (is_busy)
		__asm__ volatile("" ::: "memory");
	for (;;)
		pause();
}

int interrupted(int ready)
{
	static char alternate[65536];
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	int result;

	ready_in_handler = ready;
	result = sigaltstack(&stack, NULL) + sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	__asm__ volatile("" ::: "memory");
	return result;
}

struct child {
	struct fathom *session;
	struct fathom_target *target;
	pid_t pid;
};

/* Waits until process @pid is in @state, of proc_pid_stat(5). */
static void await_sleep(pid_t pid, char state)
{
	char path[32];
	char text[256] = "";
	const char *at = NULL;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	while (!at || at[2] != state) {
		FILE *file = fopen(path, "r");

		assert_non_null(file);
		assert_non_null(fgets(text, sizeof text, file));
		fclose(file);
		at = strrchr(text, ')');
		usleep(1000);
	}
}

static int start_with(void **state, int (*run)(int ready))
{
	struct child *c = calloc(1, sizeof *c);
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	c->pid = fork();
	if (!c->pid)
		_exit(run(ready[1]));
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	await_sleep(c->pid, is_busy ? 'R' : 'S');
	assert_int_equal(fathom_create(NULL, &c->session, NULL), FATHOM_OK);
	assert_int_equal(fathom_target_open_process(c->session, c->pid, NULL, &c->target, NULL),
			 FATHOM_OK);
	*state = c;
	return 0;
}

static int start(void **state)
{
	is_busy = false;
	return start_with(state, outermost);
}

static int start_interrupted(void **state)
{
	is_busy = false;
	return start_with(state, interrupted);
}

static int start_busy(void **state)
{
	is_busy = true;
	return start_with(state, interrupted);
}

static int stop(void **state)
{
	struct child *c = *state;

	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	fathom_target_release(c->target);
	fathom_destroy(c->session);
	free(c);
	return 0;
}

/* Frames without optimisation, and AddressSanitizer's, need registers that only a stop tells. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define PLAIN
#endif

/* Writes the names of @t from asleep() to outermost(), inlined ones too. */
static void list(const struct fathom_thread *t, char *text)
{
	bool is_inside = false;

	text[0] = '\0';
	for (size_t i = 0; i < t->n_frames; i++) {
		const struct fathom_answer *a = t->frames[i].answer;
		const struct fathom_frame *f = a->frame;

		is_inside |= a->symbol && strcmp(a->symbol, "asleep") == 0;
		if (!is_inside)
			continue;
		if (!f)
			strcat(strcat(text, a->symbol ? a->symbol : "??"), " ");
		for (; f; f = f->outer)
			strcat(strcat(text, f->function), " ");
		if (a->symbol && strcmp(a->symbol, "outermost") == 0)
			return;
	}
}

static struct fathom_stacks *capture(const struct child *c, struct fathom_stack_options *o)
{
	struct fathom_stacks *stacks;
	struct fathom_errinfo info;

	if (fathom_stacks_capture(c->target, o, &stacks, &info))
		fail_msg("%s", info.what);
	assert_int_equal(fathom_stacks_count(stacks), 1 + SANITIZER_THREADS);
	return stacks;
}

static void native(void **state)
{
	struct fathom_stacks *stacks = capture(*state, NULL);
	const struct fathom_thread *t = fathom_stacks_get(stacks, 0);
	char text[512];

	list(t, text);
	assert_string_equal(text, "asleep level level level level level outermost ");
	assert_int_equal(t->tid, ((struct child *)*state)->pid);
	assert_int_equal(t->stop, FATHOM_STOP_ENTRY);
#ifdef PLAIN
	assert_int_equal(t->pause_ns, 0);
#endif
	assert_string_equal(t->syscall, "pause");
	fathom_stacks_free(stacks);
}

/* How often it was called, and for how many native frames it replaces at most. */
struct interpreter {
	unsigned n_calls;
	size_t most;
};

static int interpret(void *data, struct fathom_target *target, const struct fathom_thread *thread,
		     size_t first, struct fathom_interpreter_run *run)
{
	static const struct fathom_interpreter_frame frames[] = { { "inner", "script", 7, 0 },
								  { "outer", NULL, 0, 0 } };
	struct interpreter *i = data;

	assert_non_null(target);
	assert_int_equal(run->size, sizeof *run);
	i->n_calls++;
	while (run->n_native < i->most && first + run->n_native < thread->n_frames &&
	       strcmp(thread->frames[first + run->n_native].answer->symbol, "level") == 0)
		run->n_native++;
	run->frames = frames;
	run->n_frames = 2;
	return run->n_native != 0;
}

static void interpreted(void **state)
{
	struct interpreter i = { .most = 3 };
	struct fathom_stack_options o = { .size = sizeof o,
					  .interpret = interpret,
					  .interpret_data = &i };
	struct fathom_stacks *all = capture(*state, NULL);
	struct fathom_stacks *stacks = capture(*state, &o);
	const size_t n = fathom_stacks_get(all, 0)->n_frames;
	const struct fathom_thread *t = fathom_stacks_get(stacks, 0);
	const size_t others = SANITIZER_THREADS ? fathom_stacks_get(stacks, 1)->n_frames : 0;
	char text[512];

	/* Five calls of level() are runs of three and of two. */
	list(t, text);
	assert_string_equal(text, "asleep inner outer inner outer outermost ");
	assert_int_equal(t->n_frames, n - 3);
	assert_int_equal(i.n_calls, n - 3 + others);
	for (size_t k = 0; k < t->n_frames; k++) {
		const struct fathom_answer *a = t->frames[k].answer;

		if (a->source != FATHOM_SOURCE_INTERPRETER)
			continue;
		assert_string_equal(a->symbol, "outer");
		assert_string_equal(a->frame->file, "script");
		assert_int_equal(a->frame->line, 7);
		assert_null(a->frame->outer->file);
	}
	fathom_stacks_free(all);
	fathom_stacks_free(stacks);
}

static int too_many(void *data, struct fathom_target *target, const struct fathom_thread *thread,
		    size_t first, struct fathom_interpreter_run *run)
{
	static const struct fathom_interpreter_frame frame = { "name", NULL, 0, 0 };

	(void)data;
	(void)target;
	*run = (struct fathom_interpreter_run){ .size = sizeof *run,
						.n_native = thread->n_frames - first + 1,
						.frames = &frame,
						.n_frames = 1 };
	return 1;
}

static void refused(void **state)
{
	const struct child *c = *state;
	struct fathom_stack_options o = { .size = sizeof o, .interpret = too_many };
	int32_t tid = 1;
	struct fathom_stacks *stacks = NULL;
	struct fathom_errinfo info;

	assert_int_equal(fathom_stacks_capture(c->target, &o, &stacks, &info), FATHOM_E_ARGUMENT);
	o = (struct fathom_stack_options){ .size = sizeof o, .stop = 3 };
	assert_int_equal(fathom_stacks_capture(c->target, &o, &stacks, &info), FATHOM_E_ARGUMENT);
	o = (struct fathom_stack_options){ .size = sizeof o, .tids = &tid, .n_tids = 1 };
	assert_int_equal(fathom_stacks_capture(c->target, &o, &stacks, &info), FATHOM_E_NOT_FOUND);
	assert_null(stacks);
}

static void limited(void **state)
{
	struct fathom_stack_options o = { .size = sizeof o, .max_frames = 3 };
	struct fathom_stacks *stacks = capture(*state, &o);
	const struct fathom_thread *t = fathom_stacks_get(stacks, 0);

	assert_int_equal(t->n_frames, 3);
	assert_int_equal(t->stop, FATHOM_STOP_LIMIT);
	fathom_stacks_free(stacks);
}

/* The frames of the handler's stack, then those of the stack below. */
static void check_handler(const struct child *c, uint32_t stop_mode)
{
	struct fathom_stack_options o = { .size = sizeof o, .stop = stop_mode };
	struct fathom_stacks *stacks = capture(c, &o);
	const struct fathom_thread *t = fathom_stacks_get(stacks, 0);
	size_t in_handler = 0;
	size_t below = 0;
	size_t signals = 0;

	assert_int_equal(t->stop, FATHOM_STOP_ENTRY);
	for (size_t i = 0; i < t->n_frames; i++) {
		const char *name = t->frames[i].answer->symbol;

		if (name && strcmp(name, "handler") == 0)
			in_handler = i + 1;
		if (name && strcmp(name, "interrupted") == 0)
			below = i + 1;
		signals += t->frames[i].trust == FATHOM_TRUST_SIGNAL;
	}
	assert_true(in_handler && below > in_handler + 1);
	assert_int_equal(signals, 1);
	fathom_stacks_free(stacks);
}

static void on_two_stacks(void **state)
{
#ifdef PLAIN
	check_handler(*state, FATHOM_STACK_STOP_NEVER);
#endif
	check_handler(*state, FATHOM_STACK_STOP_AUTO);
	check_handler(*state, FATHOM_STACK_STOP_ALL);
}

static void busy_on_two_stacks(void **state)
{
	check_handler(*state, FATHOM_STACK_STOP_AUTO);
	check_handler(*state, FATHOM_STACK_STOP_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(native, start, stop),
		cmocka_unit_test_setup_teardown(interpreted, start, stop),
		cmocka_unit_test_setup_teardown(refused, start, stop),
		cmocka_unit_test_setup_teardown(limited, start, stop),
		cmocka_unit_test_setup_teardown(on_two_stacks, start_interrupted, stop),
		cmocka_unit_test_setup_teardown(busy_on_two_stacks, start_busy, stop),
	};

	return cmocka_run_group_tests_name("stacks", tests, NULL, NULL);
}
