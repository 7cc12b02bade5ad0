/* SPDX-License-Identifier: MIT */
/* Files and descriptors: what syscalls.txt does not describe by itself. */
#include <elf.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

static void put_open_flags(struct fathom_decoder *d, uint64_t value)
{
	const char *access = fathom_constant_name(FATHOM_CONSTANTS_OPEN_ACCESS, d->arch, value & 3);

	if (!fathom_put_number_of_flags(d, value))
		return;
	fathom_put(d, access ? access : "");
	if (value & ~UINT64_C(3))
		fathom_put_more_flags(d, FATHOM_CONSTANTS_OPEN_FLAGS, value & ~UINT64_C(3), false);
	fathom_put_end_of_flags(d);
}

void fathom_decode_open_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_open_flags(d, o->bytes ? o->value : (uint32_t)o->value);
}

void fathom_decode_open_flags_only(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_open_flags(d, (uint32_t)o->value);
}

/* struct open_how has the mode even if it does not count. */
void fathom_decode_open_how_mode(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_octal(d, o->value, 3);
}

/* The size of struct open_how may be that of a later kernel, whose fields are not known. */
#define OPEN_HOW_SIZE 24

void fathom_decode_open_how(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t size = d->call.args[3];
	uint8_t bytes[OPEN_HOW_SIZE];
	uint64_t flags;

	if (!o->value || size < sizeof bytes ||
	    !fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	flags = load_u64(bytes, false);
	fathom_put(d, "{flags=");
	put_open_flags(d, flags);
	if (load_u64(bytes + 8, false) || flags & 0100 /* O_CREAT */) {
		fathom_put(d, ", mode=");
		fathom_put_octal(d, load_u64(bytes + 8, false), 3);
	}
	fathom_put(d, ", resolve=");
	fathom_put_flags(d, FATHOM_CONSTANTS_RESOLVE, load_u64(bytes + 16, false));
	fathom_put(d, size > sizeof bytes ? ", ...}" : "}");
}

/* The fields of all kinds of struct stat. */
struct status {
	uint64_t dev, ino, rdev;
	int64_t size, blocks, blksize;
	uint32_t mode, uid, gid;
	uint64_t nlink;
	struct {
		int64_t seconds;
		uint64_t nanoseconds;
	} times[3];
};

/* Where the fields of a struct stat are: offset << 4 | bytes. */
struct status_layout {
	uint16_t dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks;
	uint16_t time; /* of the first of three times, each seconds and nanoseconds */
	uint16_t total;
};

#define AT(off, size) ((off) << 4 | (size))

static const struct status_layout layout_x86_64 = {
	.dev = AT(0, 8),
	.ino = AT(8, 8),
	.nlink = AT(16, 8),
	.mode = AT(24, 4),
	.uid = AT(28, 4),
	.gid = AT(32, 4),
	.rdev = AT(40, 8),
	.size = AT(48, 8),
	.blksize = AT(56, 8),
	.blocks = AT(64, 8),
	.time = AT(72, 8),
	.total = 144,
};

static const struct status_layout layout_generic = {
	.dev = AT(0, 8),
	.ino = AT(8, 8),
	.mode = AT(16, 4),
	.nlink = AT(20, 4),
	.uid = AT(24, 4),
	.gid = AT(28, 4),
	.rdev = AT(32, 8),
	.size = AT(48, 8),
	.blksize = AT(56, 4),
	.blocks = AT(64, 8),
	.time = AT(72, 8),
	.total = 128,
};

/* i386: struct stat, and struct stat64. */
static const struct status_layout layout_i386 = {
	.dev = AT(0, 4),
	.ino = AT(4, 4),
	.mode = AT(8, 2),
	.nlink = AT(10, 2),
	.uid = AT(12, 2),
	.gid = AT(14, 2),
	.rdev = AT(16, 4),
	.size = AT(20, 4),
	.blksize = AT(24, 4),
	.blocks = AT(28, 4),
	.time = AT(32, 4),
	.total = 64,
};

static const struct status_layout layout_i386_64 = {
	.dev = AT(0, 8),
	.ino = AT(88, 8),
	.mode = AT(16, 4),
	.nlink = AT(20, 4),
	.uid = AT(24, 4),
	.gid = AT(28, 4),
	.rdev = AT(32, 8),
	.size = AT(44, 8),
	.blksize = AT(52, 4),
	.blocks = AT(56, 8),
	.time = AT(64, 4),
	.total = 96,
};

static uint64_t field(const struct fathom_decoder *d, const uint8_t *bytes, uint16_t at)
{
	return fathom_decode_load(d, bytes + (at >> 4), at & 15);
}

static void read_status(const struct fathom_decoder *d, const struct status_layout *l,
			const uint8_t *bytes, struct status *ret)
{
	const uint16_t width = l->time & 15;

	*ret = (struct status){ .dev = field(d, bytes, l->dev),
				.ino = field(d, bytes, l->ino),
				.rdev = field(d, bytes, l->rdev),
				.size = (int64_t)field(d, bytes, l->size),
				.blocks = (int64_t)field(d, bytes, l->blocks),
				.blksize = (int64_t)field(d, bytes, l->blksize),
				.mode = (uint32_t)field(d, bytes, l->mode),
				.uid = (uint32_t)field(d, bytes, l->uid),
				.gid = (uint32_t)field(d, bytes, l->gid),
				.nlink = field(d, bytes, l->nlink) };
	for (unsigned i = 0; i < 3; i++) {
		const uint8_t *at = bytes + (l->time >> 4) + i * 2 * width;
		const uint64_t seconds = fathom_decode_load(d, at, (uint8_t)width);

		ret->times[i].seconds = width == 4 ? (int32_t)seconds : (int64_t)seconds;
		ret->times[i].nanoseconds = fathom_decode_load(d, at + width, (uint8_t)width);
	}
}

static void put_number(struct fathom_decoder *d, const char *name, uint64_t value)
{
	fathom_put(d, name);
	fathom_put_unsigned(d, value);
}

static void put_status_times(struct fathom_decoder *d, const struct status *s)
{
	static const char *const names[] = { "atime", "mtime", "ctime" };

	for (unsigned i = 0; i < 3; i++) {
		fathom_put(d, ", st_");
		fathom_put(d, names[i]);
		fathom_put_char(d, '=');
		fathom_put_signed(d, s->times[i].seconds);
		fathom_put_date(d, s->times[i].seconds, s->times[i].nanoseconds);
		fathom_put(d, ", st_");
		fathom_put(d, names[i]);
		fathom_put(d, "_nsec=");
		fathom_put_unsigned(d, s->times[i].nanoseconds);
	}
}

static void put_status(struct fathom_decoder *d, const struct status *s)
{
	const uint32_t type = s->mode & 0170000;

	fathom_put_char(d, '{');
	if (d->is_verbose) {
		fathom_put(d, "st_dev=");
		fathom_put_dev(d, s->dev);
		put_number(d, ", st_ino=", s->ino);
		fathom_put(d, ", ");
	}
	fathom_put(d, "st_mode=");
	fathom_put_mode(d, s->mode);
	if (d->is_verbose) {
		put_number(d, ", st_nlink=", s->nlink);
		put_number(d, ", st_uid=", s->uid);
		put_number(d, ", st_gid=", s->gid);
		put_number(d, ", st_blksize=", (uint64_t)s->blksize);
		put_number(d, ", st_blocks=", (uint64_t)s->blocks);
	}
	if (type == 0020000 || type == 0060000) { /* S_IFCHR, S_IFBLK */
		fathom_put(d, ", st_rdev=");
		fathom_put_dev(d, s->rdev);
	} else {
		fathom_put(d, ", st_size=");
		fathom_put_size(d, (uint64_t)s->size);
	}
	if (d->is_verbose)
		put_status_times(d, s);
	fathom_put(d, d->is_verbose ? "}" : ", ...}");
}

static void decode_status(struct fathom_decoder *d, const struct status_layout *l, uint64_t avma)
{
	uint8_t bytes[144];
	struct status s;

	if (!fathom_decode_get(d, avma, bytes, l->total)) {
		fathom_put_address(d, avma);
		return;
	}
	read_status(d, l, bytes, &s);
	put_status(d, &s);
}

void fathom_decode_stat(struct fathom_decoder *d, const struct fathom_operand *o)
{
	decode_status(d,
		      d->call.machine == EM_X86_64 ? &layout_x86_64
		      : d->call.machine == EM_386  ? &layout_i386
						   : &layout_generic,
		      o->value);
}

void fathom_decode_stat64(struct fathom_decoder *d, const struct fathom_operand *o)
{
	decode_status(d, d->call.machine == EM_386 ? &layout_i386_64 : &layout_generic, o->value);
}

void fathom_decode_statx_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t sync = 0x6000; /* AT_STATX_SYNC_TYPE */
	const char *name =
		fathom_constant_name(FATHOM_CONSTANTS_AT_STATX_SYNC, d->arch, o->value & sync);

	if (!fathom_put_number_of_flags(d, (uint32_t)o->value))
		return;
	if (name)
		fathom_put(d, name);
	else
		fathom_put_more_flags(d, FATHOM_CONSTANTS_AT_STATX_SYNC, o->value & sync, true);
	if ((uint32_t)o->value & ~sync)
		fathom_put_more_flags(d, FATHOM_CONSTANTS_STATX_FLAGS, (uint32_t)o->value & ~sync,
				      false);
	fathom_put_end_of_flags(d);
}

