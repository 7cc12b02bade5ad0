/* SPDX-License-Identifier: MIT */
/*
 * The bytes that calls read and write, whole, in hexadecimal and as text. What is written is read
 * before the call, like all that goes into it.
 */
#include "host/syscalls/decoder.h"

#define COLUMNS 16
/* Bytes that are read at a time. */
#define CHUNK 4096

/* How the bytes are stated. */
enum shape {
	BYTES,   /* an address and a size */
	VECTOR,  /* an array of struct iovec */
	MESSAGE, /* a struct msghdr */
	MESSAGES /* an array of struct mmsghdr */
};

static const struct dumped {
	const char *name;
	uint8_t shape; /* enum shape */
	uint8_t kind;  /* enum fathom_dump */
} calls[] = {
	{ "read", BYTES, FATHOM_DUMP_READ },
	{ "pread64", BYTES, FATHOM_DUMP_READ },
	{ "recv", BYTES, FATHOM_DUMP_READ },
	{ "recvfrom", BYTES, FATHOM_DUMP_READ },
	{ "mq_timedreceive", BYTES, FATHOM_DUMP_READ },
	{ "mq_timedreceive_time64", BYTES, FATHOM_DUMP_READ },
	{ "readv", VECTOR, FATHOM_DUMP_READ },
	{ "preadv", VECTOR, FATHOM_DUMP_READ },
	{ "preadv2", VECTOR, FATHOM_DUMP_READ },
	{ "recvmsg", MESSAGE, FATHOM_DUMP_READ },
	{ "recvmmsg", MESSAGES, FATHOM_DUMP_READ },
	{ "recvmmsg_time64", MESSAGES, FATHOM_DUMP_READ },
	{ "write", BYTES, FATHOM_DUMP_WRITE },
	{ "pwrite64", BYTES, FATHOM_DUMP_WRITE },
	{ "send", BYTES, FATHOM_DUMP_WRITE },
	{ "sendto", BYTES, FATHOM_DUMP_WRITE },
	{ "mq_timedsend", BYTES, FATHOM_DUMP_WRITE },
	{ "mq_timedsend_time64", BYTES, FATHOM_DUMP_WRITE },
	{ "writev", VECTOR, FATHOM_DUMP_WRITE },
	{ "pwritev", VECTOR, FATHOM_DUMP_WRITE },
	{ "pwritev2", VECTOR, FATHOM_DUMP_WRITE },
	{ "vmsplice", VECTOR, FATHOM_DUMP_WRITE },
	{ "sendmsg", MESSAGE, FATHOM_DUMP_WRITE },
	{ "sendmmsg", MESSAGES, FATHOM_DUMP_WRITE },
};

/* Places of members of struct msghdr and struct mmsghdr, by layout. */
static const struct {
	uint8_t vector;
	uint8_t n;
	uint8_t size; /* of struct mmsghdr */
	uint8_t transferred;
} messages[] = { { 16, 24, 64, 56 }, { 8, 12, 32, 28 } };

static const struct dumped *find_dump(const struct fathom_syscall *call)
{
	for (size_t i = 0; call && i < sizeof calls / sizeof *calls; i++)
		if (!strcmp(fathom_syscall_names + call->name, calls[i].name))
			return &calls[i];
	return NULL;
}

enum fathom_dump fathom_syscall_dump(uint32_t machine, uint64_t number)
{
	const struct dumped *c = find_dump(fathom_syscall_find(machine, number));

	return c ? (enum fathom_dump)c->kind : FATHOM_DUMP_NONE;
}

static void put_digits(struct fathom_decoder *d, uint64_t value, unsigned n)
{
	while (n--)
		fathom_put_char(d, "0123456789abcdef"[value >> (4 * n) & 15]);
}

/* Puts one line: @n bytes, the first of which is number @off, in @digits. */
static void put_line(struct fathom_decoder *d, const uint8_t *bytes, size_t n, uint64_t off,
		     unsigned digits)
{
	fathom_put(d, " | ");
	put_digits(d, off, digits);
	fathom_put_char(d, ' ');
	for (size_t i = 0; i < COLUMNS; i++) {
		fathom_put(d, i % 8 ? " " : i ? "  " : " ");
		if (i < n)
			put_digits(d, bytes[i], 2);
		else
			fathom_put(d, "  ");
	}
	fathom_put(d, "  ");
	for (size_t i = 0; i < COLUMNS; i++) {
		const uint8_t c = i < n ? bytes[i] : ' ';

		fathom_put_char(d, c >= ' ' && c < 0x7f ? (char)c : '.');
	}
	fathom_put(d, " |\n");
}

