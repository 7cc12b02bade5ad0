/* SPDX-License-Identifier: MIT */
#include "cli/compat/strace/call_lines.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/launch.h"

#define NS INT64_C(1000000000)

/* Bytes that are collected before they are written. */
#define ENOUGH 65536

/* A file that is written, and the line that it ends with. */
struct strace_file {
	int fd;
	int32_t tid;      /* whose file it is with -ff */
	int32_t current;  /* the thread whose line is not finished; 0: none */
	size_t column;    /* of the current line */
	uint64_t last_ns; /* when the last line began */
	bool has_lines;
	bool has_failed;
	size_t n;
	size_t cap;
	char *bytes;
};

/* A thread that is traced. */
struct strace_thread {
	int32_t tid;
	uint64_t pc;     /* of its last call */
	uint64_t number; /* of that */
	char *last;      /* the frames of the call that ends it; NULL: none */
	size_t n_last;   /* bytes of them */
};

struct strace_lines {
	const struct strace_options *options;
	struct strace_file one;
	struct strace_file *files; /* with -ff */
	size_t n_files;
	struct strace_thread *threads; /* that are traced */
	size_t n_threads;
	bool has_first;
	int64_t zero; /* the time at 0 of events, in ns since 1970; INT64_MIN: not known yet */
};

static void flush(struct strace_file *f)
{
	f->has_failed |= f->n && !launch_write(f->fd, f->bytes, f->n);
	f->n = 0;
}

static void put_bytes(struct strace_file *f, const char *bytes, size_t n)
{
	if (f->n + n > f->cap) {
		f->cap = 2 * (f->n + n) + ENOUGH;
		f->bytes = must(realloc(f->bytes, f->cap));
	}
	memcpy(f->bytes + f->n, bytes, n);
	f->n += n;
	f->column += n;
	if (f->n > ENOUGH)
		flush(f);
}

static void put_str(struct strace_file *f, const char *s)
{
	put_bytes(f, s, strlen(s));
}

__attribute__((format(printf, 2, 3))) static void put(struct strace_file *f, const char *format,
						      ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	put_str(f, text);
}

static void end_line(struct strace_file *f)
{
	put_str(f, "\n");
	f->column = 0;
	f->current = 0;
}

/*
 * Prints the frames of @s. Bounds of a function without a name are no name; what is in no file and
 * has no name either is an error of strace's.
 */
static void put_frames(struct strace_file *f, const struct fathom_trace_stack *s)
{
	for (size_t i = 0; i < s->n_frames; i++) {
		const struct fathom_trace_frame *frame = &s->frames[i];
		const struct fathom_answer *a = frame->frame.answer;
		const bool is_named = a->symbol && a->source != FATHOM_SOURCE_FDE;

		put_str(f, " > ");
		if (a->module)
			put_str(f, a->module->path);
		else if (!is_named)
			put_str(f, "unexpected_backtracing_error");
		if (a->module || is_named)
			put_str(f, "(");
		if (is_named) {
			put_bytes(f, a->symbol, a->symbol_size);
			put(f, "+0x%llx", (unsigned long long)a->offset);
		}
		put(f, a->module || is_named ? ") [0x%llx]" : " [0x%llx]",
		    (unsigned long long)(a->module ? frame->file_offset : a->pc.address));
		end_line(f);
	}
	if (s->stop == FATHOM_STOP_LIMIT) {
		put_str(f, " > too many stack frames");
		end_line(f);
	}
}

struct strace_lines *strace_lines_create(const struct strace_options *o)
{
	struct strace_lines *l = must(calloc(1, sizeof *l));

	l->options = o;
	l->zero = INT64_MIN;
	if (!o->is_split)
		l->one.fd = launch_open_log(o->output);
	return l;
}

/* Returns the file of thread @tid, which it opens. */
static struct strace_file *file_of(struct strace_lines *l, int32_t tid)
{
	struct strace_file *f;
	char *path;