void fathom_decode_statx_time(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const int64_t seconds = (int64_t)load_u64(o->bytes, false);
	const uint32_t nanoseconds = load_u32(o->bytes + 8, false);

	fathom_put(d, "{tv_sec=");
	fathom_put_signed(d, seconds);
	fathom_put(d, ", tv_nsec=");
	fathom_put_unsigned(d, nanoseconds);
	fathom_put_char(d, '}');
	fathom_put_date(d, seconds, nanoseconds);
}

void fathom_decode_dev(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_dev(d, o->bytes ? o->value : (uint32_t)o->value);
}

void fathom_decode_link_text(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_data(d, o->value, fathom_decode_count(d, FATHOM_COUNT_RESULT));
}

void fathom_decode_cwd(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_path(d, o->value);
}

/* UTIME_NOW and UTIME_OMIT of linux/stat.h stand in the kernel's own header only. */
#define UTIME_NOW_NS  0x3fffffff
#define UTIME_OMIT_NS 0x3ffffffe

static void put_time(struct fathom_decoder *d, int64_t seconds, uint64_t part, const char *unit)
{
	fathom_put(d, "{tv_sec=");
	fathom_put_signed(d, seconds);
	fathom_put(d, ", ");
	fathom_put(d, unit);
	fathom_put_char(d, '=');
	fathom_put_unsigned(d, part);
	fathom_put_char(d, '}');
	fathom_put_date(d, seconds, unit[3] == 'n' ? part : part * 1000);
}

