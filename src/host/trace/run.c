/* SPDX-License-Identifier: MIT */
/* fathom_trace_run(): a program from its first instruction to its end. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "host/base/clock.h"
#include "host/base/context.h"
#include "host/base/option_struct.h"
#include "host/target/target.h"
#include "host/trace/inject.h"
#include "host/trace/log_text.h"
#include "host/trace/patch.h"
#include "host/trace/rings.h"

/* If this process ends, the program runs on. */
#define OPTIONS                                                                                   \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
	 PTRACE_O_TRACEEXEC)

#define N_RINGS 128

/* How often rings are looked at, and how long an event may be on its way. */
#define LOOK_NS 1000000

/* A site that is recorded. */
struct traced {
	uint32_t key; /* low bits of where its call returns to */
	uint32_t name_size;
	const char *name;
};

struct run {
	struct fathom_tracee tracee;
	struct fathom *session;
	struct fathom_injected injected;
	struct fathom_sites *sites;
	struct fathom_rings *rings;
	struct {
		FATHOM_ARRAY_OF(struct traced); /* sorted by key */
	} traced;
	struct fathom_trace_options options;
	struct fathom_log_text *text;
	int64_t begin_ns; /* monotonic clock */
	_Atomic bool is_over;
	bool has_reader;
	pthread_t reader;
	int status;
	fathom_err err;
	struct fathom_errinfo *reterr;
	char *const *argv;
};

static int by_key(const void *a, const void *b)
{
	const struct traced *x = a;
	const struct traced *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static void tell(void *data, const struct fathom_trace_event *e)
{
	struct run *run = data;
	const size_t i = FATHOM_BISECT(run->traced.n, k, run->traced.items[k].key < e->site);
	struct fathom_log_line line = { .kind = "FUN",
					.tid = e->tid,
					.depth = e->depth,
					.ns = e->ns,
					.stack = e->stack,
					.what = "??",
					.size = 2,
					.count = e->count };

	if (i < run->traced.n && run->traced.items[i].key == e->site) {
		line.what = run->traced.items[i].name;
		line.size = run->traced.items[i].name_size;
	}
	fathom_log_text_line(run->text, &line);
}

static struct fathom_trace_moment now(const struct run *run)
{
	return (struct fathom_trace_moment){ .ticks = __rdtsc(),
					     .ns = (uint64_t)(fathom_now_ns() - run->begin_ns) };
}

/* Reads the rings until the program has ended. */
static void *read_rings(void *data)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct run *run = data;
	struct fathom_trace_moment end;

	while (!atomic_load(&run->is_over)) {
		const struct fathom_trace_moment until = now(run);

		if (!fathom_rings_take(run->rings, &until, false, tell, run)) {
			fathom_log_text_flush(run->text);
			nanosleep(&pause, NULL);
		}
	}
	end = now(run);
	(void)fathom_rings_take(run->rings, &end, true, tell, run);
	fathom_log_text_flush(run->text);
	return NULL;
}

