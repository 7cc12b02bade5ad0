/* SPDX-License-Identifier: MIT */
#include "host/events/syscall_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/syscalls/syscall_files.h"

/* Room for usual texts. */
#define USUAL 4096

void fathom_syscall_text_options(const struct fathom_trace_syscalls *from,
				 struct fathom_syscall_options *ret)
{
	const uint32_t flags = from ? from->flags : 0;

	*ret = (struct fathom_syscall_options){
		.string_limit = from ? from->string_limit : FATHOM_SYSCALLS_STRING_LIMIT,
		.dialect = flags & FATHOM_SYSCALLS_STRACE ? FATHOM_SYSCALL_STRACE
							  : FATHOM_SYSCALL_ARROW,
		.is_verbose = (flags & FATHOM_SYSCALLS_VERBOSE) != 0,
		.is_unpadded = true,
	};
	if (flags & (FATHOM_SYSCALLS_HEX | FATHOM_SYSCALLS_ALL_HEX))
		ret->hex = flags & FATHOM_SYSCALLS_ALL_HEX ? 2 : 1;
	if (flags & (FATHOM_SYSCALLS_RAW | FATHOM_SYSCALLS_BOTH))
		ret->constants =
			flags & FATHOM_SYSCALLS_RAW ? FATHOM_SYSCALL_RAW : FATHOM_SYSCALL_BOTH;
}

void fathom_syscall_reporter_init(struct fathom_syscall_reporter *t,
				  const struct fathom_trace_syscalls *options)
{
	*t = (struct fathom_syscall_reporter){ .functions = NULL };
	fathom_syscall_text_options(options, &t->options);
	t->options.name_fd = fathom_syscall_files_name;
}

void fathom_syscall_reporter_deinit(struct fathom_syscall_reporter *t)
{
	free(t->line.text);
	free(t->dump.text);
	free(t->functions);
	*t = (struct fathom_syscall_reporter){ .functions = NULL };
}

/* Makes room for a text of @n bytes. */
static bool make_room(struct fathom_syscall_text *t, size_t n)
{
	char *text = n < t->cap ? t->text : realloc(t->text, n + 1);

	if (!text)
		return false;
	t->text = text;
	if (n >= t->cap)
		t->cap = n + 1;
	return true;
}

/*
 * Writes the text of @record to @to, or if @ret_line is NULL its bytes; returns false without
 * memory.
 */
static bool write_text(const struct fathom_syscall_reporter *t,
		       const struct fathom_syscall_record *record, struct fathom_syscall_text *to,
		       uint32_t *ret_size, struct fathom_syscall_line *ret_line)
{
	size_t n = USUAL;

	do {
		struct fathom_text text;

		if (!make_room(to, n))
			return false;
		text = text_init(to->text, to->cap);
		if (ret_line)
			fathom_syscall_format(record, &t->options, &text, ret_line);
		else
			fathom_syscall_format_dump(record, &t->options, &text);
		n = text.len;
	} while (n >= to->cap);
	*ret_size = (uint32_t)n;
	return true;
}

static void tell_arguments(struct fathom_trace_syscall *told,
			   const struct fathom_syscall_line *line)
{
	told->n_arguments = line->n;
	for (uint32_t i = 0; i < line->n && i < FATHOM_SYSCALL_ARGUMENTS; i++)
		told->arguments[i] = (struct fathom_syscall_argument_text){ line->args[i].name,
									    line->args[i].begin,
									    line->args[i].end };
}

struct fathom_trace_syscall *fathom_syscall_report(struct fathom_syscall_reporter *t,
						   const void *record, size_t n)
{
	struct fathom_trace_syscall *told = &t->told;
	struct fathom_syscall_record r;
	struct fathom_syscall_call call;
	struct fathom_syscall_line line;

	*told = (struct fathom_trace_syscall){ .record = record, .record_size = (uint32_t)n };
	/* It names descriptors where it has their names. */
	t->options.data = &r;
	if (!fathom_syscall_record_open(record, n, &r) ||
	    !write_text(t, &r, &t->line, &told->text_size, &line))
		return NULL;
	fathom_syscall_record_call(&r, &call);
	if (call.format & FATHOM_SYSCALL_DUMPED &&
	    !write_text(t, &r, &t->dump, &told->dump_size, NULL))
		return NULL;
	told->dump = told->dump_size ? t->dump.text : NULL;
	(void)snprintf(t->name, sizeof t->name, "syscall_%llu", (unsigned long long)call.number);
	told->name = line.name ? line.name : t->name;
	told->text = t->line.text;
	told->entry_size = line.entry;
	told->exit_size = line.exit;
	told->result_from = line.result;
	told->error = line.error;
	told->number = call.number;
	told->result = call.result;
	told->machine = call.machine;
	told->outcome = (uint8_t)(call.end == FATHOM_SYSCALL_RETURNED ? FATHOM_SYSCALL_HAS_ENDED
				  : call.end == FATHOM_SYSCALL_NEVER  ? FATHOM_SYSCALL_NEVER_ENDS
								      : FATHOM_SYSCALL_BEGINS);
	memcpy(told->values, call.args, sizeof told->values);
	tell_arguments(told, &line);
	return told;
}

const struct fathom_trace_function *fathom_syscall_function(struct fathom_syscall_reporter *t,
							    uint32_t machine, uint64_t number)
{
	const char *name = fathom_syscall_name(machine, (int64_t)number);
	struct fathom_trace_function *f;
	uint32_t table = 0;

	if (!t->functions)
		t->functions = calloc(FATHOM_SYSCALL_FUNCTIONS, sizeof *t->functions);
	if (!t->functions)
		return NULL;
	while (table + 1 < FATHOM_SYSCALL_TABLES && fathom_syscall_tables[table].machine != machine)
		table++;
	if (!name || number >= FATHOM_SYSCALLS_EACH)
		number = FATHOM_SYSCALLS_EACH - 1;
	f = &t->functions[table * FATHOM_SYSCALLS_EACH + number];
	f->number = (uint32_t)(f - t->functions);
	f->name = name ? name : "syscall";
	f->name_size = (uint32_t)strlen(f->name);
	f->module = FATHOM_SYSCALL_MODULE;
	return f;
}
