/* SPDX-License-Identifier: MIT */
#include "host/space/user/snapshot_read.h"

#include <elf.h>
#include <stdlib.h>

#include "fathom/symbolize.h"
#include "host/base/crc32.h"
#include "host/space/user/snapshot_format.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"

struct reading {
	struct fathom_dump dump;
	struct fathom_dump_file_array files;   /* in file order */
	struct fathom_dump_piece_array pieces; /* as they come */
	struct fathom_dump_code_array code;
	struct fathom_kept_threads kept;
	struct fathom_bytes mappings; /* the bytes of the record */
};

bool fathom_snapshot_file_is(struct fathom_bytes bytes)
{
	const size_t size = sizeof FATHOM_SNAPSHOT_MAGIC - 1;

	return bytes.size >= size && memcmp(bytes.data, FATHOM_SNAPSHOT_MAGIC, size) == 0;
}

static fathom_err fail_memory(struct fathom_errinfo *reterr)
{
	return fathom_fail_memory(reterr);
}

/* Offsets in the header. */
#define VERSION_OFF 8
#define CRC_OFF     12
#define SIZE_OFF    16

/* Checks the header and moves @s to the body. */
static fathom_err read_header(struct fathom_snapshot *s, struct fathom_errinfo *reterr)
{
	const bool has_version = cur_left(&s->from) >= CRC_OFF;
	struct fathom_snapshot_header h;

	fathom_snapshot_header(s, &h);
	if (has_version && h.version != FATHOM_SNAPSHOT_VERSION)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", VERSION_OFF,
				   "is a snapshot of another version of fathom");
	if (h.size != cur_left(&s->from) || !cur_ok(&s->from))
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", SIZE_OFF,
				   "the snapshot is not as long as it says: it was cut short");
	if (fathom_crc32((struct fathom_bytes){ s->from.p, h.size }) != h.crc)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", CRC_OFF,
				   "the snapshot is damaged: its checksum is another");
	return FATHOM_OK;
}

static void read_process(struct reading *s, struct fathom_snapshot *from)
{
	struct fathom_snapshot_process p;

	fathom_snapshot_process(from, &p);
	if (!cur_ok(&from->from))
		return;
	s->dump.pid = p.pid <= INT32_MAX ? (int)p.pid : 0;
	s->dump.page = fathom_dump_page(p.page);
	s->dump.entry = p.entry;
	memcpy(s->dump.command, p.command, sizeof s->dump.command);
	s->dump.command[sizeof s->dump.command - 1] = '\0';
}

static bool read_file(struct reading *s, struct fathom_snapshot *from)
{
	struct fathom_dump_file f = { .deleted = false };

	fathom_snapshot_file(from, &f);
	/* A path must not contain NUL. */
	if (!f.name.data || memchr(f.name.data, '\0', f.name.size))
		f.name = (struct fathom_str){ NULL, 0 };
	if (!fathom_array_push(&s->files, f))
		return false;
	return true;
}

static bool read_memory(struct reading *s, struct fathom_snapshot *from)
{
	struct fathom_dump_piece p = { .start = 0 };
	uint64_t end;

	fathom_snapshot_u64(from, &p.start);
	p.bytes = (struct fathom_bytes){ from->from.p, cur_left(&from->from) };
	if (!p.bytes.size || __builtin_add_overflow(p.start, p.bytes.size, &end))
		return true;
	if (!fathom_array_push(&s->pieces, p))
		return false;
	return true;
}

/* Reads JIT code; skips it if malformed or out of order. Returns false if out of memory. */
static bool read_code(struct reading *s, struct fathom_snapshot *from)
{
	const struct fathom_dump_code *last = s->code.n ? s->code.items + s->code.n - 1 : NULL;
	struct fathom_dump_code k = { .source = 0 };

	fathom_snapshot_code(from, &k);
	if (!cur_ok(&from->from) || !k.name.size || !k.source || k.start >= k.end ||
	    k.symbol > k.start || (last && last->end > k.start))
		return true;
	if (!fathom_array_push(&s->code, k))
		return false;
	return true;
}

/* Reads a thread; skips it if malformed. Returns false if out of memory. */
static bool read_thread(struct reading *s, struct fathom_snapshot *from)
{
	struct fathom_stored_thread t = { .tid = 0 };

	if (!fathom_snapshot_thread(from, &t))
		return true;
	for (uint8_t i = 0; i < t.stack.n; i++) {
		struct fathom_bytes *bytes = &t.stack.items[i].bytes;

		bytes->data = cur_take(&from->from, bytes->size);
	}
	if (!cur_ok(&from->from) || t.tid <= 0)
		return true;
	if (t.registers.machine != EM_NONE && s->dump.layout.machine == EM_NONE)
		s->dump.layout = (struct fathom_layout){
			t.registers.machine, fathom_unwind_arch(t.registers.machine)->word, false
		};
	return fathom_array_push(&s->kept, t);
}

