/* SPDX-License-Identifier: MIT */
#include "host/exchange/perf_file.h"

#include <string.h>

#include "safe/base/sort.h"

/* In the index, of a record that was compressed, beside its offset in what was unpacked. */
#define UNPACKED (UINT64_C(1) << 63)

/* Most events, and facts of a file. */
#define MOST_ATTRS    4096
#define MOST_FEATURES 256

/* Most streams of compressed records. */
#define MOST_PARTS 8192

/* Bytes that are read before their pages are given back. */
#define WINDOW (UINT64_C(16) << 20)

/* Records before memory and the caller are asked for. */
#define PACE 65536

/* Bytes of a file's header, of one without records, and of a record's header. */
#define HEADER_SIZE      104
#define PIPE_HEADER_SIZE 16
#define RECORD_HEADER    8

/* Records that perf itself writes: enum perf_user_event_type. */
enum {
	HEADER_ATTR = 64,
	HEADER_TRACING_DATA = 66,
	HEADER_BUILD_ID = 67,
	AUXTRACE = 71,
	HEADER_FEATURE = 80,
	COMPRESSED = 81,
	COMPRESSED2 = 83
};

/* Sections after the records: HEADER_ of tools/perf/util/header.h. */
enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CLOCK_DATA = 29
};

/* A bit of a record's misc: a build-id has its size after it. */
#define MISC_BUILD_ID_SIZE 0x8000u

/* Bytes of struct perf_event_attr that every version has, and of a build-id with its size. */
#define ATTR_SIZE     64
#define BUILD_ID_SIZE 24

static struct fathom_bytes all_bytes(const struct fathom_perf_file *p)
{
	return p->import->file->bytes;
}

static fathom_err fail(const struct fathom_perf_file *p, fathom_err err, const void *at,
		       const char *what, struct fathom_errinfo *reterr)
{
	const uint8_t *from = all_bytes(p).data;
	const uintptr_t off = (uintptr_t)at - (uintptr_t)from;

	return fathom_import_fail(p->import, err, off < all_bytes(p).size ? off : 0, what, reterr);
}

bool fathom_is_perf_file(struct fathom_bytes file)
{
	return file.size >= PIPE_HEADER_SIZE &&
	       (!memcmp(file.data, "PERFILE2", 8) || !memcmp(file.data, "2ELIFREP", 8) ||
		!memcmp(file.data, "PERFFILE", 8));
}

/* Reads an event's description from @c: struct perf_event_attr of whichever version. */
static struct fathom_perf_attr take_attr(struct fathom_cursor *c)
{
	struct fathom_perf_attr a = { .type = cur_u32(c) };
	const uint32_t size = cur_u32(c);
	struct fathom_cursor rest = cur_sub(c, size >= RECORD_HEADER ? size - RECORD_HEADER : 0);

	if (size < ATTR_SIZE)
		cur_fail(c);
	a.config = cur_u64(&rest);
	a.period = cur_u64(&rest);
	a.sample_type = cur_u64(&rest);
	a.read_format = cur_u64(&rest);
	a.flags = cur_u64(&rest);
	cur_skip(&rest, 24);
	/* Members that an old version does not have are 0. */
	a.branches = cur_u64(&rest);
	a.registers = cur_u64(&rest);
	cur_skip(&rest, 4);
	a.clock = cur_u32(&rest);
	cur_skip(&rest, 12);
	a.max_stack = cur_u16(&rest);
	return a;
}

/* Notes event @a, whose ids are what is left in @ids. */
static fathom_err add_attr(struct fathom_perf_file *p, const struct fathom_perf_attr *a,
			   struct fathom_cursor ids)
{
	if (p->attrs.n >= MOST_ATTRS)
		return FATHOM_E_LIMIT;
	/* Numbers of several events are not the same bytes. */
	p->id_bytes += cur_left(&ids);
	if (p->id_bytes > all_bytes(p).size)
		return FATHOM_E_CORRUPT;
	if (!fathom_array_push(&p->attrs, *a))
		return FATHOM_E_MEMORY;
	while (cur_left(&ids) >= 8) {
		uint32_t *number = fathom_key_map_at(&p->by_id, cur_u64(&ids));

		if (!number)
			return FATHOM_E_MEMORY;
		*number = (uint32_t)p->attrs.n - 1;
	}
	return FATHOM_OK;
}

