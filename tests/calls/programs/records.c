/* SPDX-License-Identifier: MIT */
/* records: what is recorded equals a log that the program keeps itself, one by one. */
#include "traced.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

struct logged {
	uint32_t site;
	uint32_t sp;
	uint32_t caller;
};

static struct logged logged[60000];
static size_t n_logged;

#define LOG(fn)                                                \
	(logged[n_logged++] =                                  \
		 (struct logged){ site_of((const void *)(fn)), \
				  (uint32_t)(((uintptr_t)__builtin_dwarf_cfa() - 8) >> 3), \
				  (uint32_t)(uintptr_t)__builtin_return_address(0) })

__attribute__((noinline)) int leaf(int n)
{
	LOG(leaf);
	return n + 1;
}

__attribute__((noinline)) int middle(int n)
{
	LOG(middle);
	return leaf(n) + leaf(n + 1) + (n % 3 ? 0 : leaf(n + 2));
}

__attribute__((noinline)) int deep(int n)
{
	int result;

	LOG(deep);
	result = n ? deep(n - 1) : middle(n);
	/* No loop is made of it. */
	__asm__ volatile("" : "+r"(result));
	return result + 1;
}

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" : : : "memory");
}

UNTRACED static void check_log(void)
{
	const struct fathom_trace_record *r = fathom_trace_records(head, 0);
	uint64_t before = 0;

	for (size_t i = 0; i < n_logged; i++) {
		const uint64_t time = r[i].time & ~FATHOM_TRACE_LAP;

		require(r[i].site == logged[i].site && r[i].sp == logged[i].sp, "another record");
		require(r[i].caller == logged[i].caller, "another caller");
		require((r[i].time & FATHOM_TRACE_LAP) == fathom_trace_lap(i), "another lap");
		require(time > before, "time goes back");
		before = time;
	}
	require(!r[n_logged].time, "more records");
	printf("records %zu\n", n_logged);
}

UNTRACED static int compare(void)
{
	set_up(1, FATHOM_TRACE_WAIT);
	place_hook(fathom_trace_hook_full, fathom_trace_hook_sparse);
	patch();
	for (int i = 0; i < 5000; i++)
		(void)middle(i);
	(void)deep(1000);
	check_log();
	return 0;
}

/* Threads, each with CALLS calls, and a reader that takes all. ------------------------------- */

enum { THREADS = 100, CALLS = 20000 };

static _Atomic bool is_over;
static uint64_t total;

UNTRACED static void *run(void *data)
{
	(void)data;
	for (int i = 0; i < CALLS; i++)
		counted();
	return NULL;
}

/* Takes what ring @number has; returns how much. */
UNTRACED static uint64_t take(uint32_t number)
{
	struct fathom_trace_ring *ring = fathom_trace_ring_at(head, number);
	const struct fathom_trace_record *r = fathom_trace_records(head, number);
	uint64_t taken = atomic_load(&ring->taken);
	uint64_t n = 0;

	for (;; taken++, n++) {
		const struct fathom_trace_record *record = &r[taken % FATHOM_TRACE_RECORDS];
		const uint64_t time = __atomic_load_n(&record->time, __ATOMIC_ACQUIRE);

		if (!time || (time & FATHOM_TRACE_LAP) != fathom_trace_lap(taken))
			break;
		require(record->site == site_of((const void *)counted), "another site");
	}
	atomic_store(&ring->taken, taken);
	return n;
}

UNTRACED static void *read_all(void *data)
{
	(void)data;
	while (!atomic_load(&is_over)) {
		for (uint32_t i = 0; i < head->n_rings; i++)
			total += take(i);
		usleep(1000);
	}
	for (uint32_t i = 0; i < head->n_rings; i++)
		total += take(i);
	return NULL;
}

UNTRACED static int many(void)
{
	static pthread_t threads[THREADS];
	pthread_t reader;
	uint64_t lost = 0;

	set_up(THREADS + 1, FATHOM_TRACE_WAIT);
	place_hook(fathom_trace_hook_full, fathom_trace_hook_sparse);
	patch();
	pthread_create(&reader, NULL, read_all, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&is_over, true);
	pthread_join(reader, NULL);
	for (uint32_t i = 0; i < head->n_rings; i++)
		lost += atomic_load(&fathom_trace_ring_at(head, i)->lost);
	printf("taken %llu lost %llu\n", (unsigned long long)total,
	       (unsigned long long)(lost + atomic_load(&head->lost)));
	return 0;
}

/* The child of a fork() has a ring of its own; SIGKILL takes nothing from the records. */
UNTRACED static int forked(void)
{
	pid_t child;

	set_up(2, FATHOM_TRACE_WAIT);
	place_hook(fathom_trace_hook_full, fathom_trace_hook_sparse);
	patch();
	for (int i = 0; i < 3; i++)
		counted();
	child = fork();
	if (!child) {
		for (int i = 0; i < 5000; i++)
			counted();
		(void)kill(getpid(), SIGKILL);
	}
	(void)waitpid(child, NULL, 0);
	counted();
	printf("%llu %llu, pids %d %d\n", (unsigned long long)take(0), (unsigned long long)take(1),
	       fathom_trace_ring_at(head, 0)->pid == getpid(),
	       fathom_trace_ring_at(head, 1)->pid == child);
	return 0;
}

UNTRACED int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "compare"))
		return compare();
	return strcmp(what, "many") ? forked() : many();
}