static void put_two_times(struct fathom_decoder *d, uint64_t avma, uint8_t width, const char *unit)
{
	uint8_t bytes[32];

	if (!avma || !fathom_decode_get(d, avma, bytes, 4u * width)) {
		fathom_put_address(d, avma);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t s = fathom_decode_load(d, bytes + 2 * i * width, width);
		const uint64_t part = fathom_decode_load(d, bytes + (2 * i + 1) * width, width);

		fathom_put(d, i ? ", " : "[");
		if (unit[3] == 'n' && (part == UTIME_NOW_NS || part == UTIME_OMIT_NS))
			fathom_put(d, part == UTIME_NOW_NS ? "UTIME_NOW" : "UTIME_OMIT");
		else
			put_time(d, width == 4 ? (int32_t)s : (int64_t)s, part, unit);
	}
	fathom_put_char(d, ']');
}

void fathom_decode_utimens(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_two_times(d, o->value, d->word, "tv_nsec");
}

void fathom_decode_utimens64(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_two_times(d, o->value, 8, "tv_nsec");
}

void fathom_decode_utimes(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_two_times(d, o->value, d->word, "tv_usec");
}

void fathom_decode_utimbuf(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[16];

	if (!o->value || !fathom_decode_get(d, o->value, bytes, 2u * d->word)) {
		fathom_put_address(d, o->value);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t s = fathom_decode_load(d, bytes + i * d->word, FATHOM_WIDTH_WORD);
		const int64_t seconds = d->word == 4 ? (int32_t)s : (int64_t)s;

		fathom_put(d, i ? ", modtime=" : "{actime=");
		fathom_put_signed(d, seconds);
		fathom_put_date(d, seconds, 0);
	}
	fathom_put_char(d, '}');
}