/* Takes a text of perf: its size, and as many bytes, with zeros at the end. */
static struct fathom_str take_text(struct fathom_cursor *c)
{
	const uint32_t size = cur_u32(c);
	const char *text = (const char *)cur_take(c, size);

	return (struct fathom_str){ text, text ? (uint32_t)strnlen(text, size) : 0 };
}

/* Reads the command, its words apart by spaces. */
static fathom_err read_command(struct fathom_perf_file *p, struct fathom_cursor c)
{
	const uint32_t n = cur_u32(&c);

	p->command.n = 0;
	for (uint32_t i = 0; i < n && cur_left(&c); i++) {
		const struct fathom_str s = take_text(&c);

		if (!fathom_array_room(&p->command, (size_t)s.size + 1))
			return FATHOM_E_MEMORY;
		if (i)
			p->command.items[p->command.n++] = ' ';
		if (s.size)
			memcpy(p->command.items + p->command.n, s.data, s.size);
		p->command.n += s.size;
	}
	return FATHOM_OK;
}

/* Reads the names of events: they are described once more, with their ids. */
static void read_names(struct fathom_perf_file *p, struct fathom_cursor c)
{
	const uint32_t n = cur_u32(&c);
	const uint32_t size = cur_u32(&c);

	for (uint32_t i = 0; i < n && cur_left(&c); i++) {
		uint32_t n_ids;
		struct fathom_str name;

		cur_skip(&c, size);
		n_ids = cur_u32(&c);
		name = take_text(&c);
		cur_skip(&c, 8 * (uint64_t)n_ids);
		if (i < p->attrs.n && cur_ok(&c))
			p->attrs.items[i].name = name;
	}
}

/* Notes a build-id: of a record's body, misc of its header. */
static fathom_err add_build_id(struct fathom_perf_file *p, struct fathom_cursor c, uint32_t misc)
{
	struct fathom_perf_build_id id = { .size = 20 };
	uint32_t number;
	const char *path;
	size_t n;

	cur_skip(&c, 4);
	id.data = cur_take(&c, BUILD_ID_SIZE);
	path = (const char *)c.p;
	if (!id.data || !memchr(path, 0, (size_t)cur_left(&c)) || !*path)
		return FATHOM_OK;
	if (misc & MISC_BUILD_ID_SIZE)
		id.size = id.data[20] <= 20 ? id.data[20] : 0;
	n = p->paths.n;
	number = fathom_name_table_add(&p->paths, path);
	if (number == FATHOM_KEY_NEW || (p->paths.n > n && !fathom_array_push(&p->build_ids, id)))
		return FATHOM_E_MEMORY;
	return FATHOM_OK;
}

static fathom_err read_build_ids(struct fathom_perf_file *p, struct fathom_cursor c)
{
	while (cur_left(&c) >= RECORD_HEADER) {
		const uint8_t *header = c.p;
		const uint32_t misc = load_u16(header + 4, false);
		const uint16_t size = load_u16(header + 6, false);
		struct fathom_cursor body = cur_sub(&c, size);

		if (size < RECORD_HEADER || !cur_ok(&c))
			break;
		cur_skip(&body, RECORD_HEADER);
		FATHOM_TRY(add_build_id(p, body, misc));
	}
	return FATHOM_OK;
}

/* Reads one section of facts. */
static fathom_err read_feature(struct fathom_perf_file *p, uint64_t number, struct fathom_cursor c)
{
	switch (number) {
	case FEATURE_BUILD_ID:
		return read_build_ids(p, c);
	case FEATURE_HOSTNAME:
		p->host = take_text(&c);
		break;
	case FEATURE_OSRELEASE:
		p->kernel = take_text(&c);
		break;
	case FEATURE_ARCH:
		p->machine = take_text(&c);
		break;
	case FEATURE_CMDLINE:
		return read_command(p, c);
	case FEATURE_EVENT_DESC:
		read_names(p, c);
		break;
	case FEATURE_CLOCK_DATA:
		cur_skip(&c, 8);
		p->wall_ns = cur_u64(&c);
		p->clock_ns = cur_u64(&c);
		break;
	default:
		break;
	}
	return FATHOM_OK;
}