	if (!l->options->is_split)
		return &l->one;
	for (size_t i = 0; i < l->n_files; i++)
		if (l->files[i].tid == tid)
			return &l->files[i];
	l->files = must(realloc(l->files, (l->n_files + 1) * sizeof *l->files));
	f = &l->files[l->n_files++];
	*f = (struct strace_file){ .tid = tid };
	path = must(malloc(strlen(l->options->output) + 16));
	(void)sprintf(path, "%s.%d", l->options->output, tid);
	f->fd = launch_open_log(path);
	free(path);
	return f;
}

static void put_time(struct strace_lines *l, struct strace_file *f, uint64_t ns)
{
	const struct strace_options *o = l->options;
	const int64_t at = l->zero + (int64_t)ns;
	const time_t seconds = (time_t)(at / NS);
	const long us = (long)(at % NS / 1000);
	char text[32] = "";
	struct tm tm;

	if (o->is_relative) {
		const uint64_t since =
			f->has_lines && ns > f->last_ns ? (ns - f->last_ns) / 1000 : 0;

		put(f, o->clock ? "(+%6u.%06u) " : "%6u.%06u ", (unsigned)(since / 1000000),
		    (unsigned)(since % 1000000));
	}
	f->last_ns = ns;
	f->has_lines = true;
	if (o->clock == STRACE_SINCE_1970)
		put(f, "%lld.%06ld ", (long long)seconds, us);
	if (!o->clock || o->clock == STRACE_SINCE_1970 || !localtime_r(&seconds, &tm))
		return;
	(void)strftime(text, sizeof text, "%H:%M:%S", &tm);
	put_str(f, text);
	put(f, o->clock == STRACE_MICROSECONDS ? ".%06ld " : " ", us);
}

/* Begins a line of thread @tid, at @ns. */
static void begin_line(struct strace_lines *l, struct strace_file *f, int32_t tid, uint64_t ns)
{
	if (f->current) {
		put_str(f, " <unfinished ...>");
		end_line(f);
	}
	f->column = 0;
	if (!l->options->is_split && l->options->output && l->options->follows)
		put(f, "%-5d ", tid);
	else if (!l->options->is_split && l->n_threads > 1)
		put(f, "[pid %5d] ", tid);
	put_time(l, f, ns);
}

static void put_place(const struct strace_options *o, struct strace_file *f,
		      const struct fathom_trace_syscall *c)
{
	if (o->has_numbers)
		put(f, "[%4llu] ", (unsigned long long)c->number);
	if (o->has_pc)
		put(f, "[%016llx] ", (unsigned long long)c->pc);
}

/* Begins the line of a call that has begun at @ns. */
static void begin_call(struct strace_lines *l, struct strace_file *f,
		       const struct fathom_trace_event *e, uint64_t ns)
{
	begin_line(l, f, e->tid, ns);
	put_place(l->options, f, e->syscall);
	put_bytes(f, e->syscall->text, e->syscall->entry_size);
	f->current = e->tid;
}

/* Returns whether calls are shown only when it is known how they have ended. */
static bool is_buffered(const struct strace_options *o)
{
	return o->statuses != STRACE_ALL_STATUSES;
}

static bool is_wanted(const struct strace_options *o, const struct fathom_trace_syscall *c)
{
	if (c->outcome != FATHOM_SYSCALL_HAS_ENDED)
		return o->statuses & STRACE_UNFINISHED;
	return o->statuses & (c->error ? STRACE_FAILED : STRACE_SUCCESSFUL);
}

/* Returns the thread @tid; NULL: it is not known. */
static struct strace_thread *thread_of(struct strace_lines *l, int32_t tid)
{
	for (size_t i = 0; i < l->n_threads; i++)
		if (l->threads[i].tid == tid)
			return &l->threads[i];
	return NULL;
}

