/* SPDX-License-Identifier: MIT */
#include "host/exchange/perf_directory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "host/base/path.h"
#include "host/exchange/perf_file.h"
#include "host/file/codec.h"
#include "safe/base/error.h"

/* Most files of a directory: one for each processor, at most. */
#define MOST_FILES 8192

/* The header: where its section of records is stated, and its bits of facts. */
#define HEADER_SIZE  104
#define HEADER_DATA  40
#define HEADER_FACTS 72
#define FACTS_BYTES  32

/* Bytes of the header of a record, and of a section in the list of facts. */
#define RECORD_HEADER 8
#define SECTION_SIZE  16

bool fathom_is_perf_directory(const char *path)
{
	struct fathom_path data;
	struct stat s;

	return !stat(path, &s) && S_ISDIR(s.st_mode) &&
	       fathom_path_format(&data, "%s/data", path) && !stat(data.text, &s) &&
	       S_ISREG(s.st_mode);
}

/* Sets the error @err of the directory @path. */
static fathom_err fail(fathom_err err, const char *path, struct fathom_errinfo *reterr)
{
	if (err == FATHOM_E_MEMORY)
		return fathom_fail_memory(reterr);
	(void)fathom_fail(reterr, err, "", 0,
			  err == FATHOM_E_LIMIT       ? "does not fit the memory budget"
			  : err == FATHOM_E_CANCELLED ? "the caller has given it up"
						      : "is a directory, and none of perf record "
							"--threads");
	fathom_errinfo_set_file(reterr, path);
	return err;
}

static fathom_err append(struct fathom_sink *to, struct fathom_bytes b)
{
	while (b.size) {
		uint64_t n;

		FATHOM_TRY(fathom_sink_grow(to));
		n = to->cap - to->size;
		n = n < b.size ? n : b.size;
		memcpy(to->data + to->size, b.data, (size_t)n);
		to->size += n;
		b = bytes_from(b, n);
	}
	return FATHOM_OK;
}

/* Appends the record that begins another file's. */
static fathom_err append_part(struct fathom_sink *to)
{
	const struct {
		uint32_t type;
		uint16_t misc;
		uint16_t size;
	} part = { .type = FATHOM_PERF_PART, .size = RECORD_HEADER };

	return append(to, (struct fathom_bytes){ (const uint8_t *)&part, sizeof part });
}

/*
 * Appends the records of file "data.@number"; *@ret_is_last: there is none. Files without records
 * are empty.
 */
static fathom_err append_file(struct fathom_sink *to, const char *directory, unsigned number,
			      bool *ret_is_last, struct fathom_errinfo *reterr)
{
	struct fathom_path path;
	struct fathom_file *f;
	struct stat s;
	fathom_err err;

	*ret_is_last = !fathom_path_format(&path, "%s/data.%u", directory, number) ||
		       stat(path.text, &s) != 0;
	if (*ret_is_last || (S_ISREG(s.st_mode) && !s.st_size))
		return FATHOM_OK;
	FATHOM_TRY(fathom_file_map(&to->session->memory, path.text, &f, reterr));
	err = append_part(to);
	if (!err)
		err = append(to, f->bytes);
	if (err)
		(void)fail(err, directory, reterr);
	else if (fathom_file_is_cut(f))
		err = fathom_fail_cut(reterr, path.text);
	fathom_file_close(f);
	return err;
}

/* Returns the list of facts, one section for each bit of the header, which ends the file. */
static struct fathom_bytes facts_of(struct fathom_bytes data, uint64_t off)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < FACTS_BYTES; i++)
		n += (unsigned)__builtin_popcount(data.data[HEADER_FACTS + i]);
	return bytes_slice(data, off, n * SECTION_SIZE);
}

/* Makes the file in @to: all of @data, then the records of all files, then the list of facts. */
static fathom_err assemble(struct fathom_sink *to, const char *path, struct fathom_bytes data,
			   struct fathom_errinfo *reterr)
{
	const uint64_t off = load_u64(data.data + HEADER_DATA, false);
	const uint64_t size = load_u64(data.data + HEADER_DATA + 8, false);
	uint64_t section[2];
	const bool is_whole = size && off <= data.size && size <= data.size - off;
	bool is_last = false;
	fathom_err err = append(to, data);

	if (!err)
		err = append(to, is_whole ? bytes_slice(data, off, size) : bytes_from(data, off));
	if (err)
		return fail(err, path, reterr);
	for (unsigned i = 0; i < MOST_FILES && !is_last; i++)
		FATHOM_TRY(append_file(to, path, i, &is_last, reterr));
	section[0] = data.size;
	section[1] = is_whole ? to->size - data.size : 0;
	memcpy(to->data + HEADER_DATA, section, sizeof section);
	err = is_whole ? append(to, facts_of(data, off + size)) : FATHOM_OK;
	return err ? fail(err, path, reterr) : FATHOM_OK;
}

fathom_err fathom_perf_directory_open(struct fathom *session, const char *path,
				      struct fathom_file **ret, struct fathom_errinfo *reterr)
{
	struct fathom_memory *m = &session->memory;
	struct fathom_sink to = { .limit = fathom_memory_left(m), .session = session };
	struct fathom_path name;
	struct fathom_file *data;
	fathom_err err;

	FATHOM_TRY(fathom_file_reach(m, path, reterr));
	if (!fathom_path_format(&name, "%s/data", path))
		return fail(FATHOM_E_FORMAT, path, reterr);
	FATHOM_TRY(fathom_file_map(m, name.text, &data, reterr));
	if (data->bytes.size < HEADER_SIZE || memcmp(data->bytes.data, "PERFILE2", 8) != 0 ||
	    load_u64(data->bytes.data + 8, false) < HEADER_SIZE)
		err = fail(FATHOM_E_FORMAT, path, reterr);
	else
		err = assemble(&to, path, data->bytes, reterr);
	fathom_file_close(data);
	if (!err && fathom_file_wrap(m, path, to.data, to.size, to.cap, ret))
		err = fathom_fail_memory(reterr);
	if (err)
		fathom_sink_deinit(&to);
	return err;
}