/* Returns where the time of a sample with @type is, from its header on; 0: it has none. */
static size_t time_of_sample(uint64_t type)
{
	size_t off = RECORD_HEADER;

	off += type & PERF_SAMPLE_IDENTIFIER ? 8 : 0;
	off += type & PERF_SAMPLE_IP ? 8 : 0;
	off += type & PERF_SAMPLE_TID ? 8 : 0;
	return type & PERF_SAMPLE_TIME ? off : 0;
}

/* Returns how many bytes before a record's end its time begins; 0: it has none. */
static size_t time_of_trailer(const struct fathom_perf_attr *a)
{
	const uint64_t type = a->sample_type;
	size_t off = 8;

	if (!(type & PERF_SAMPLE_TIME) || !(a->flags & FATHOM_PERF_ATTR_ID_ALL))
		return 0;
	off += type & PERF_SAMPLE_ID ? 8 : 0;
	off += type & PERF_SAMPLE_STREAM_ID ? 8 : 0;
	off += type & PERF_SAMPLE_CPU ? 8 : 0;
	off += type & PERF_SAMPLE_IDENTIFIER ? 8 : 0;
	return off;
}

/* Returns where the id of a sample of @type is; 0: it has none. */
static size_t id_of_sample(uint64_t type)
{
	size_t off = RECORD_HEADER;

	if (type & PERF_SAMPLE_IDENTIFIER)
		return off;
	off += type & PERF_SAMPLE_IP ? 8 : 0;
	off += type & PERF_SAMPLE_TID ? 8 : 0;
	off += type & PERF_SAMPLE_TIME ? 8 : 0;
	off += type & PERF_SAMPLE_ADDR ? 8 : 0;
	return type & PERF_SAMPLE_ID ? off : 0;
}

/* Returns the number of the event with @id; UINT32_MAX: there is none. */
static uint32_t attr_with(const struct fathom_perf_file *p, uint64_t id)
{
	return fathom_key_map_find(&p->by_id, id);
}

/* Returns the number of the event that record @b is of; UINT32_MAX: of none that is known. */
static uint32_t attr_of(const struct fathom_perf_file *p, struct fathom_bytes b)
{
	const bool is_sample = load_u32(b.data, false) == PERF_RECORD_SAMPLE;
	uint64_t type;
	size_t off;
	uint32_t found;

	if (p->attrs.n <= 1)
		return p->attrs.n ? 0 : UINT32_MAX;
	/* Those of one file have the id at the same place. */
	type = p->attrs.items[0].sample_type;
	off = id_of_sample(type);
	if (!is_sample)
		off = type & PERF_SAMPLE_IDENTIFIER ? (size_t)b.size - 8 : 0;
	if (!off || off + 8 > b.size)
		return 0;
	found = attr_with(p, load_u64(b.data + off, false));
	/* Records that perf has made itself have the id 0. */
	return found == UINT32_MAX && !is_sample ? 0 : found;
}

/* Returns the time of record @b; 0: it has none. */
static uint64_t time_of(const struct fathom_perf_file *p, struct fathom_bytes b, uint32_t attr)
{
	const struct fathom_perf_attr *a;
	size_t off;

	if (attr == UINT32_MAX)
		return 0;
	a = &p->attrs.items[attr];
	if (load_u32(b.data, false) == PERF_RECORD_SAMPLE) {
		off = time_of_sample(a->sample_type);
		return off && off + 8 <= b.size ? load_u64(b.data + off, false) : 0;
	}
	off = time_of_trailer(a);
	return off && off + RECORD_HEADER <= b.size ? load_u64(b.data + b.size - off, false) : 0;
}

/* Puts record @b, at @place of the index, into it. */
static fathom_err add_record(struct fathom_perf_file *p, struct fathom_bytes b, uint64_t place,
			     struct fathom_errinfo *reterr)
{
	const uint32_t attr = attr_of(p, b);
	const struct fathom_keyed item = { time_of(p, b, attr), place };