/* Prints the stack by which the call of @e was made, or keeps it for the end of its thread. */
static void put_stack(struct strace_lines *l, struct strace_file *f,
		      const struct fathom_trace_event *e)
{
	struct strace_thread *t = thread_of(l, e->tid);
	struct strace_file kept = { .fd = -1 };

	if (!e->call_stack)
		return;
	if (e->type == FATHOM_TRACE_SIGNAL || e->syscall->outcome != FATHOM_SYSCALL_NEVER_ENDS) {
		put_frames(f, e->call_stack);
	} else if (t) {
		put_frames(&kept, e->call_stack);
		free(t->last);
		t->last = kept.bytes;
		t->n_last = kept.n;
	}
}

static void end_call(struct strace_lines *l, const struct fathom_trace_event *e)
{
	const struct strace_options *o = l->options;
	const struct fathom_trace_syscall *c = e->syscall;
	struct strace_file *f = file_of(l, e->tid);
	const uint64_t us = e->duration_ns / 1000;

	if (!is_wanted(o, c))
		return;
	if (is_buffered(o)) {
		begin_call(l, f, e, e->ns - e->duration_ns);
	} else if (f->current != e->tid) {
		begin_line(l, f, e->tid, e->ns);
		put_place(o, f, c);
		put(f, "<... %s resumed>", c->name);
	}
	put_bytes(f, c->text + c->entry_size, c->exit_size - c->entry_size);
	put_str(f, " ");
	while (f->column < o->column)
		put_str(f, " ");
	put_str(f, "= ");
	put_bytes(f, c->text + c->result_from, c->text_size - c->result_from);
	if (c->is_injected)
		put_str(f, " (INJECTED)");
	if (c->is_delayed)
		put_str(f, " (DELAYED)");
	if (o->has_durations && c->outcome == FATHOM_SYSCALL_HAS_ENDED)
		put(f, " <%u.%06u>", (unsigned)(us / 1000000), (unsigned)(us % 1000000));
	end_line(f);
	if (c->dump_size)
		put_bytes(f, c->dump, c->dump_size);
	put_stack(l, f, e);
}

static void add_thread(struct strace_lines *l, int32_t tid)
{
	if (thread_of(l, tid))
		return;
	l->threads = must(realloc(l->threads, (l->n_threads + 1) * sizeof *l->threads));
	l->threads[l->n_threads++] = (struct strace_thread){ .tid = tid };
	if (l->n_threads == 1 || l->options->quiet & STRACE_QUIET_ATTACH || !l->options->follows)
		return;
	(void)strace_lines_flush(l);
	(void)fprintf(stderr, "fathom strace: Process %d attached\n", tid);
}

static void remove_thread(struct strace_lines *l, int32_t tid)
{
	struct strace_thread *t = thread_of(l, tid);

	if (!t)
		return;
	free(t->last);
	*t = l->threads[--l->n_threads];
}

/* Prints the place of what has happened to @tid beside a call; @pc 0: it is nowhere any more. */
static void put_last_place(struct strace_lines *l, struct strace_file *f, int32_t tid, bool has_pc)
{
	const struct strace_thread *t = thread_of(l, tid);

	if (l->options->has_numbers)
		put(f, "[%4llu] ", t ? (unsigned long long)t->number : 0);
	if (l->options->has_pc && has_pc)
		put(f, "[%016llx] ", t ? (unsigned long long)t->pc : 0);
	else if (l->options->has_pc)
		put_str(f, "[????????????????] ");
}

static void put_end(struct strace_lines *l, const struct fathom_trace_event *e)
{
	struct strace_file *f = file_of(l, e->tid);
	const struct strace_thread *t = thread_of(l, e->tid);

	if (!(l->options->quiet & STRACE_QUIET_EXIT) || WIFSIGNALED(e->status)) {
		begin_line(l, f, e->tid, e->ns);
		put_last_place(l, f, e->tid, false);
		if (WIFSIGNALED(e->status))
			put(f, "+++ killed by %s %s+++", fathom_signal_name(WTERMSIG(e->status)),
			    WCOREDUMP(e->status) ? "(core dumped) " : "");
		else
			put(f, "+++ exited with %d +++", WEXITSTATUS(e->status));
		end_line(f);
	}
	/* strace prints them after the end, too. */
	if (t && t->last)
		put_bytes(f, t->last, t->n_last);
	remove_thread(l, e->tid);
}