void fathom_decode_data(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_data(d, o->value, fathom_decode_count(d, o->n));
}

void fathom_decode_read_data(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_data(d, o->value, fathom_decode_count(d, FATHOM_COUNT_RESULT));
}

void fathom_decode_xattr_value(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_data(d, o->value, fathom_decode_count(d, o->n));
}

/* A size of 0 asks how much there is: the buffer is not used. */
void fathom_decode_xattr_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const bool is_list = d->types[1] == o->type;
	const uint64_t size = d->call.args[is_list ? 2 : 3];

	if (fathom_decode_has_failed(d) || !size)
		fathom_put_address(d, o->value);
	else
		fathom_put_data(d, o->value, fathom_decode_count(d, FATHOM_COUNT_RESULT));
}

/* Both halves of a 64-bit offset, which i386 passes in two arguments. */
void fathom_decode_loff_high(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_signed(d, (int64_t)(o->value << 32 | (uint32_t)d->call.args[2]));
}

static void put_offset(struct fathom_decoder *d, uint64_t avma, uint8_t width)
{
	uint64_t value;

	if (!avma || !fathom_decode_get_uint(d, avma, width, &value)) {
		fathom_put_address(d, avma);
		return;
	}
	fathom_put_char(d, '[');
	fathom_put_signed(d, d->word == 4 && width != 8 ? (int32_t)value : (int64_t)value);
	fathom_put_char(d, ']');
}

void fathom_decode_loff(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_offset(d, o->value, 8);
}

/* An offset that the call moves: as it was, and as it is. */
static void put_moved_offset(struct fathom_decoder *d, uint64_t avma, uint8_t width)
{
	const uint8_t size = width == FATHOM_WIDTH_WORD ? d->word : width;
	uint8_t before[8];

	if (!d->at_exit || !avma || !fathom_decode_get_before(d, avma, before, size)) {
		put_offset(d, avma, width);
		return;
	}
	fathom_put_char(d, '[');
	fathom_put_signed(d, (int64_t)fathom_decode_load(d, before, size));
	fathom_put_char(d, ']');
	if (d->call.result > 0) {
		fathom_put(d, " => ");
		put_offset(d, avma, width);
	}
}

void fathom_decode_offset(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_moved_offset(d, o->value, FATHOM_WIDTH_WORD);
}

void fathom_decode_offset64(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_moved_offset(d, o->value, 8);
}

/* i386 passes the higher half of a position in the next argument. */
void fathom_decode_position(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t value = o->value;

	if (d->word == 4 && d->argument + 1 < FATHOM_DECODE_ARGUMENTS)
		value = d->call.args[d->argument + 1] << 32 | (uint32_t)value;
	fathom_put_signed(d, (int64_t)value);
}

/* Bytes of one entry of a directory: a name of 255 bytes, and what stands before it. */
#define DIRENT 280