	if (load_u32(b.data, false) == PERF_RECORD_SAMPLE) {
		if (attr == UINT32_MAX) {
			p->n_unknown++;
			return FATHOM_OK;
		}
		p->attrs.items[attr].n_samples++;
	}
	/* The index is sorted with as much memory again. */
	if (p->index.n % PACE == 0 &&
	    !fathom_memory_fits(&p->import->session->memory, 2 * sizeof item * (p->index.n + PACE)))
		return fathom_import_fail_budget(p->import, reterr);
	return fathom_array_push(&p->index, item) ? FATHOM_OK : fathom_fail_memory(reterr);
}

/* Appends the compressed bytes @b. */
static fathom_err pack(struct fathom_perf_file *p, struct fathom_bytes b)
{
	while (b.size) {
		uint64_t n;

		FATHOM_TRY(fathom_sink_grow(&p->packed));
		n = p->packed.cap - p->packed.size;
		n = n < b.size ? n : b.size;
		memcpy(p->packed.data + p->packed.size, b.data, (size_t)n);
		p->packed.size += n;
		b = bytes_from(b, n);
	}
	return FATHOM_OK;
}

/* Notes that compressed records from here on are another stream. */
static fathom_err begin_part(struct fathom_perf_file *p)
{
	const uint64_t last = p->parts.n ? p->parts.items[p->parts.n - 1] : 0;

	if (p->packed.size == last || p->parts.n >= MOST_PARTS)
		return FATHOM_OK;
	return fathom_array_push(&p->parts, p->packed.size) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Takes what pipe mode has as a record: an event with its ids. */
static fathom_err take_attr_record(struct fathom_perf_file *p, struct fathom_cursor body)
{
	const struct fathom_perf_attr a = take_attr(&body);

	return cur_ok(&body) ? add_attr(p, &a, body) : FATHOM_E_CORRUPT;
}

/* Takes a record of @b that is not the kernel's; *@ret_more bytes after it belong to it. */
static fathom_err take_own(struct fathom_perf_file *p, uint32_t type, struct fathom_bytes b,
			   uint64_t *ret_more)
{
	struct fathom_cursor body = cur_init(bytes_from(b, RECORD_HEADER), false);
	uint64_t size;

	switch (type) {
	case HEADER_ATTR:
		return take_attr_record(p, body);
	case HEADER_BUILD_ID:
		return add_build_id(p, body, load_u16(b.data + 4, false));
	case HEADER_FEATURE:
		size = cur_u64(&body);
		return read_feature(p, size, body);
	case HEADER_TRACING_DATA:
		*ret_more = ((uint64_t)cur_u32(&body) + 7) & ~UINT64_C(7);
		return FATHOM_OK;
	case AUXTRACE:
		*ret_more = cur_u64(&body);
		return FATHOM_OK;
	case FATHOM_PERF_PART:
		return begin_part(p);
	case COMPRESSED:
		return pack(p, bytes_from(b, RECORD_HEADER));
	case COMPRESSED2:
		size = cur_u64(&body);
		return pack(p, (struct fathom_bytes){
				       body.p, size < cur_left(&body) ? size : cur_left(&body) });
	default:
		return FATHOM_OK;
	}
}

/* Says why a record at @at cannot be taken. */
static fathom_err fail_record(const struct fathom_perf_file *p, fathom_err err, const void *at,
			      struct fathom_errinfo *reterr)
{
	if (err == FATHOM_E_MEMORY)
		return fathom_fail_memory(reterr);
	if (err == FATHOM_E_CANCELLED)
		return fathom_fail(reterr, err, "", 0, "the caller has given it up");
	if (err == FATHOM_E_LIMIT && p->attrs.n < MOST_ATTRS)
		return fathom_import_fail_budget(p->import, reterr);
	return fail(p, err, at,
		    err == FATHOM_E_LIMIT ? "has too many events"
					  : "a description of an event is too short, or has the "
					    "numbers of others",
		    reterr);
}

static bool is_wanted(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_SAMPLE:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_THROTTLE:
		return true;
	default:
		return false;
	}
}

