/* SPDX-License-Identifier: MIT */
#include "host/target/space/snapshot_read.h"

#include <stdlib.h>

#include "fathom/symbolize.h"
#include "host/file/codec.h"
#include "safe/base/cursor.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"

/* The format is little-endian. */
#define SWAP (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

#define MAPPING_SIZE 32

struct snapshot {
	struct fathom_dump dump;
	struct fathom_array files;    /* of fathom_dump_file, as they come */
	struct fathom_array pieces;   /* of fathom_dump_piece, as they come */
	struct fathom_array code;     /* of fathom_dump_code */
	struct fathom_bytes mappings; /* the record */
};

bool fathom_snapshot_file_is(struct fathom_bytes bytes)
{
	const size_t size = sizeof FATHOM_SNAPSHOT_MAGIC - 1;

	return bytes.size >= size && memcmp(bytes.data, FATHOM_SNAPSHOT_MAGIC, size) == 0;
}

static fathom_err fail_memory(struct fathom_errinfo *reterr)
{
	return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
}

/* Where the header has what. */
#define VERSION_OFF 8
#define CRC_OFF     12
#define SIZE_OFF    16

/* Checks the header and moves @c to the body. */
static fathom_err read_header(struct fathom_cursor *c, struct fathom_errinfo *reterr)
{
	uint32_t crc;

	cur_skip(c, sizeof FATHOM_SNAPSHOT_MAGIC - 1);
	if (cur_u32(c) != FATHOM_SNAPSHOT_VERSION && cur_ok(c))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", VERSION_OFF,
				   "is a snapshot of another version of fathom");
	crc = cur_u32(c);
	if (cur_u64(c) != cur_left(c) || !cur_ok(c))
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", SIZE_OFF,
				   "the snapshot is not as long as it says: it was cut short");
	if (fathom_codec_crc32((struct fathom_bytes){ c->p, cur_left(c) }) != crc)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", CRC_OFF,
				   "the snapshot is damaged: its checksum is another");
	return FATHOM_OK;
}

static void read_process(struct snapshot *s, struct fathom_cursor *c)
{
	const uint64_t pid = cur_u64(c);
	const uint64_t page = cur_u64(c);
	const uint64_t entry = cur_u64(c);
	const uint8_t *command = cur_take(c, sizeof s->dump.command);

	if (!command)
		return;
	s->dump.pid = pid <= INT32_MAX ? (int)pid : 0;
	s->dump.page = fathom_dump_page(page);
	s->dump.entry = entry;
	memcpy(s->dump.command, command, sizeof s->dump.command);
	s->dump.command[sizeof s->dump.command - 1] = '\0';
}

static bool read_file(struct snapshot *s, struct fathom_cursor *c)
{
	struct fathom_dump_file f = { .id.device = cur_u64(c) };
	const uint8_t *name;

	f.id.inode = cur_u64(c);
	f.id.size = cur_u64(c);
	f.id.ctime_ns = (int64_t)cur_u64(c);
	f.deleted = cur_u32(c) & 1;
	f.name.size = cur_u32(c);
	name = cur_take(c, f.name.size);
	/* A path ends where the system would end it. */
	if (name && !memchr(name, '\0', f.name.size))
		f.name.data = (const char *)name;
	else
		f.name.size = 0;
	if (!fathom_array_reserve(&s->files, sizeof f, 1))
		return false;
	((struct fathom_dump_file *)s->files.data)[s->files.n++] = f;
	return true;
}

static bool read_memory(struct snapshot *s, struct fathom_cursor *c)
{
	struct fathom_dump_piece p = { .start = cur_u64(c) };
	uint64_t end;

	p.bytes = (struct fathom_bytes){ c->p, cur_left(c) };
	if (!p.bytes.size || __builtin_add_overflow(p.start, p.bytes.size, &end))
		return true;
	if (!fathom_array_reserve(&s->pieces, sizeof p, 1))
		return false;
	((struct fathom_dump_piece *)s->pieces.data)[s->pieces.n++] = p;
	return true;
}

/* A name that is no text, code that goes back or ends where it starts: it is left out. */
static bool read_code(struct snapshot *s, struct fathom_cursor *c)
{
	static const uint8_t sources[] = { 0, FATHOM_SOURCE_JITDUMP, FATHOM_SOURCE_PERF_MAP };
	struct fathom_dump_code k = { .start = cur_u64(c) };
	const struct fathom_dump_code *last;
	uint32_t source;

	k.end = cur_u64(c);
	k.symbol = cur_u64(c);
	k.size = cur_u64(c);
	source = cur_u32(c);
	k.name.size = cur_u32(c);
	k.name.data = (const char *)cur_take(c, k.name.size);
	last = s->code.n ? (struct fathom_dump_code *)s->code.data + s->code.n - 1 : NULL;
	if (!cur_ok(c) || !k.name.size || !source || source >= sizeof sources || k.start >= k.end ||
	    k.symbol > k.start || (last && last->end > k.start))
		return true;
	k.source = sources[source];
	if (!fathom_array_reserve(&s->code, sizeof k, 1))
		return false;
	((struct fathom_dump_code *)s->code.data)[s->code.n++] = k;
	return true;
}