/* Says that bytes could not be read, or had no room in the record. */
static void put_missing(struct fathom_decoder *d, uint64_t n)
{
	fathom_put(d, " * ");
	fathom_put_unsigned(d, n);
	fathom_put(d, " bytes were not kept\n");
}

static void put_data(struct fathom_decoder *d, uint64_t avma, uint64_t n)
{
	uint8_t bytes[CHUNK];
	uint64_t off = 0;
	unsigned digits = 5;

	while (n && digits < 16 && (n - 1) >> (4 * digits))
		digits++;
	while (off < n && !(d->memory && d->record->is_cut)) {
		const size_t size = n - off < CHUNK ? (size_t)(n - off) : CHUNK;

		if (size > d->dump_left || fathom_decode_take(d, avma + off, bytes, size) != size) {
			put_missing(d, n - off);
			return;
		}
		d->dump_left -= (uint32_t)size;
		for (size_t i = 0; d->out && i < size; i += COLUMNS)
			put_line(d, bytes + i, size - i < COLUMNS ? size - i : COLUMNS, off + i,
				 digits);
		off += size;
	}
}

/* Puts the buffers of a vector, up to @left bytes of them. */
static void put_vector(struct fathom_decoder *d, uint64_t avma, uint64_t n, uint64_t left)
{
	for (uint64_t i = 0; i < n && fathom_decode_step(d); i++) {
		uint8_t bytes[16];
		uint64_t base;
		uint64_t size;

		if (fathom_decode_take(d, avma + i * 2 * d->word, bytes, 2u * d->word) !=
		    2u * d->word)
			return;
		base = fathom_decode_load(d, bytes, FATHOM_WIDTH_WORD);
		size = fathom_decode_load(d, bytes + d->word, FATHOM_WIDTH_WORD);
		size = size < left ? size : left;
		/* strace ends at the first one that is empty. */
		if (!size)
			return;
		left -= size;
		fathom_put(d, " * ");
		fathom_put_unsigned(d, size);
		fathom_put(d, " bytes in buffer ");
		fathom_put_unsigned(d, i);
		fathom_put_char(d, '\n');
		put_data(d, base, size);
	}
}

static uint64_t load(const struct fathom_decoder *d, const uint8_t *bytes)
{
	return fathom_decode_load(d, bytes, FATHOM_WIDTH_WORD);
}

static void put_message(struct fathom_decoder *d, uint64_t avma, uint64_t left)
{
	const unsigned vector = messages[d->layout].vector;
	uint8_t bytes[64];

	if (fathom_decode_take(d, avma, bytes, messages[d->layout].transferred) ==
	    messages[d->layout].transferred)
		put_vector(d, load(d, bytes + vector), load(d, bytes + messages[d->layout].n),
			   left);
}

static void put_messages(struct fathom_decoder *d, uint64_t avma, uint64_t n, bool is_read)
{
	const unsigned size = messages[d->layout].size;
	const unsigned transferred = messages[d->layout].transferred;

	for (uint64_t i = 0; i < n && fathom_decode_step(d); i++) {
		const uint64_t at = avma + i * size;
		uint8_t bytes[64];

		if (fathom_decode_take(d, at, bytes, size) != size)
			return;
		fathom_put(d, " = ");
		fathom_put_unsigned(d, load(d, bytes + messages[d->layout].n));
		fathom_put(d, " buffers in vector ");
		fathom_put_unsigned(d, i);
		fathom_put_char(d, '\n');
		put_message(d, at, is_read ? load_u32(bytes + transferred, false) : UINT64_MAX);
	}
}

void fathom_decode_dump(struct fathom_decoder *d, bool at_exit)
{
	const struct dumped *c = find_dump(d->syscall);
	const bool is_read = c && c->kind == FATHOM_DUMP_READ;
	const uint64_t result = fathom_decode_count(d, FATHOM_COUNT_RESULT);
	const bool has_ended = d->call.end == FATHOM_SYSCALL_RETURNED;

	d->at_exit = at_exit;
	d->dump_left = FATHOM_SYSCALL_RECORD_MAX;
	if (!(d->call.format & FATHOM_SYSCALL_DUMPED) || !c || is_read != at_exit)
		return;
	switch ((enum shape)c->shape) {
	case BYTES:
		put_data(d, d->call.args[1], is_read ? result : fathom_decode_count(d, 2));
		break;
	case VECTOR:
		put_vector(d, d->call.args[1], fathom_decode_count(d, 2),
			   is_read ? result : UINT64_MAX);
		break;
	case MESSAGE:
		put_message(d, d->call.args[1], is_read ? result : UINT64_MAX);
		break;
	case MESSAGES:
		put_messages(d, d->call.args[1], has_ended ? result : fathom_decode_count(d, 2),
			     is_read);
		break;
	}
}