/* Goes over the records of @b; those that were compressed have @mark in the index. */
static fathom_err scan(struct fathom_perf_file *p, struct fathom_bytes b, uint64_t base,
		       uint64_t mark, struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(b, false);
	const uint8_t *given_back = c.p;

	while (cur_left(&c)) {
		const uint8_t *at = c.p;
		uint64_t more = 0;
		struct fathom_bytes record;
		uint32_t type;
		fathom_err err;

		if (cur_left(&c) < RECORD_HEADER) {
			p->is_cut = true;
			break;
		}
		type = load_u32(at, false);
		record = (struct fathom_bytes){ at, load_u16(at + 6, false) };
		if (record.size < RECORD_HEADER)
			return fail(p, FATHOM_E_CORRUPT, at, "a record has an impossible size",
				    reterr);
		if (record.size > cur_left(&c)) {
			p->is_cut = true;
			break;
		}
		cur_skip(&c, record.size);
		if (is_wanted(type)) {
			FATHOM_TRY(add_record(p, record, (base + (uint64_t)(at - b.data)) | mark,
					      reterr));
		} else if (!mark) {
			err = take_own(p, type, record, &more);
			if (err)
				return fail_record(p, err, at, reterr);
		}
		if (more > cur_left(&c)) {
			p->is_cut = true;
			break;
		}
		cur_skip(&c, more);
		if ((uint64_t)(c.p - given_back) > WINDOW) {
			const uint64_t n = (uint64_t)(c.p - given_back);

			fathom_file_give_back(p->import->file,
					      (struct fathom_bytes){ given_back, n });
			given_back = c.p;
		}
		FATHOM_TRY(fathom_import_check(p->import, reterr));
	}
	return FATHOM_OK;
}

/* Sets the error that records are compressed, and nothing reads them: @why. */
static fathom_err fail_unread(struct fathom_perf_file *p, const struct fathom_errinfo *why,
			      struct fathom_errinfo *reterr)
{
	(void)fail(p, why->err, NULL, why->what, reterr);
	if (reterr)
		reterr->cause = why->cause;
	return why->err;
}

/* Decompresses the stream of records in @b, and goes over them. */
static fathom_err scan_stream(struct fathom_perf_file *p, struct fathom_bytes b,
			      struct fathom_errinfo *reterr)
{
	struct fathom_memory *m = &p->import->session->memory;
	const uint64_t begin = p->unpacked.size;
	const uint64_t counted = p->counted;
	fathom_err err;

	p->unpacked.is_short = false;
	err = fathom_codec_zstd.stream(m, b, &p->unpacked);
	/* perf does not end the stream. */
	if (err == FATHOM_E_CORRUPT && p->unpacked.is_short)
		err = FATHOM_OK;
	p->counted = p->unpacked.cap;
	fathom_memory_count(m, p->counted - counted);
	if (err == FATHOM_E_LIMIT || err == FATHOM_E_MEMORY || err == FATHOM_E_CANCELLED)
		return fail_record(p, err, NULL, reterr);
	if (err)
		return fail(p, FATHOM_E_CORRUPT, NULL, "has damaged compressed records", reterr);
	return scan(p, (struct fathom_bytes){ p->unpacked.data + begin, p->unpacked.size - begin },
		    begin, UNPACKED, reterr);
}

/* Decompresses records, each stream of them, and goes over them. */
static fathom_err scan_packed(struct fathom_perf_file *p, struct fathom_errinfo *reterr)
{
	struct fathom_memory *m = &p->import->session->memory;
	struct fathom_errinfo why;
	fathom_err err;
	uint64_t left;
	uint64_t begin = 0;

	if (!p->packed.size)
		return FATHOM_OK;
	left = fathom_memory_left(m);
	p->unpacked.limit = left > p->packed.cap ? left - p->packed.cap : 0;
	err = fathom_codec_zstd.open(m, &why);
	if (err)
		return fail_unread(p, &why, reterr);
	for (size_t i = 0; i <= p->parts.n && !err; i++) {
		const uint64_t end = i < p->parts.n ? p->parts.items[i] : p->packed.size;
		const struct fathom_bytes b = { p->packed.data + begin, end - begin };

		if (b.size)
			err = scan_stream(p, b, reterr);
		begin = end;
	}
	fathom_sink_deinit(&p->packed);
	return err;
}

/* Takes a section of the file from @c: its offset and size. */
static struct fathom_bytes take_section(const struct fathom_perf_file *p, struct fathom_cursor *c)
{
	const uint64_t off = cur_u64(c);
	const uint64_t size = cur_u64(c);

	return bytes_slice(all_bytes(p), off, size);
}

