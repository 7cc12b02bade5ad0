/* SPDX-License-Identifier: MIT */
/* Pictures of fathom top as text, a block for each, and as JSON Lines. */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/top.h"

/* Writes formatted text, of less than 128 bytes, that has none of others in it. */
static void print(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(struct out *o, const char *format, ...)
{
	char text[128];
	va_list list;

	va_start(list, format);
	(void)vsnprintf(text, sizeof text, format, list);
	va_end(list);
	out_str(o, text);
}

static void print_name(struct out *o, enum out_part part, const char *text)
{
	out_begin_part(o, part);
	out_text(o, text, strlen(text));
	out_end_part(o);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100. * (double)part / (double)all : 0;
}

/* Returns how many threads at a time were in @ns of the time of the picture. */
static double threads_of(const struct top_view *v, uint64_t ns)
{
	return v->span_ns ? (double)ns / (double)v->span_ns : 0;
}

static void print_head(const struct top *t, struct out *o, const struct top_view *v,
		       const struct top_facts *f)
{
	const time_t now = time(NULL);
	struct tm tm;
	char when[16];

	(void)localtime_r(&now, &tm);
	(void)strftime(when, sizeof when, "%H:%M:%S", &tm);
	print(o, "fathom top, %s: ", when);
	out_text(o, t->target, strlen(t->target));
	print(o, ", the last %.1f s%s%s\n", (double)v->span_ns / 1e9,
	      f->has_ended ? ", has ended" : "", *f->why ? ": " : "");
	if (*f->why) {
		o->n--;
		out_text(o, f->why, strlen(f->why));
		out_char(o, '\n');
	}
	print(o, "%s, %s, %" PRIu32 " Hz; lost %" PRIu64, top_method(f), t->event,
	      t->options.frequency, f->lost);
	if (f->throttled)
		print(o, ", throttled %" PRIu64, f->throttled);
	if (f->n_left_out)
		print(o, ", threads left out %" PRIu32, f->n_left_out);
	print(o, "; %sown cost %.1f %% of a processor\n",
	      f->is_kernel_hidden ? "kernel hidden; " : "", 100 * f->own);
	print(o, "threads running %.2f, waiting %.2f, waiting for a processor %.2f\n",
	      threads_of(v, v->running), threads_of(v, v->waited), threads_of(v, v->ready));
}

static void print_functions(const struct top *t, struct out *o, const struct top_view *v)
{
	const struct top_rows *rows = &v->lists[TOP_FUNCTIONS];

	out_str(o, "  CPU%  SELF% TOTAL%  FUNCTION\n");
	for (size_t i = 0; i < rows->n && i < t->n_rows; i++) {
		const struct top_row *r = &rows->items[i];

		print(o, "%6.1f %6.1f %6.1f  ", percent(r->self, v->span_ns),
		      percent(r->self, v->shown), percent(r->total, v->shown));
		print_name(o, OUT_NAME, r->name);
		if (*r->module) {
			out_str(o, "  ");
			print_name(o, OUT_FILE, last_part(r->module));
		}
		out_char(o, '\n');
	}
}

static void print_threads(const struct top *t, struct out *o, const struct top_view *v)
{
	const struct top_rows *rows = &v->lists[TOP_THREADS];

	out_str(o, "  RUN%  WAIT% READY%     PID     TID  THREAD\n");
	for (size_t i = 0; i < rows->n && i < t->n_rows; i++) {
		const struct top_row *r = &rows->items[i];

		print(o, "%6.1f %6.1f %6.1f %7" PRId32 " %7" PRId32 "  ",
		      percent(r->self, r->total), percent(r->waited, r->total),
		      percent(r->ready, r->total), r->pid, r->tid);
		print_name(o, OUT_NAME, r->name);
		if (*r->reason) {
			out_str(o, "  ");
			print_name(o, OUT_REASON, r->reason);
		}
		out_char(o, '\n');
	}
}

static void print_waits(const struct top *t, struct out *o, const struct top_view *v)
{
	const struct top_rows *rows = &v->lists[TOP_WAITS];

	out_str(o, "THREADS  WAIT%  WAITS FOR\n");
	for (size_t i = 0; i < rows->n && i < t->n_rows; i++) {
		const struct top_row *r = &rows->items[i];

		print(o, "%7.2f %6.1f  ", threads_of(v, r->self),
		      percent(r->self, v->waited + v->ready));
		print_name(o, OUT_REASON, r->name);
		out_char(o, '\n');
	}
}

static void print_text(const struct top *t, struct out *o, const struct top_view *v,
		       const struct top_facts *f)
{
	print_head(t, o, v, f);
	print_functions(t, o, v);
	print_threads(t, o, v);
	print_waits(t, o, v);
	out_char(o, '\n');
}

static void json_function(struct out *o, const struct top_row *r)
{
	out_char(o, '{');
	json_string(o, "name", strcmp(r->name, "??") == 0 ? NULL : r->name);
	json_member_string(o, "linkage_name", r->linkage_name);
	json_member_string(o, "module", r->module);
	json_member_number(o, "self_ns", r->self);
	json_member_number(o, "total_ns", r->total);
}

static void json_thread(struct out *o, const struct top_row *r)
{
	out_char(o, '{');
	json_string(o, "name", r->name);
	json_member_string(o, "process", r->module);
	json_member_number(o, "pid", (uint64_t)r->pid);
	json_member_number(o, "tid", (uint64_t)r->tid);
	json_member_number(o, "running_ns", r->self);
	json_member_number(o, "waiting_ns", r->waited);
	json_member_number(o, "runnable_ns", r->ready);
	json_member_string(o, "reason", r->reason);
}

static void json_wait(struct out *o, const struct top_row *r)
{
	out_char(o, '{');
	json_string(o, "reason", r->name);
	json_member_number(o, "waiting_ns", r->self);
	json_member_number(o, "threads", r->n_threads);
}

static void json_list(const struct top *t, struct out *o, const char *key,
		      const struct top_rows *rows,
		      void (*print_row)(struct out *o, const struct top_row *r))
{
	out_char(o, ',');
	json_key(o, key);
	out_char(o, '[');
	for (size_t i = 0; i < rows->n && i < t->n_rows; i++) {
		if (i)
			out_char(o, ',');
		print_row(o, &rows->items[i]);
		out_char(o, '}');
	}
	out_char(o, ']');
}

static uint64_t realtime_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void print_json(const struct top *t, struct out *o, const struct top_view *v,
		       const struct top_facts *f)
{
	out_char(o, '{');
	json_string(o, "target", t->target);
	json_member_number(o, "time_ms", realtime_ms());
	json_member_string(o, "method", top_method(f));
	json_member_string(o, "event", t->event);
	json_member_number(o, "frequency", t->options.frequency);
	json_member_number(o, "span_ns", v->span_ns);
	json_member_number(o, "running_ns", v->running);
	json_member_number(o, "waiting_ns", v->waited);
	json_member_number(o, "runnable_ns", v->ready);
	json_member_number(o, "lost", f->lost);
	json_member_number(o, "throttled", f->throttled);
	json_member_number(o, "threads_left_out", f->n_left_out);
	json_member_truth(o, "kernel_hidden", f->is_kernel_hidden);
	json_member_number(o, "own_ppm", (uint64_t)(1e6 * f->own));
	json_member_truth(o, "ended", f->has_ended);
	out_char(o, ',');
	json_key(o, "exit_status");
	if (f->exit_status < 0)
		out_str(o, "null");
	else
		out_dec(o, (uint64_t)f->exit_status);
	json_member_string(o, "reason",
			   f->has_ended && !*f->why ? "all processes have ended" : f->why);
	json_list(t, o, "functions", &v->lists[TOP_FUNCTIONS], json_function);
	json_list(t, o, "threads", &v->lists[TOP_THREADS], json_thread);
	json_list(t, o, "waits", &v->lists[TOP_WAITS], json_wait);
	out_str(o, "}\n");
}

/* Takes a signal; returns whether it ends the command. */
static bool take_signal(int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof info) != sizeof info)
		return false;
	if (info.ssi_signo == SIGTSTP)
		top_stop();
	return info.ssi_signo != SIGTSTP && info.ssi_signo != SIGWINCH;
}

/* Waits until @due; returns false if a signal ends the command. */
static bool wait_until(int fd, uint64_t due)
{
	bool has_signal = false;
	bool has_input;

	while (top_now() < due) {
		top_wait(fd, -1, due, &has_signal, &has_input);
		if (has_signal && take_signal(fd))
			return false;
	}
	return true;
}

int top_text_run(struct top *t)
{
	const uint64_t interval = (uint64_t)(t->interval * 1e9);
	uint64_t due = top_now() + TOP_LATE_NS + interval;
	bool has_ended = false;
	struct out o;
	int status;

	common_out_init(&t->common, &o);
	for (uint32_t i = 0; (!t->count || i < t->count) && !has_ended && !o.failed; i++) {
		struct top_facts facts;
		struct top_view view;

		if (!wait_until(t->signals, due))
			break;
		top_take(t, true, &view, &facts);
		(t->common.json ? print_json : print_text)(t, &o, &view, &facts);
		has_ended = facts.has_ended;
		top_view_deinit(&view);
		out_flush(&o);
		due += interval;
		/* Whoever was stopped does not catch up. */
		due = due > top_now() ? due : top_now() + interval;
	}
	status = common_status(&o, false);
	out_deinit(&o);
	return status;
}
