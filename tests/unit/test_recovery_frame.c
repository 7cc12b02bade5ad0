/* SPDX-License-Identifier: MIT */
/*
 * A tracer that is gone in the middle of a system call that it has a thread make: the thread goes
 * on where it was, with all registers, also in a call of its own.
 */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/file/maps.h"
#include "host/tracer/recovery_frame.h"

#define ROUNDS 200

/* The words of the child about itself. */
struct told {
	_Atomic long n;     /* rounds of its work */
	_Atomic long wrong; /* of them */
};

static double sum_of(const double *values, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += values[i] * 1.5;
	return sum;
}

static _Noreturn void compute(struct told *told)
{
	double values[64];

	while (1) {
		for (int i = 0; i < 64; i++)
			values[i] = i;
		if (sum_of(values, 64) != 3024)
			told->wrong++;
		told->n++;
	}
}

static _Noreturn void sleep_often(struct told *told)
{
	const struct timespec pause = { .tv_nsec = 3000000 };

	while (1) {
		if (nanosleep(&pause, NULL) || poll(NULL, 0, 2))
			told->wrong++;
		told->n++;
	}
}

/* libc is where it is in the child. */
static struct fathom_recovery_code find_code(void)
{
	struct fathom_recovery_code code = { 0, 0 };
	struct fathom_maps maps;

	assert_int_equal(fathom_maps_read("/proc/self/maps", &maps, NULL), FATHOM_OK);
	for (size_t i = 0; i < maps.n; i++) {
		const struct fathom_mapping *m = &maps.items[i];

		if (m->executable && m->inode)
			fathom_recovery_frame_look(&code, (const uint8_t *)(uintptr_t)m->start,
						   m->end - m->start, m->start);
	}
	fathom_maps_deinit(&maps);
	return code;
}

static uint64_t end_of_stack(pid_t pid, uint64_t sp)
{
	struct fathom_maps maps;
	char path[64];
	uint64_t start;

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	assert_int_equal(fathom_maps_read(path, &maps, NULL), FATHOM_OK);
	start = maps.items[fathom_maps_at(&maps, sp)].start;
	fathom_maps_deinit(&maps);
	return start;
}

/* Stops the child, sends it off to a call of getpid(), and leaves it, @stops stops later. */
static void send_off(pid_t pid, const struct fathom_recovery_code *code, int stops)
{
	struct user_regs_struct regs;
	struct fathom_tracee t;
	int status;

	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	fathom_tracee_init(&t, pid);
	assert_true(fathom_tracee_open_memory(&t));
	assert_true(fathom_tracee_get(pid, &regs));
	/* Code may use 128 bytes below its stack pointer. */
	assert_true(fathom_recovery_frame_make(&t, pid, code, end_of_stack(pid, regs.rsp),
					       regs.rsp - 128));
	regs.rip = t.syscall_avma;
	regs.rsp = t.call_sp;
	regs.rax = SYS_getpid;
	regs.orig_rax = UINT64_MAX;
	regs.rbx = regs.rbp = regs.r12 = regs.rdi = 0x5a5a;
	assert_true(fathom_tracee_set(pid, &regs));
	while (stops--) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, __WALL), pid);
	}
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	fathom_tracee_deinit(&t);
}

static void check_child(void (*work)(struct told *told))
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct told *told =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct fathom_recovery_code code = find_code();
	const pid_t pid = fork();
	long before;
	int status;

	assert_true(pid >= 0);
	if (!pid)
		work(told);
	assert_true(code.call && code.restore);
	for (int i = 0; i < ROUNDS; i++) {
		send_off(pid, &code, i % 3);
		before = told->n;
		for (int k = 0; k < 10000 && told->n < before + 2; k++)
			nanosleep(&pause, NULL);
		assert_true(told->n >= before + 2);
	}
	assert_int_equal(told->wrong, 0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	munmap(told, 4096);
}

static void who_computes_goes_on(void **state)
{
	(void)state;
	check_child(compute);
}

static void who_waits_goes_on(void **state)
{
	(void)state;
	check_child(sleep_often);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_computes_goes_on),
		cmocka_unit_test(who_waits_goes_on),
	};

	return cmocka_run_group_tests_name("recovery_frame", tests, NULL, NULL);
}