/* Reads the events, each of @size bytes with where its ids are. */
static fathom_err read_attrs(struct fathom_perf_file *p, struct fathom_bytes b, uint64_t size,
			     struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(b, false);

	if (size < ATTR_SIZE + 16 || !b.size)
		return fail(p, FATHOM_E_CORRUPT, b.data, "describes no events", reterr);
	while (cur_left(&c)) {
		struct fathom_cursor one = cur_sub(&c, size);
		struct fathom_cursor ids = one;
		struct fathom_perf_attr a;
		fathom_err err;

		cur_skip(&ids, size - 16);
		a = take_attr(&one);
		if (!cur_ok(&c) || !cur_ok(&one) || !cur_ok(&ids))
			return fail_record(p, FATHOM_E_CORRUPT, b.data, reterr);
		err = add_attr(p, &a, cur_init(take_section(p, &ids), false));
		if (err)
			return fail_record(p, err, b.data, reterr);
	}
	return FATHOM_OK;
}

/* Reads the facts, whose sections are listed after the records, which end at @off. */
static fathom_err read_features(struct fathom_perf_file *p, const uint8_t *bits, uint64_t off,
				struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(bytes_from(all_bytes(p), off), false);

	for (unsigned i = 0; i < MOST_FEATURES && cur_left(&c); i++)
		if (bits[i / 8] >> i % 8 & 1) {
			const struct fathom_bytes b = take_section(p, &c);

			if (read_feature(p, i, cur_init(b, false)))
				return fathom_fail_memory(reterr);
		}
	return FATHOM_OK;
}

static fathom_err read_file(struct fathom_perf_file *p, struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(all_bytes(p), false);
	struct fathom_bytes attrs;
	uint64_t attr_size;
	uint64_t off;
	uint64_t size;

	cur_skip(&c, 16);
	attr_size = cur_u64(&c);
	attrs = take_section(p, &c);
	off = cur_u64(&c);
	size = cur_u64(&c);
	cur_skip(&c, 16);
	if (cur_left(&c) < 32)
		return fail(p, FATHOM_E_CORRUPT, c.p, "is shorter than its header", reterr);
	FATHOM_TRY(read_attrs(p, attrs, attr_size, reterr));
	if (off > all_bytes(p).size)
		return fail(p, FATHOM_E_CORRUPT, c.p, "ends before its records", reterr);
	/* perf writes the size at its end. */
	if (!size || size > all_bytes(p).size - off) {
		size = all_bytes(p).size - off;
		p->is_cut = true;
	} else {
		FATHOM_TRY(read_features(p, c.p, off + size, reterr));
	}
	return scan(p, bytes_slice(all_bytes(p), off, size), off, 0, reterr);
}

static fathom_err sort_index(struct fathom_perf_file *p, struct fathom_errinfo *reterr)
{
	struct fathom_keyed_array scratch = { 0 };

	if (!fathom_array_room(&scratch, p->index.n))
		return fathom_fail_memory(reterr);
	fathom_sort_keyed(p->index.items, scratch.items, p->index.n);
	fathom_array_free(&scratch);
	return FATHOM_OK;
}

fathom_err fathom_perf_file_open(struct fathom_perf_file *p, struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(all_bytes(p), false);
	const struct fathom_sink sink = { .limit = fathom_memory_left(&p->import->session->memory),
					  .session = p->import->session };
	const uint8_t *magic;
	uint64_t size;

	p->packed = sink;
	p->unpacked = sink;
	magic = cur_take(&c, 8);
	if (memcmp(magic, "2ELIFREP", 8) == 0)
		return fail(
			p, FATHOM_E_UNSUPPORTED, NULL,
			"is of a machine with another byte order; collapsed stacks, which can be "
			"made of it with perf script and stackcollapse-perf.pl, are read",
			reterr);
	if (memcmp(magic, "PERFILE2", 8) != 0)
		return fail(p, FATHOM_E_UNSUPPORTED, NULL,
			    "is of perf before 3.0; a file that a later perf writes is read",
			    reterr);
	size = cur_u64(&c);
	if (size == PIPE_HEADER_SIZE)
		FATHOM_TRY(scan(p, bytes_from(all_bytes(p), size), size, 0, reterr));
	else if (size >= HEADER_SIZE)
		FATHOM_TRY(read_file(p, reterr));
	else
		return fail(p, FATHOM_E_CORRUPT, NULL, "has a header of an impossible size",
			    reterr);
	FATHOM_TRY(scan_packed(p, reterr));
	return sort_index(p, reterr);
}