static bool read_record(struct snapshot *s, uint32_t type, struct fathom_cursor c)
{
	switch (type) {
	case FATHOM_SNAPSHOT_PROCESS:
		read_process(s, &c);
		return true;
	case FATHOM_SNAPSHOT_FILE:
		return read_file(s, &c);
	case FATHOM_SNAPSHOT_MAPPINGS:
		s->mappings = (struct fathom_bytes){ c.p, cur_left(&c) };
		return true;
	case FATHOM_SNAPSHOT_MEMORY:
		return read_memory(s, &c);
	case FATHOM_SNAPSHOT_CODE:
		return read_code(s, &c);
	default:
		return true;
	}
}

static fathom_err read_records(struct snapshot *s, struct fathom_cursor *c,
			       struct fathom_errinfo *reterr)
{
	while (cur_left(c)) {
		const uint64_t at = (uint64_t)(c->p - s->dump.file->bytes.data);
		const uint32_t type = cur_u32(c);
		uint64_t size;
		struct fathom_cursor record;

		cur_skip(c, sizeof(uint32_t));
		size = cur_u64(c);
		record = cur_sub(c, size);
		cur_skip(c, (0 - size) & 7);
		if (!cur_ok(c))
			return fathom_fail(reterr, FATHOM_E_CORRUPT, "", at,
					   "a record of the snapshot reaches past its end");
		if (!read_record(s, type, record))
			return fail_memory(reterr);
	}
	return FATHOM_OK;
}

/* The pieces by address. What overlaps what is before it is left out. */
static bool sort_pieces(struct snapshot *s)
{
	const struct fathom_dump_piece *from = s->pieces.data;
	const size_t n = s->pieces.n;
	struct fathom_keyed *keyed = malloc((2 * n + 1) * sizeof *keyed);
	struct fathom_dump *d = &s->dump;

	d->pieces = malloc((n + 1) * sizeof *d->pieces);
	if (!keyed || !d->pieces) {
		free(keyed);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		keyed[i] = (struct fathom_keyed){ from[i].start, i };
	fathom_sort_keyed(keyed, keyed + n, n);
	for (size_t i = 0; i < n; i++) {
		const struct fathom_dump_piece *p = &from[keyed[i].value];
		const struct fathom_dump_piece *last =
			d->n_pieces ? &d->pieces[d->n_pieces - 1] : NULL;

		if (!last || p->start - last->start >= last->bytes.size)
			d->pieces[d->n_pieces++] = *p;
	}
	free(keyed);
	return true;
}

/* One line of the record; false when it is none that can be. */
static bool read_mapping(const struct snapshot *s, struct fathom_cursor *c,
			 struct fathom_mapping *ret)
{
	struct fathom_mapping m = { .start = cur_u64(c) };
	uint32_t file;
	uint32_t rights;

	m.end = cur_u64(c);
	m.off = cur_u64(c);
	file = cur_u32(c);
	rights = cur_u32(c);
	if (m.start >= m.end || file > s->files.n)
		return false;
	m.readable = rights & 1;
	m.writable = rights & 2;
	m.executable = rights & 4;
	if (file) {
		const struct fathom_dump_file *f =
			(const struct fathom_dump_file *)s->files.data + file - 1;

		m.device = f->id.device;
		m.inode = f->id.inode;
		m.deleted = f->deleted;
		m.name = f->name;
	}
	*ret = m;
	return true;
}

static fathom_err make_maps(struct snapshot *s, struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(s->mappings, SWAP);
	struct fathom_maps *maps = &s->dump.maps;
	const uint64_t n = s->mappings.size / MAPPING_SIZE;

	if (n > FATHOM_MAX_DUMP_MAPPINGS)
		return fathom_fail(reterr, FATHOM_E_LIMIT, "", 0,
				   "more mappings than fathom reads");
	maps->items = malloc(((size_t)n + 1) * sizeof *maps->items);
	if (!maps->items)
		return fail_memory(reterr);
	for (uint64_t i = 0; i < n; i++) {
		struct fathom_mapping m;

		if (read_mapping(s, &c, &m) &&
		    (!maps->n || maps->items[maps->n - 1].end <= m.start))
			maps->items[maps->n++] = m;
	}
	return maps->n ? FATHOM_OK
		       : fathom_fail(reterr, FATHOM_E_CORRUPT, "", FATHOM_SNAPSHOT_HEADER,
				     "the snapshot holds no mapping");
}

fathom_err fathom_snapshot_file_read(struct fathom_file *file, struct fathom_dump *ret,
				     struct fathom_errinfo *reterr)
{
	struct snapshot s = { .dump = { .file = file, .page = fathom_dump_page(0) } };
	struct fathom_cursor c = cur_init(file->bytes, SWAP);
	fathom_err err = read_header(&c, reterr);

	if (!err)
		err = read_records(&s, &c, reterr);
	if (!err && !sort_pieces(&s))
		err = fail_memory(reterr);
	if (!err)
		err = make_maps(&s, reterr);
	fathom_array_deinit(&s.pieces);
	s.dump.files = s.files.data;
	s.dump.n_files = s.files.n;
	s.dump.code = s.code.data;
	s.dump.n_code = s.code.n;
	if (err) {
		fathom_errinfo_set_file(reterr, file->path);
		fathom_dump_deinit(&s.dump);
	} else {
		*ret = s.dump;
	}
	return err;
}