static void put_signal(struct strace_lines *l, const struct fathom_trace_event *e)
{
	struct strace_file *f = file_of(l, e->tid);

	if (e->status > 0 && !(l->options->signals >> (e->status - 1) & 1))
		return;
	begin_line(l, f, e->tid, e->ns);
	put_last_place(l, f, e->tid, true);
	put_str(f, "--- ");
	put_str(f, e->text);
	put_str(f, " ---");
	end_line(f);
	put_stack(l, f, e);
}

/* Learns the time of the clock on the wall: the earliest of what events say is the nearest. */
static void learn_zero(struct strace_lines *l, const struct fathom_trace_event *e)
{
	struct timespec now = { .tv_sec = 0 };
	int64_t zero;

	clock_gettime(CLOCK_REALTIME, &now);
	zero = now.tv_sec * NS + now.tv_nsec - (int64_t)e->ns;
	if (l->zero == INT64_MIN || zero < l->zero)
		l->zero = zero;
}

/* Notes where thread of @e is, if it reports a call. */
static void note_place(struct strace_lines *l, const struct fathom_trace_event *e)
{
	struct strace_thread *t = e->syscall ? thread_of(l, e->tid) : NULL;

	if (!t)
		return;
	t->pc = e->syscall->pc;
	t->number = e->syscall->number;
}

/*
 * Notes the thread of the program, which is told of by its first event: of a call, unless what it
 * has made is told of before. Without -f others are nobody's.
 */
static void note_first(struct strace_lines *l, const struct fathom_trace_event *e)
{
	const bool is_child = e->type == FATHOM_TRACE_START && !l->options->n_pids;
	struct strace_thread *unknown;

	if (!l->has_first)
		add_thread(l, is_child ? 0 : e->tid);
	l->has_first = true;
	unknown = is_child || thread_of(l, e->tid) ? NULL : thread_of(l, 0);
	if (unknown)
		unknown->tid = e->tid;
}

bool strace_lines_take(struct strace_lines *l, const struct fathom_trace_event *e)
{
	struct strace_file *f;

	if (l->options->clock)
		learn_zero(l, e);
	note_first(l, e);
	if (!l->options->follows && !l->options->n_pids && !thread_of(l, e->tid))
		return true;
	note_place(l, e);
	switch (e->type) {
	case FATHOM_TRACE_START:
		add_thread(l, e->tid);
		break;
	case FATHOM_TRACE_EXIT:
		put_end(l, e);
		break;
	case FATHOM_TRACE_SIGNAL:
		put_signal(l, e);
		break;
	case FATHOM_TRACE_SYSCALL_ENTRY:
		if (!is_buffered(l->options))
			begin_call(l, file_of(l, e->tid), e, e->ns);
		break;
	case FATHOM_TRACE_SYSCALL:
		end_call(l, e);
		break;
	default:
		break;
	}
	f = file_of(l, e->tid);
	return !f->has_failed;
}

bool strace_lines_flush(struct strace_lines *l)
{
	bool has_failed = false;

	if (!l->options->is_split) {
		flush(&l->one);
		return !l->one.has_failed;
	}
	for (size_t i = 0; i < l->n_files; i++) {
		flush(&l->files[i]);
		has_failed |= l->files[i].has_failed;
	}
	return !has_failed;
}

static void finish(struct strace_file *f)
{
	if (f->current) {
		put_str(f, " <unfinished ...>");
		end_line(f);
	}
	flush(f);
	free(f->bytes);
}

bool strace_lines_finish(struct strace_lines *l)
{
	bool has_failed = false;

	if (!l->options->is_split)
		finish(&l->one);
	has_failed |= l->one.has_failed;
	for (size_t i = 0; i < l->n_files; i++) {
		finish(&l->files[i]);
		has_failed |= l->files[i].has_failed;
	}
	for (size_t i = 0; i < l->n_threads; i++)
		free(l->threads[i].last);
	free(l->files);
	free(l->threads);
	free(l);
	return !has_failed;
}