struct fathom_bytes fathom_perf_file_bytes(const struct fathom_perf_file *p, size_t i)
{
	const uint64_t place = p->index.items[i].value;
	const struct fathom_bytes all = { p->unpacked.data, p->unpacked.size };
	const struct fathom_bytes b = place & UNPACKED ? bytes_from(all, place & ~UNPACKED)
						       : bytes_from(all_bytes(p), place);
	const uint64_t size = load_u16(b.data + 6, false);

	/* The file may have changed since the index was made. */
	return (struct fathom_bytes){ b.data, size < RECORD_HEADER ? RECORD_HEADER
					      : size < b.size      ? size
								   : b.size };
}

struct fathom_bytes fathom_perf_file_build_id(struct fathom_perf_file *p, const char *path)
{
	const size_t n = p->build_ids.n;
	const uint32_t number = fathom_name_table_add(&p->paths, path);

	if (number >= n)
		return (struct fathom_bytes){ NULL, 0 };
	return (struct fathom_bytes){ p->build_ids.items[number].data,
				      p->build_ids.items[number].size };
}

/* Parts a call chain, of @n addresses at @chain, into the kernel's and the program's. */
static void part_chain(const uint8_t *chain, uint64_t n, struct fathom_perf_record *ret,
		       struct fathom_perf_more *more)
{
	const uint64_t first_marker = (uint64_t)PERF_CONTEXT_MAX;
	uint64_t context = ret->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	bool is_user = context == PERF_RECORD_MISC_USER;

	if (n && load_u64(chain, false) < first_marker && is_user) {
		more->user = chain;
	}
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t pc = load_u64(chain + 8 * i, false);

		if (pc < first_marker) {
			if (is_user && more->user)
				more->n_user++;
			else if (!is_user && ret->sample.kernel)
				ret->sample.n_kernel++;
			continue;
		}
		is_user = pc == (uint64_t)PERF_CONTEXT_USER;
		if (is_user && !more->user) {
			more->user = chain + 8 * (i + 1);
		} else if (pc == (uint64_t)PERF_CONTEXT_KERNEL && !ret->sample.kernel) {
			/* Whoever reads it expects the marker first. */
			ret->sample.kernel = chain + 8 * i;
			ret->sample.n_kernel = 1;
		} else {
			/* Of a guest, or what comes again. */
			more->is_part = true;
			break;
		}
	}
}

/* Skips the values of counters. */
static void skip_read(struct fathom_cursor *c, uint64_t format)
{
	const unsigned per_value = 1u + (format & PERF_FORMAT_ID ? 1 : 0) + (format & 16 ? 1 : 0);
	uint64_t n = 1;

	if (format & PERF_FORMAT_GROUP)
		n = cur_u64(c);
	else
		cur_skip(c, 8 * (uint64_t)per_value);
	cur_skip(c, format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 8 : 0);
	cur_skip(c, format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 8 : 0);
	if (format & PERF_FORMAT_GROUP)
		cur_skip(c, n <= cur_left(c) / 8 ? n * 8 * per_value : UINT64_MAX);
}

/* Skips the branches that a processor has recorded. */
static void skip_branches(struct fathom_cursor *c, uint64_t branches)
{
	const uint64_t n = cur_u64(c);

	/* PERF_SAMPLE_BRANCH_HW_INDEX, since Linux 5.7; _COUNTERS, since 6.8, after them. */
	cur_skip(c, branches & UINT64_C(1) << 17 ? 8 : 0);
	cur_skip(c, n <= cur_left(c) / 24 ? n * 24 : UINT64_MAX);
	if (branches & UINT64_C(1) << 19)
		cur_skip(c, n * 8);
}