/* Has all sites of module @m call the hook. */
static fathom_err patch_module(struct run *run, pid_t tid, const struct fathom_site_module *m)
{
	uint64_t hook = 0;

	for (size_t i = m->first; i < m->first + m->count; i++) {
		const struct fathom_site *s = fathom_sites_get(run->sites, i);
		struct traced t = { .key = 0 };
		uint64_t back;

		if (s->place != FATHOM_SITE_ENTRY)
			continue;
		if (!hook)
			hook = fathom_inject_hook(
				&run->injected, &run->tracee, tid, s->address,
				fathom_sites_get(run->sites, m->first + m->count - 1)->address);
		if (!hook || fathom_patch_on(&run->tracee, s, hook, &back) != FATHOM_PATCH_DONE)
			continue;
		t.key = (uint32_t)back;
		t.name = s->answer->symbol ? s->answer->symbol : "??";
		t.name_size = (uint32_t)strlen(t.name);
		if (!fathom_array_push(&run->traced, t))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

/* The program stands before its first instruction. */
static fathom_err begin(struct run *run, pid_t tid)
{
	const struct fathom_sites_options names = { .size = sizeof names,
						    .flags = FATHOM_SITES_NAMES };
	struct user_regs_struct regs = { .rsp = 0 };
	struct fathom_trace_moment begin_moment;
	struct fathom_target *target;
	fathom_err err;

	FATHOM_TRY(fathom_target_open_process(run->session, tid, NULL, &target, run->reterr));
	err = fathom_trace_sites(target, &names, &run->sites, run->reterr);
	fathom_target_release(target);
	FATHOM_TRY(err);
	err = fathom_inject(&run->tracee, tid, N_RINGS, &run->injected, run->reterr);
	for (size_t i = 0; !err && i < fathom_sites_module_count(run->sites); i++)
		err = patch_module(run, tid, fathom_sites_module_get(run->sites, i));
	fathom_inject_end(&run->injected, &run->tracee);
	FATHOM_TRY(err);
	qsort(run->traced.items, run->traced.n, sizeof *run->traced.items, by_key);
	run->begin_ns = fathom_now_ns();
	begin_moment = now(run);
	(void)fathom_tracee_get(tid, &regs);
	FATHOM_TRY(fathom_rings_create(run->injected.head, run->injected.size, &begin_moment, tid,
				       regs.rsp, &run->rings));
	run->has_reader = !pthread_create(&run->reader, NULL, read_rings, run);
	return FATHOM_OK;
}

/* @tid has become the program. */
static void handle_exec(struct run *run, pid_t tid)
{
	int status;

	/* exec() returns first. */
	if (run->rings || !fathom_tracee_open_memory(&run->tracee) ||
	    ptrace(PTRACE_SYSCALL, tid, NULL, NULL))
		return;
	status = fathom_tracee_wait(&run->tracee, tid);
	if (status != -1 && WIFSTOPPED(status))
		run->err = begin(run, tid);
}

static void follow(struct run *run)
{
	int status;
	pid_t tid;

	while (!run->err &&
	       ((tid = waitpid(-1, &status, __WALL | __WNOTHREAD)) > 0 || errno == EINTR)) {
		int signal = 0;

		if (tid < 0)
			continue;
		if (!WIFSTOPPED(status)) {
			if (tid == run->tracee.pid)
				run->status = status;
			continue;
		}
		if (status >> 16 == PTRACE_EVENT_EXEC)
			handle_exec(run, tid);
		else if (!(status >> 16) && WSTOPSIG(status) != (SIGTRAP | 0x80))
			signal = WSTOPSIG(status);
		if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP)
			(void)ptrace(PTRACE_LISTEN, tid, NULL, NULL);
		else
			(void)ptrace(PTRACE_CONT, tid, NULL, signal);
	}
}

/* Only one thread may trace. */
static void *run_main(void *data)
{
	struct run *run = data;
	int report;

	run->err = fathom_tracee_start(&run->tracee, run->argv, OPTIONS, &report, run->reterr);
	if (run->err)
		return NULL;
	(void)ptrace(PTRACE_CONT, run->tracee.pid, NULL, NULL);
	follow(run);
	atomic_store(&run->is_over, true);
	if (run->has_reader)
		pthread_join(run->reader, NULL);
	close(report);
	fathom_tracee_deinit(&run->tracee);
	return NULL;
}

fathom_err fathom_trace_run(struct fathom *session, char *const *argv,
			    const struct fathom_trace_options *options,
			    struct fathom_trace_result *ret_result, struct fathom_errinfo *reterr)
{
	struct run run = { .session = session, .argv = argv, .reterr = reterr };
	pthread_t thread;

	if (!options || !FATHOM_OPTIONS_READ(options, &run.options, 0) || !run.options.write)
		return fathom_fail_options(reterr);
	run.text = malloc(sizeof *run.text);
	if (!run.text)
		return fathom_fail_memory(reterr);
	fathom_log_text_init(run.text, run.options.write, run.options.data);
	fathom_log_text_head(run.text);
	if (pthread_create(&thread, NULL, run_main, &run))
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "no thread can be started");
	pthread_join(thread, NULL);
	ret_result->status = run.status;
	ret_result->lost = run.rings ? fathom_rings_lost(run.rings) : 0;
	ret_result->n_sites = run.traced.n;
	fathom_rings_destroy(run.rings);
	fathom_sites_free(run.sites);
	fathom_injected_deinit(&run.injected);
	fathom_array_free(&run.traced);
	free(run.text);
	return run.err;
}
