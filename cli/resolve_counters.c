/* SPDX-License-Identifier: MIT */
#include "cli/resolve_counters.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/json.h"

static void fill_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGUSR1);
	(void)sigaddset(set, SIGTERM);
}

static uint64_t read_count(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Writes seconds with six digits after the point. */
static void print_seconds(struct out *o, const char *name, uint64_t ns)
{
	uint64_t rest = ns / 1000 % 1000000;

	json_key(o, name);
	out_dec(o, ns / 1000000000);
	out_char(o, '.');
	for (uint64_t unit = 100000; unit; unit /= 10) {
		out_char(o, (char)('0' + rest / unit));
		rest %= unit;
	}
}

static void print_phases(struct out *o, const struct row_counters *c,
			 const struct fathom_resolver_counts *r)
{
	out_str(o, ",\"seconds\":{");
	print_seconds(o, "wait", read_count(&c->input->wait_ns));
	out_char(o, ',');
	print_seconds(o, "read", read_count(&c->read_ns));
	out_char(o, ',');
	print_seconds(o, "open", r->open_ns);
	out_char(o, ',');
	print_seconds(o, "answer", r->answer_ns);
	out_char(o, ',');
	print_seconds(o, "decode", r->decode_ns);
	out_char(o, ',');
	print_seconds(o, "store", r->store_ns);
	out_char(o, ',');
	print_seconds(o, "write", read_count(&c->write_ns));
	out_char(o, '}');
}

/* Returns the word for counter @i of those of rows without a name. */
static const char *reason_word(unsigned i)
{
	return i <= FATHOM_REASON_NO_BASE
		       ? fathom_reason_name((enum fathom_reason)i)
		       : row_error_name((enum row_error)(i - FATHOM_REASON_NO_BASE - 1));
}

/* Writes the rows without a name by reason; two reasons may have one word. */
static void print_unresolved(struct out *o, const struct row_counters *c)
{
	bool is_first = true;

	out_str(o, ",\"unresolved\":{");
	for (unsigned i = 1; i < COUNTED_REASONS; i++) {
		uint64_t n = read_count(&c->unresolved[i]);
		bool was_said = false;

		for (unsigned k = 1; k < COUNTED_REASONS; k++) {
			if (k == i || strcmp(reason_word(k), reason_word(i)) != 0)
				continue;
			was_said |= k < i;
			n += read_count(&c->unresolved[k]);
		}
		if (!n || was_said || !*reason_word(i))
			continue;
		out_str(o, is_first ? "" : ",");
		json_key(o, reason_word(i));
		out_dec(o, n);
		is_first = false;
	}
	out_char(o, '}');
}

void row_counters_print(const struct row_counters *c)
{
	struct fathom_resolver_counts r;
	struct fathom_usage usage;
	struct out o;

	fathom_resolver_get_counts(c->resolver, &r, sizeof r);
	fathom_get_usage(c->session, &usage);
	out_init_kept(&o);
	out_char(&o, '{');
	json_key(&o, "rows");
	out_dec(&o, read_count(&c->rows));
	json_member_number(&o, "answered", read_count(&c->answered));
	json_member_number(&o, "equal_rows", r.equal_rows);
	json_member_number(&o, "blocks", read_count(&c->blocks));
	json_member_number(&o, "modules", r.open);
	json_member_number(&o, "opened", r.opened);
	json_member_number(&o, "from_stores", r.from_stores);
	json_member_number(&o, "put", r.put);
	json_member_number(&o, "evicted", r.evicted);
	json_member_number(&o, "hits", r.hits);
	json_member_number(&o, "misses", r.misses);
	json_member_number(&o, "known_missing", r.known_missing);
	json_member_number(&o, "missing", r.missing);
	json_member_number(&o, "bytes_in", read_count(&c->input->bytes));
	json_member_number(&o, "bytes_out", read_count(&c->bytes_out));
	json_member_number(&o, "memory", usage.memory_used);
	print_phases(&o, c, &r);
	print_unresolved(&o, c);
	out_str(&o, "}\n");
	/* One write: lines of several workers do not mix. */
	(void)!write(STDERR_FILENO, o.buf, o.n);
	out_deinit(&o);
}

static void *handle_signals(void *data)
{
	static const uint64_t one = 1;
	struct row_counters *c = data;
	sigset_t set;
	int number;

	fill_signals(&set);
	for (;;) {
		if (sigwait(&set, &number))
			continue;
		if (number == SIGUSR1) {
			row_counters_print(c);
		} else if (atomic_exchange(&c->is_stopped, true)) {
			(void)signal(SIGTERM, SIG_DFL);
			(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
			(void)kill(getpid(), SIGTERM);
		} else {
			(void)!write(c->stop_fd, &one, sizeof one);
		}
	}
	return NULL;
}

void row_counters_init(struct row_counters *c)
{
	sigset_t set;

	fill_signals(&set);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	c->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (c->stop_fd < 0) {
		complain("eventfd(2)", strerror(errno), NULL);
		exit(EXIT_USAGE);
	}
}

void row_counters_start(struct row_counters *c)
{
	sigset_t all;
	sigset_t before;

	/* It takes the signals by sigwait(3), which needs them blocked. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	c->has_thread = !pthread_create(&c->thread, NULL, handle_signals, c);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void row_counters_stop(struct row_counters *c)
{
	if (!c->has_thread)
		return;
	(void)pthread_cancel(c->thread);
	(void)pthread_join(c->thread, NULL);
	c->has_thread = false;
}
