/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_format_options.h"

#include <stdlib.h>
#include <string.h>

#include "host/file/file.h"
#include "host/syscalls/syscall_format.h"

/* Reads descriptors between commas, "all" or "none"; after "!", all others. NULL: none. */
static fathom_err read_descriptors(const char *text, struct fathom_descriptor_set *ret,
				   struct fathom_errinfo *reterr)
{
	const bool is_inverted = text && *text == '!';
	char *copy = text ? strdup(text + is_inverted) : NULL;
	char *rest = copy;
	bool is_all = false;
	const char *word;

	if (text && !copy)
		return fathom_fail_memory(reterr);
	while ((word = strsep(&rest, ","))) {
		char *end;
		const long fd = strtol(word, &end, 10);

		is_all |= !strcmp(word, "all");
		if (!strcmp(word, "all") || !strcmp(word, "none"))
			continue;
		if (!*word || *end || fd < 0 || fd > INT32_MAX) {
			(void)fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "is no descriptor");
			fathom_errinfo_set_file(reterr, word);
			free(copy);
			return FATHOM_E_ARGUMENT;
		}
		if (!fathom_array_push(ret, (int32_t)fd)) {
			free(copy);
			return fathom_fail_memory(reterr);
		}
	}
	free(copy);
	if (is_all)
		ret->n = 0;
	ret->is_others = is_inverted != is_all;
	return FATHOM_OK;
}

static bool has_descriptor(const struct fathom_descriptor_set *s, int32_t fd)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i] == fd)
			return !s->is_others;
	return s->is_others;
}

fathom_err fathom_syscall_format_options_read(const struct fathom_trace_syscalls *from,
					      struct fathom_syscall_format_options *ret,
					      struct fathom_errinfo *reterr)
{
	ret->has_abbreviated = from->abbrev != NULL;
	ret->has_structs = from->verbose != NULL;
	ret->has_numbers = from->raw != NULL;
	ret->has_dumps = from->dump_reads || from->dump_writes;
	if (from->abbrev)
		FATHOM_TRY(fathom_syscall_set_read(from->abbrev, &ret->abbreviated, reterr));
	if (from->verbose)
		FATHOM_TRY(fathom_syscall_set_read(from->verbose, &ret->structs, reterr));
	if (from->raw)
		FATHOM_TRY(fathom_syscall_set_read(from->raw, &ret->numbers, reterr));
	FATHOM_TRY(read_descriptors(from->dump_reads, &ret->reads, reterr));
	return read_descriptors(from->dump_writes, &ret->writes, reterr);
}

void fathom_syscall_format_options_deinit(struct fathom_syscall_format_options *m)
{
	fathom_array_free(&m->reads);
	fathom_array_free(&m->writes);
}

static bool is_dumped(const struct fathom_syscall_format_options *m,
		      const struct fathom_syscall_call *call)
{
	switch (fathom_syscall_dump(call->machine, call->number)) {
	case FATHOM_DUMP_READ:
		return has_descriptor(&m->reads, (int32_t)call->args[0]);
	case FATHOM_DUMP_WRITE:
		return has_descriptor(&m->writes, (int32_t)call->args[0]);
	default:
		return false;
	}
}

uint16_t fathom_syscall_format_options_of(const struct fathom_syscall_format_options *m,
					  const struct fathom_syscall_call *call)
{
	uint16_t format = 0;

	if (m->has_abbreviated)
		format |= fathom_syscall_set_has(&m->abbreviated, call->machine, call->number)
				  ? FATHOM_SYSCALL_ABBREVIATED
				  : FATHOM_SYSCALL_WHOLE;
	if (m->has_structs && !fathom_syscall_set_has(&m->structs, call->machine, call->number))
		format |= FATHOM_SYSCALL_BY_ADDRESS;
	if (m->has_numbers && fathom_syscall_set_has(&m->numbers, call->machine, call->number))
		format |= FATHOM_SYSCALL_IN_NUMBERS;
	if (m->has_dumps && is_dumped(m, call))
		format |= FATHOM_SYSCALL_DUMPED;
	return format;
}