static bool read_record(struct reading *s, uint32_t type, struct fathom_snapshot *from)
{
	switch (type) {
	case FATHOM_SNAPSHOT_PROCESS:
		read_process(s, from);
		return true;
	case FATHOM_SNAPSHOT_FILE:
		return read_file(s, from);
	case FATHOM_SNAPSHOT_MAPPINGS:
		s->mappings = (struct fathom_bytes){ from->from.p, cur_left(&from->from) };
		return true;
	case FATHOM_SNAPSHOT_MEMORY:
		return read_memory(s, from);
	case FATHOM_SNAPSHOT_CODE:
		return read_code(s, from);
	case FATHOM_SNAPSHOT_THREAD:
		return read_thread(s, from);
	default:
		return true;
	}
}

static fathom_err read_records(struct reading *s, struct fathom_snapshot *from,
			       struct fathom_errinfo *reterr)
{
	while (cur_left(&from->from)) {
		const uint64_t at = (uint64_t)(from->from.p - s->dump.file->bytes.data);
		struct fathom_snapshot record;
		uint32_t type;

		if (!fathom_snapshot_next(from, &type, &record))
			return fathom_fail(reterr, FATHOM_E_CORRUPT, "", at,
					   "a record of the snapshot reaches past its end");
		if (!read_record(s, type, &record))
			return fail_memory(reterr);
	}
	return FATHOM_OK;
}

/* Sorts the pieces by address. Of one that overlaps the one before it only the rest counts. */
static bool sort_pieces(struct reading *s)
{
	const struct fathom_dump_piece *from = s->pieces.items;
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
		struct fathom_dump_piece p = from[keyed[i].value];
		const struct fathom_dump_piece *last =
			d->n_pieces ? &d->pieces[d->n_pieces - 1] : NULL;
		const uint64_t behind = last ? p.start - last->start : 0;

		if (last && behind < last->bytes.size) {
			p.bytes = bytes_from(p.bytes, last->bytes.size - behind);
			p.start = last->start + last->bytes.size;
		}
		if (p.bytes.size)
			d->pieces[d->n_pieces++] = p;
	}
	free(keyed);
	return true;
}

/* Reads one mapping of the record; returns false if it is invalid. */
static bool read_mapping(const struct reading *s, struct fathom_snapshot *from,
			 struct fathom_mapping *ret)
{
	struct fathom_mapping m = { .start = 0 };
	uint32_t file = 0;

	fathom_snapshot_mapping(from, &m, &file);
	if (m.start >= m.end || file > s->files.n)
		return false;
	if (file) {
		const struct fathom_dump_file *f = s->files.items + file - 1;

		m.device = f->id.device;
		m.inode = f->id.inode;
		m.deleted = f->deleted;
		m.name = f->name;
	}
	*ret = m;
	return true;
}

static fathom_err make_maps(struct reading *s, struct fathom_errinfo *reterr)
{
	struct fathom_snapshot from = { .from = cur_init(s->mappings, FATHOM_SNAPSHOT_SWAP) };
	struct fathom_maps *maps = &s->dump.maps;
	const uint64_t n = s->mappings.size / FATHOM_SNAPSHOT_MAPPING;

	if (n > FATHOM_MAX_DUMP_MAPPINGS)
		return fathom_fail(reterr, FATHOM_E_LIMIT, "", 0,
				   "more mappings than fathom reads");
	maps->items = malloc(((size_t)n + 1) * sizeof *maps->items);
	if (!maps->items)
		return fail_memory(reterr);
	for (uint64_t i = 0; i < n; i++) {
		struct fathom_mapping m;

		if (read_mapping(s, &from, &m) &&
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
	struct reading s = { .dump = { .file = file, .page = fathom_dump_page(0) } };
	struct fathom_snapshot from = { .from = cur_init(file->bytes, FATHOM_SNAPSHOT_SWAP) };
	fathom_err err = read_header(&from, reterr);

	if (!err)
		err = read_records(&s, &from, reterr);
	if (!err && !sort_pieces(&s))
		err = fail_memory(reterr);
	if (!err)
		err = make_maps(&s, reterr);
	fathom_array_free(&s.pieces);
	s.dump.files = s.files.items;
	s.dump.n_files = s.files.n;
	s.dump.code = s.code.items;
	s.dump.n_code = s.code.n;
	s.dump.kept = s.kept.items;
	s.dump.n_kept = s.kept.n;
	if (err) {
		fathom_errinfo_set_file(reterr, file->path);
		fathom_dump_deinit(&s.dump);
	} else {
		*ret = s.dump;
	}
	return err;
}
