/* SPDX-License-Identifier: MIT */
/* Formats of profiles that are read. */
#include "host/exchange/importing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host/profile/samples_format.h"

/* Samples before the caller is asked whether to go on. */
#define PACE 4096

/* They are tried in this order; text that may be anything is the last. */
static const struct fathom_import_format formats[] = {
	{ fathom_is_perf_file, fathom_import_perf },
	{ fathom_is_pprof, fathom_import_pprof },
	{ fathom_is_cpuprofile, fathom_import_cpuprofile },
	{ fathom_is_collapsed, fathom_import_collapsed },
};

/* Appends what the writer passes on to the sink. */
static int keep(void *data, const void *bytes, size_t n)
{
	struct fathom_import *i = data;
	const uint8_t *from = bytes;

	while (n && !i->err) {
		size_t room;

		i->err = fathom_sink_grow(&i->sink);
		if (i->err)
			break;
		room = n < i->sink.cap - i->sink.size ? n : (size_t)(i->sink.cap - i->sink.size);
		memcpy(i->sink.data + i->sink.size, from, room);
		i->sink.size += room;
		from += room;
		n -= room;
	}
	return !i->err;
}

fathom_err fathom_import_fail(const struct fathom_import *i, fathom_err err, uint64_t off,
			      const char *what, struct fathom_errinfo *reterr)
{
	(void)fathom_fail(reterr, err, "", off, what);
	if (reterr)
		fathom_errinfo_set_file(reterr, i->file->path);
	return err;
}

fathom_err fathom_import_fail_budget(const struct fathom_import *i, struct fathom_errinfo *reterr)
{
	(void)fathom_import_fail(i, FATHOM_E_LIMIT, 0, "does not fit the memory budget", reterr);
	if (reterr)
		reterr->cause = FATHOM_CAUSE_BUDGET;
	return FATHOM_E_LIMIT;
}

fathom_err fathom_import_fail_line(const struct fathom_import *i, uint64_t line, const char *what,
				   struct fathom_errinfo *reterr)
{
	(void)fathom_import_fail(i, FATHOM_E_CORRUPT, line, what, reterr);
	if (reterr)
		reterr->cause = FATHOM_CAUSE_TEXT_LINE;
	return FATHOM_E_CORRUPT;
}

/* Returns how what was written has failed. */
static fathom_err fail_written(struct fathom_import *i, struct fathom_errinfo *reterr)
{
	if (i->err == FATHOM_E_LIMIT)
		return fathom_import_fail_budget(i, reterr);
	if (i->err == FATHOM_E_CANCELLED)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "the caller has given it up");
	return fathom_fail_memory(reterr);
}

fathom_err fathom_import_check(struct fathom_import *i, struct fathom_errinfo *reterr)
{
	if (!i->err && !fathom_keeps_pace(&i->pace))
		i->err = FATHOM_E_CANCELLED;
	return i->err || i->writer.no_memory ? fail_written(i, reterr) : FATHOM_OK;
}

void fathom_import_end(struct fathom_import *i, uint64_t ns)
{
	if (!i->file->is_short)
		fathom_profile_write_end(&i->writer, ns);
}

void fathom_import_about(struct fathom_import *i, const char *key, struct fathom_str text)
{
	char copy[4096];
	const size_t n = text.size < sizeof copy ? text.size : sizeof copy - 1;

	if (!n)
		return;
	memcpy(copy, text.data, n);
	copy[n] = '\0';
	fathom_profile_write_about(&i->writer, key, copy);
}

void fathom_import_about_number(struct fathom_import *i, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, value);
	fathom_profile_write_about(&i->writer, key, text);
}

/* Returns @number, which must not be @none. */
static uint32_t checked(struct fathom_import *i, uint32_t number, uint32_t none)
{
	if (number == none && !i->err)
		i->err = FATHOM_E_MEMORY;
	return number;
}

uint32_t fathom_import_symbol(struct fathom_import *i, const struct fathom_profile_symbol *s)
{
	return checked(i, fathom_table_symbol(&i->table, s), FATHOM_TABLE_NONE);
}

uint32_t fathom_import_module(struct fathom_import *i, const struct fathom_profile_module *m)
{
	return checked(i, fathom_table_module(&i->table, m), FATHOM_TABLE_NONE);
}

uint32_t fathom_import_location(struct fathom_import *i, const struct fathom_profile_location *l,
				uint32_t symbol)
{
	return checked(i, fathom_table_location(&i->table, l, symbol), FATHOM_TABLE_NONE);
}

uint32_t fathom_import_node(struct fathom_import *i, uint32_t caller, uint32_t location)
{
	return checked(i, fathom_table_node(&i->table, caller, location), 0);
}

/* Runs the reader of @f, and makes a file of what it has written. */
static fathom_err convert(struct fathom_import *i, const struct fathom_import_format *f,
			  struct fathom_file **ret, struct fathom_errinfo *reterr)
{
	fathom_profile_writer_begin(&i->writer, keep, i);
	FATHOM_TRY(f->read(i, reterr));
	if (fathom_file_is_cut(i->file))
		return fathom_fail_cut(reterr, i->file->path);
	if (!fathom_profile_writer_flush(&i->writer))
		return fail_written(i, reterr);
	if (fathom_file_wrap(&i->session->memory, i->file->path, i->sink.data, i->sink.size,
			     i->sink.cap, ret))
		return fathom_fail_memory(reterr);
	i->sink = (struct fathom_sink){ .data = NULL };
	return FATHOM_OK;
}

fathom_err fathom_import(struct fathom *session, const struct fathom_file *file,
			 struct fathom_file **ret, struct fathom_errinfo *reterr)
{
	struct fathom_import i = { .session = session,
				   .file = file,
				   .table = { .writer = &i.writer },
				   .sink = { .limit = fathom_memory_left(&session->memory),
					     .session = session },
				   .pace = fathom_pace_init(session, PACE) };
	const struct fathom_import_format *found = NULL;
	fathom_err err;

	for (size_t k = 0; k < sizeof formats / sizeof *formats && !found; k++)
		if (formats[k].is_it(file->bytes))
			found = &formats[k];
	if (!found)
		return fathom_import_fail(&i, FATHOM_E_FORMAT, 0, "is no profile", reterr);
	err = convert(&i, found, ret, reterr);
	fathom_profile_writer_deinit(&i.writer);
	fathom_stack_table_deinit(&i.table);
	fathom_sink_deinit(&i.sink);
	return err;
}