/* Takes the registers and the copy of the stack. */
static void take_stack(struct fathom_cursor *c, const struct fathom_perf_attr *a,
		       struct fathom_perf_record *ret)
{
	if (a->sample_type & PERF_SAMPLE_REGS_USER) {
		ret->sample.abi = cur_u64(c);
		if (ret->sample.abi)
			ret->sample.registers =
				cur_take(c, 8 * (uint64_t)__builtin_popcountll(a->registers));
	}
	if (a->sample_type & PERF_SAMPLE_STACK_USER) {
		const uint64_t size = cur_u64(c);
		uint64_t used;

		if (!size)
			return;
		ret->sample.stack.data = cur_take(c, size);
		used = cur_u64(c);
		ret->sample.stack.size = used <= size ? (size_t)used : 0;
	}
}

/* Decodes what comes first in a sample of @type, up to its period. */
static void take_head(struct fathom_cursor *c, uint64_t type, struct fathom_perf_record *ret,
		      struct fathom_perf_more *more)
{
	cur_skip(c, type & PERF_SAMPLE_IDENTIFIER ? 8 : 0);
	if (type & PERF_SAMPLE_IP)
		more->ip = cur_u64(c);
	ret->pid = type & PERF_SAMPLE_TID ? (int32_t)cur_u32(c) : -1;
	ret->tid = type & PERF_SAMPLE_TID ? (int32_t)cur_u32(c) : -1;
	if (type & PERF_SAMPLE_TIME)
		ret->ns = cur_u64(c);
	cur_skip(c, type & PERF_SAMPLE_ADDR ? 8 : 0);
	cur_skip(c, type & PERF_SAMPLE_ID ? 8 : 0);
	cur_skip(c, type & PERF_SAMPLE_STREAM_ID ? 8 : 0);
	cur_skip(c, type & PERF_SAMPLE_CPU ? 8 : 0);
	if (type & PERF_SAMPLE_PERIOD)
		ret->sample.period = cur_u64(c);
}

static void decode_sample(struct fathom_cursor *c, const struct fathom_perf_attr *a,
			  struct fathom_perf_record *ret, struct fathom_perf_more *more)
{
	const uint64_t type = a->sample_type;

	ret->sample.period = a->flags & FATHOM_PERF_ATTR_FREQUENCY ? 1 : a->period;
	take_head(c, type, ret, more);
	if (type & PERF_SAMPLE_READ)
		skip_read(c, a->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		const uint64_t n = cur_u64(c);
		const uint8_t *chain = cur_take(c, n <= cur_left(c) / 8 ? n * 8 : UINT64_MAX);

		if (chain)
			part_chain(chain, n, ret, more);
	}
	if (type & PERF_SAMPLE_RAW)
		cur_skip(c, cur_u32(c));
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(c, a->branches);
	take_stack(c, a, ret);
}

bool fathom_perf_file_record(struct fathom_perf_file *p, size_t i, struct fathom_perf_record *ret,
			     struct fathom_perf_more *more)
{
	const struct fathom_bytes b = fathom_perf_file_bytes(p, i);
	struct fathom_cursor c = cur_init(b, false);

	*ret = (struct fathom_perf_record){ .type = cur_u32(&c) };
	*more = (struct fathom_perf_more){ .attr = attr_of(p, b) };
	ret->misc = cur_u16(&c);
	ret->ns = p->index.items[i].key;
	cur_skip(&c, 2);
	if (ret->type == PERF_RECORD_SAMPLE) {
		if (more->attr == UINT32_MAX)
			return false;
		decode_sample(&c, &p->attrs.items[more->attr], ret, more);
	} else {
		/* The end of the record, which depends on the event, follows names and a NUL. */
		fathom_perf_body_parse(&c, 0, ret);
	}
	if (ret->type == PERF_RECORD_MMAP)
		ret->type = PERF_RECORD_MMAP2;
	return cur_ok(&c);
}

void fathom_perf_file_close(struct fathom_perf_file *p)
{
	fathom_array_free(&p->attrs);
	fathom_key_map_deinit(&p->by_id);
	fathom_name_table_deinit(&p->paths);
	fathom_array_free(&p->build_ids);
	fathom_array_free(&p->command);
	fathom_array_free(&p->index);
	fathom_array_free(&p->parts);
	fathom_memory_uncount(&p->import->session->memory, p->counted);
	fathom_sink_deinit(&p->packed);
	fathom_sink_deinit(&p->unpacked);
}