/* One entry; its type stands before the name, or in the last byte. */
static void put_dirent(struct fathom_decoder *d, const uint8_t *bytes, size_t size, bool is_64)
{
	const uint8_t w = is_64 ? 8 : d->word;
	const size_t name = 2u * w + (is_64 ? 3 : 2);
	const uint8_t *end = memchr(bytes + name, 0, size - name);
	const size_t length = end ? (size_t)(end - bytes) - name : size - name;

	put_number(d, "{d_ino=", fathom_decode_load(d, bytes, w));
	put_number(d, ", d_off=", fathom_decode_load(d, bytes + w, w));
	put_number(d, ", d_reclen=", load_u16(bytes + 2 * w, false));
	if (is_64) {
		fathom_put(d, ", d_type=");
		fathom_put_enum(d, FATHOM_CONSTANTS_DIRENT_TYPES, bytes[name - 1]);
	}
	fathom_put(d, ", d_name=");
	fathom_put_quoted(d, bytes + name, length, false);
	if (!is_64) {
		fathom_put(d, ", d_type=");
		fathom_put_enum(d, FATHOM_CONSTANTS_DIRENT_TYPES, bytes[size - 1]);
	}
	fathom_put_char(d, '}');
}

/* Takes the entry at @avma, of which @left bytes may be; returns its size, 0 if it is not whole. */
static size_t take_dirent(struct fathom_decoder *d, uint64_t avma, uint64_t left, bool is_64,
			  uint8_t bytes[DIRENT])
{
	const unsigned length_off = is_64 ? 16 : 2u * d->word;
	uint8_t length[2];
	size_t size;

	if (left < length_off + 4 || !fathom_decode_step(d) ||
	    !fathom_decode_get(d, avma + length_off, length, sizeof length))
		return 0;
	size = load_u16(length, false);
	if (size < length_off + 4 || size > left)
		return 0;
	if (d->is_verbose && (size > DIRENT || !fathom_decode_get(d, avma, bytes, size)))
		return 0;
	return size;
}

/* Counts the entries, or with -v prints them. */
static void put_dirents(struct fathom_decoder *d, uint64_t avma, bool is_64)
{
	const bool is_long = d->is_verbose && !(d->call.format & FATHOM_SYSCALL_BY_ADDRESS);
	uint64_t left = fathom_decode_count(d, FATHOM_COUNT_RESULT);
	uint8_t bytes[DIRENT];
	uint64_t n = 0;
	size_t size;

	if (fathom_decode_has_failed(d) || !avma || !is_long)
		fathom_put_address(d, avma);
	if (fathom_decode_has_failed(d) || !avma || d->call.format & FATHOM_SYSCALL_BY_ADDRESS)
		return;
	if (is_long)
		fathom_put_char(d, '[');
	for (; (size = take_dirent(d, avma, left, is_64, bytes)); avma += size, left -= size, n++) {
		if (is_long && n)
			fathom_put(d, ", ");
		if (is_long)
			put_dirent(d, bytes, size, is_64);
	}
	if (is_long)
		fathom_put_char(d, ']');
	if (is_long || d->options->dialect != FATHOM_SYSCALL_STRACE)
		return;
	fathom_put(d, " /* ");
	fathom_put_unsigned(d, n);
	fathom_put(d, n == 1 ? " entry */" : " entries */");
}

void fathom_decode_dirents32(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_dirents(d, o->value, false);
}

void fathom_decode_dirents64(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_dirents(d, o->value, true);
}

