/* SPDX-License-Identifier: MIT */
#include "host/syscalls/syscall_format.h"

#include <string.h>

#include "host/base/error_text.h"
#include "host/syscalls/decoder.h"
#include "safe/self/output.h"

/*
 * Errors that only tracers see: the kernel makes the call again, or returns EINTR (linux/errno.h).
 */
static const struct {
	int32_t number;
	const char *name;
	const char *text;
} restarts[] = {
	{ 512, "ERESTARTSYS", "To be restarted if SA_RESTART is set" },
	{ 513, "ERESTARTNOINTR", "To be restarted" },
	{ 514, "ERESTARTNOHAND", "To be restarted if no handler" },
	{ 516, "ERESTART_RESTARTBLOCK", "Interrupted by signal" },
};

#define COLUMN 40

static void put_gap(struct fathom_decoder *d, size_t begin)
{
	const struct fathom_syscall_options *o = d->options;
	const size_t column = o->column ? o->column : COLUMN;

	if (o->dialect == FATHOM_SYSCALL_ARROW) {
		fathom_put(d, " → ");
		return;
	}
	if (!o->is_unpadded && d->out)
		fathom_put_spaces(d, column - 1, d->out->len - begin + o->prefix);
	fathom_put(d, " = ");
}

/* Prints an error; returns its name. */
static const char *put_error(struct fathom_decoder *d, uint32_t number)
{
	const bool is_strace = d->options->dialect == FATHOM_SYSCALL_STRACE;
	const char *name = fathom_errno_name((int)number);
	const char *text = is_strace ? fathom_error_text((int)number) : NULL;

	for (size_t i = 0; i < sizeof restarts / sizeof *restarts; i++)
		if ((uint32_t)restarts[i].number == number) {
			fathom_put(d, "? ");
			fathom_put(d, restarts[i].name);
			fathom_put(d, is_strace ? " (" : "");
			fathom_put(d, is_strace ? restarts[i].text : "");
			fathom_put(d, is_strace ? ")" : "");
			return restarts[i].name;
		}
	fathom_put(d, "-1 ");
	if (name)
		fathom_put(d, name);
	else
		fathom_put_signed(d, number);
	if (text) {
		fathom_put(d, " (");
		fathom_put(d, text);
		fathom_put_char(d, ')');
	}
	return name;
}

/* Prints what the call has returned; returns the name of its error, or NULL. */
static const char *put_result(struct fathom_decoder *d)
{
	if (d->call.end == FATHOM_SYSCALL_NEVER) {
		fathom_put_char(d, '?');
		return NULL;
	}
	if (fathom_decode_has_failed(d)) {
		const char *name = put_error(d, (uint32_t)-d->call.result);

		return name ? name : "";
	}
	fathom_decode_result(d);
	return NULL;
}

void fathom_syscall_format(const struct fathom_syscall_record *record,
			   const struct fathom_syscall_options *options, struct fathom_text *out,
			   struct fathom_syscall_line *ret_line)
{
	struct fathom_syscall_record r = *record;
	struct fathom_decoder d = {
		.options = options, .record = &r, .out = out, .begin = out->len
	};
	struct fathom_syscall_line line = { 0 };
	const size_t begin = out->len;

	fathom_decode_begin(&d);
	line.name = d.syscall ? fathom_syscall_names + d.syscall->name : NULL;
	line.n = d.n;
	fathom_decode_half(&d, false, &line);
	line.entry = line.exit = line.result = (uint32_t)out->len;
	if (d.call.end != FATHOM_SYSCALL_NOT_YET) {
		fathom_decode_half(&d, true, &line);
		line.exit = (uint32_t)out->len;
		put_gap(&d, begin);
		line.result = (uint32_t)out->len;
		line.error = put_result(&d);
	}
	if (ret_line)
		*ret_line = line;
}

void fathom_syscall_format_dump(const struct fathom_syscall_record *record,
				const struct fathom_syscall_options *options,
				struct fathom_text *out)
{
	struct fathom_syscall_record r = *record;
	struct fathom_decoder d = { .options = options, .record = &r, .out = out };

	fathom_decode_begin(&d);
	if (d.call.end != FATHOM_SYSCALL_RETURNED || (d.call.result < 0 && d.call.result >= -4095))
		return;
	fathom_decode_dump(&d, false);
	fathom_decode_dump(&d, true);
}