/* One struct iovec; @limit bounds the bytes of all. */
static bool put_iovec(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint64_t base;
	uint64_t size;

	(void)i;
	if (!fathom_decode_get_uint(d, avma, FATHOM_WIDTH_WORD, &base) ||
	    !fathom_decode_get_uint(d, avma + d->word, FATHOM_WIDTH_WORD, &size))
		return false;
	fathom_put(d, "{iov_base=");
	if (d->iov_is_address) {
		fathom_put_address(d, base);
	} else {
		const uint64_t shown = size < d->iov_left ? size : d->iov_left;

		fathom_put_data(d, base, shown);
		d->iov_left -= shown;
	}
	fathom_put(d, ", iov_len=");
	fathom_put_size(d, size);
	fathom_put_char(d, '}');
	return true;
}

void fathom_put_iovecs(struct fathom_decoder *d, uint64_t avma, uint64_t n, uint64_t limit,
		       bool is_address)
{
	d->iov_left = limit;
	d->iov_is_address = is_address;
	fathom_put_array(d, avma, n, 2u * d->word, put_iovec);
}

/* The other process of process_vm_readv(), and what is only advised, are shown as addresses. */
static bool is_remote(const struct fathom_decoder *d)
{
	const char *name = fathom_syscall_names + d->syscall->name;

	return !strcmp(name, "process_madvise") ||
	       (!strncmp(name, "process_vm_", 11) && d->argument == 3);
}

void fathom_decode_iovec(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const bool is_out = fathom_types[o->type].kind == FATHOM_KIND_FUNCTION_OUT;
	const uint64_t limit = is_out ? fathom_decode_count(d, FATHOM_COUNT_RESULT) : UINT64_MAX;

	fathom_put_iovecs(d, o->value, fathom_decode_count(d, d->argument + 1u), limit,
			  is_remote(d) || fathom_decode_has_failed(d));
}

static void put_named_result(struct fathom_decoder *d, uint64_t value,
			     enum fathom_constant_table table, bool is_flags)
{
	fathom_put_hex(d, value);
	if (!value && is_flags)
		return;
	fathom_put(d, is_flags ? " (flags " : " (");
	if (is_flags)
		fathom_put_flags(d, table, value);
	else
		fathom_put_enum(d, table, value);
	fathom_put_char(d, ')');
}

void fathom_decode_fd_flags_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_named_result(d, o->value, FATHOM_CONSTANTS_FD_FLAGS, true);
}

void fathom_decode_open_flags_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_hex(d, o->value);
	fathom_put(d, " (flags ");
	put_open_flags(d, o->value);
	fathom_put_char(d, ')');
}

void fathom_decode_lease_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_named_result(d, o->value, FATHOM_CONSTANTS_LOCK_TYPES, false);
}

void fathom_decode_seals_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_hex(d, o->value);
	if (!o->value)
		return;
	fathom_put(d, " (seals ");
	fathom_put_flags(d, FATHOM_CONSTANTS_SEALS, o->value);
	fathom_put_char(d, ')');
}

void fathom_decode_signal_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_unsigned(d, o->value);
	if (!o->value)
		return;
	fathom_put(d, " (");
	fathom_put_signal(d, (int32_t)o->value);
	fathom_put_char(d, ')');
}

void fathom_decode_memfd_name(struct fathom_decoder *d, const struct fathom_operand *o)
{
	/* NAME_MAX without the prefix "memfd:". */
	fathom_put_string_of(d, o->value, 249);
}

void fathom_decode_memfd_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t size = (uint32_t)o->value >> 26 & 63; /* MFD_HUGE_SHIFT */
	const uint64_t flags = (uint32_t)o->value & ~(UINT32_C(63) << 26);
	const bool has_flags = flags || !size;

	if (has_flags)
		fathom_put_flags(d, FATHOM_CONSTANTS_MEMFD, flags);
	if (!size)
		return;
	if (has_flags)
		fathom_put_char(d, '|');
	fathom_put_unsigned(d, size);
	fathom_put(d, "<<MFD_HUGE_SHIFT");
}

void fathom_decode_mq_name(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_path(d, o->value);
}

/* MS_REMOUNT, _BIND, _MOVE, _UNBINDABLE, _PRIVATE, _SLAVE, _SHARED: the type does not count. */
#define MOUNT_WITHOUT_TYPE 0x1e3020

void fathom_decode_mount_type(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (d->call.args[3] & MOUNT_WITHOUT_TYPE)
		fathom_put_address(d, o->value);
	else
		fathom_put_string(d, o->value);
}

void fathom_decode_mount_data(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_string(d, o->value);
}

void fathom_decode_swap_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t priority = (uint32_t)o->value & 0x7fff; /* SWAP_FLAG_PRIO_MASK */
	const uint32_t flags = (uint32_t)o->value & ~UINT32_C(0x7fff);

	if (flags || !priority)
		fathom_put_flags(d, FATHOM_CONSTANTS_SWAP_FLAGS, flags);
	if (!priority)
		return;
	if (flags)
		fathom_put_char(d, '|');
	fathom_put_unsigned(d, priority);
}

void fathom_decode_quota_command(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put(d, "QCMD(");
	fathom_put_enum(d, FATHOM_CONSTANTS_QUOTA_COMMANDS, (uint32_t)o->value >> 8);
	fathom_put(d, ", ");
	fathom_put_enum(d, FATHOM_CONSTANTS_QUOTA_TYPES, o->value & 0xff);
	fathom_put_char(d, ')');
}

void fathom_decode_mount_attributes(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_flags(d, FATHOM_CONSTANTS_MOUNT_ATTRIBUTES, o->value);
}

/* FSCONFIG_SET_FLAG to _SET_FD have a key; FSCONFIG_SET_STRING and paths a value. */
void fathom_decode_fsconfig_key(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if ((uint32_t)d->call.args[1] <= 5)
		fathom_put_string_of(d, o->value, 256);
	else
		fathom_put_address(d, o->value);
}

void fathom_decode_fsconfig_value(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t command = (uint32_t)d->call.args[1];

	if (command == 1)
		fathom_put_string_of(d, o->value, 256);
	else if (command == 2)
		fathom_put_data(d, o->value, (uint32_t)d->call.args[4]);
	else if (command == 3 || command == 4)
		fathom_put_path(d, o->value);
	else
		fathom_put_address(d, o->value);
}

void fathom_decode_fanotify_init(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t class = o->value & 12; /* FAN_CLASS_CONTENT and FAN_CLASS_PRE_CONTENT */
	const uint64_t rest = (uint32_t)o->value & ~UINT32_C(12);

	fathom_put_enum(d, FATHOM_CONSTANTS_FANOTIFY_CLASS, class);
	if (rest)
		fathom_put_more_flags(d, FATHOM_CONSTANTS_FANOTIFY_INIT, rest, false);
}

void fathom_decode_fanotify_mark(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_flags(d, FATHOM_CONSTANTS_FANOTIFY_MARK, (uint32_t)o->value);
}

/* i386 passes the mask in two arguments. */
void fathom_decode_fanotify_mask(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_flags(d, FATHOM_CONSTANTS_FANOTIFY_EVENTS,
			 d->call.args[3] << 32 | (uint32_t)o->value);
}

void fathom_decode_fanotify_directory(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const int32_t fd = (int32_t)o->value;

	if (fathom_constant_name(FATHOM_CONSTANTS_FANOTIFY_DIRECTORY, d->arch,
				 (uint64_t)(int64_t)fd))
		fathom_put_enum(d, FATHOM_CONSTANTS_FANOTIFY_DIRECTORY, (uint64_t)(int64_t)fd);
	else
		fathom_put_dirfd(d, fd);
}

void fathom_decode_landlock_ruleset(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t size = fathom_decode_count(d, o->n);
	uint64_t handled;

	if (!o->value || size < 8 || !fathom_decode_get_uint(d, o->value, 8, &handled)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{handled_access_fs=");
	fathom_put_flags(d, FATHOM_CONSTANTS_LANDLOCK_FS, handled);
	fathom_put(d, size > 8 ? ", ...}" : "}");
}
