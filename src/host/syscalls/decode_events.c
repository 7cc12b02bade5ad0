/* SPDX-License-Identifier: MIT */
/* Events of descriptors: poll(2), select(2), epoll(7). */
#include <elf.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

/* struct pollfd. */
#define POLLFD 8

static bool put_wanted(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint8_t bytes[POLLFD];

	(void)i;
	if (!fathom_decode_get(d, avma, bytes, sizeof bytes))
		return false;
	fathom_put(d, "{fd=");
	fathom_put_fd(d, (int32_t)load_u32(bytes, false));
	if ((int32_t)load_u32(bytes, false) >= 0) {
		fathom_put(d, ", events=");
		fathom_put_flags(d, FATHOM_CONSTANTS_POLL, load_u16(bytes + 4, false));
	}
	fathom_put_char(d, '}');
	return true;
}

void fathom_decode_pollfds(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_array(d, o->value, (uint32_t)d->call.args[1], POLLFD, put_wanted);
}

/* Puts what is left of a timeout, after @separator. */
static void put_left(struct fathom_decoder *d, uint64_t avma, uint16_t type, const char *separator)
{
	const size_t len = d->out ? d->out->len : 0;

	fathom_put(d, separator);
	fathom_put(d, "left ");
	if (avma && d->call.format & FATHOM_SYSCALL_BY_ADDRESS)
		fathom_put_address(d, avma);
	else if ((!avma || !fathom_put_at(d, type, avma)) && d->out)
		d->out->len = len;
}

/* Prints those descriptors on which something has happened. */
static bool put_happened(struct fathom_decoder *d, uint64_t avma, uint32_t n, uint32_t limit)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < n && fathom_decode_step(d); i++) {
		uint8_t bytes[POLLFD];

		if (!fathom_decode_get(d, avma + (uint64_t)i * POLLFD, bytes, sizeof bytes))
			break;
		if (!load_u16(bytes + 6, false))
			continue;
		if (shown == limit) {
			fathom_put(d, ", ...");
			break;
		}
		fathom_put(d, shown++ ? ", {fd=" : "[{fd=");
		fathom_put_signed(d, (int32_t)load_u32(bytes, false));
		fathom_put(d, ", revents=");
		fathom_put_flags(d, FATHOM_CONSTANTS_POLL, load_u16(bytes + 6, false));
		fathom_put_char(d, '}');
	}
	if (shown)
		fathom_put_char(d, ']');
	return shown;
}

void fathom_decode_polled(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const bool is_ppoll = d->n == 5;
	const bool is_64 = is_ppoll && strstr(fathom_syscall_names + d->syscall->name, "64");
	const uint32_t limit = d->is_verbose ? FATHOM_DECODE_ELEMENTS : d->options->string_limit;
	bool has_text = false;

	fathom_put_signed(d, (int64_t)o->value);
	if (!o->value) {
		fathom_put(d, " (Timeout)");
		return;
	}
	if (d->call.format & FATHOM_SYSCALL_BY_ADDRESS)
		return;
	fathom_put(d, " (");
	has_text = put_happened(d, d->call.args[0], (uint32_t)d->call.args[1], limit);
	if (is_ppoll && d->call.args[2])
		put_left(d, d->call.args[2], is_64 ? FATHOM_TYPE_TIMESPEC64 : FATHOM_TYPE_TIMESPEC,
			 has_text ? ", " : "");
	fathom_put_char(d, ')');
}

/* Bytes of a set of descriptors that are read: FD_SETSIZE is 1,024, but the kernel takes more. */
#define FDSET 512

/* Bytes of the sets: whole words, as the kernel reads them. */
static size_t set_size(const struct fathom_decoder *d)
{
	const int32_t n = fathom_decode_int(d, 0);
	const uint64_t bytes = n > 0 ? (uint64_t)n / 8 + (n % 8 != 0) : 0;
	const uint64_t words = (bytes + d->word - 1) / d->word * d->word;

	return words < FDSET ? (size_t)words : FDSET;
}

static void put_set(struct fathom_decoder *d, const uint8_t *bytes, size_t size)
{
	const int32_t n = fathom_decode_int(d, 0);
	bool is_first = true;

	fathom_put_char(d, '[');
	for (int32_t i = 0; i < n && (size_t)i < 8 * size; i++) {
		if (!(bytes[i / 8] >> (i % 8) & 1))
			continue;
		if (!is_first)
			fathom_put_char(d, ' ');
		/* Those of the result stand without names, as strace has them. */
		if (d->is_result)
			fathom_put_signed(d, i);
		else
			fathom_put_fd(d, i);
		is_first = false;
	}
	fathom_put_char(d, ']');
}

void fathom_decode_fdset(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const size_t size = set_size(d);
	uint8_t bytes[FDSET];

	if (!o->value || fathom_decode_int(d, 0) < 0 ||
	    !fathom_decode_get(d, o->value, bytes, size))
		fathom_put_address(d, o->value);
	else
		put_set(d, bytes, size);
}

/* The sixth argument of pselect6(): the address and the size of a set of signals. */
void fathom_decode_pselect_mask(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t set;
	uint64_t size;

	if (!o->value || !fathom_decode_get_uint(d, o->value, FATHOM_WIDTH_WORD, &set) ||
	    !fathom_decode_get_uint(d, o->value + d->word, FATHOM_WIDTH_WORD, &size)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{sigmask=");
	if (set && size == 8) {
		const struct fathom_operand of = { .value = set };

		fathom_decode_sigset(d, &of);
	} else {
		fathom_put_address(d, set);
	}
	fathom_put(d, ", sigsetsize=");
	fathom_put_unsigned(d, size);
	fathom_put_char(d, '}');
}

static uint16_t timeout_type(const struct fathom_decoder *d)
{
	const char *name = fathom_syscall_names + d->syscall->name;

	if (strstr(name, "time64"))
		return FATHOM_TYPE_TIMESPEC64;
	return *name == 'p' ? FATHOM_TYPE_TIMESPEC : FATHOM_TYPE_TIMEVAL;
}

/* Returns whether any bit of the set is on. */
static bool has_any(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return true;
	return false;
}

void fathom_decode_selected(struct fathom_decoder *d, const struct fathom_operand *o)
{
	static const char *const names[] = { "in ", "out ", "except " };
	const size_t size = set_size(d);
	const char *separator = " (";
	uint8_t bytes[FDSET];

	fathom_put_signed(d, (int64_t)o->value);
	if (!o->value) {
		fathom_put(d, " (Timeout)");
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		if (!d->call.args[1 + i] ||
		    fathom_decode_take(d, d->call.args[1 + i], bytes, size) != size ||
		    !has_any(bytes, size))
			continue;
		fathom_put(d, separator);
		fathom_put(d, names[i]);
		put_set(d, bytes, size);
		separator = ", ";
	}
	if (d->call.args[4]) {
		put_left(d, d->call.args[4], timeout_type(d), separator);
		separator = ", ";
	}
	if (*separator == ',')
		fathom_put_char(d, ')');
}

/* struct epoll_event is packed on x86 only. */
static unsigned epoll_size(const struct fathom_decoder *d)
{
	return d->call.machine == EM_AARCH64 ? 16 : 12;
}

static bool put_epoll_event(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	const unsigned size = epoll_size(d);
	const unsigned off = size == 16 ? 8 : 4;
	uint8_t bytes[16];

	(void)i;
	if (!fathom_decode_get(d, avma, bytes, size))
		return false;
	fathom_put(d, "{events=");
	fathom_put_flags(d, FATHOM_CONSTANTS_EPOLL_EVENTS, load_u32(bytes, false));
	fathom_put(d, ", data=");
	fathom_put_hex(d, load_u64(bytes + off, false));
	fathom_put_char(d, '}');
	return true;
}

void fathom_decode_epoll_event(struct fathom_decoder *d, const struct fathom_operand *o)
{
	/* EPOLL_CTL_DEL has no event. */
	if (fathom_decode_int(d, 1) == 2 || !o->value || !put_epoll_event(d, o->value, 0))
		fathom_put_address(d, o->value);
}

void fathom_decode_epoll_events(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else if (!d->call.result)
		fathom_put(d, "[]");
	else
		fathom_put_array(d, o->value, fathom_decode_count(d, FATHOM_COUNT_RESULT),
				 epoll_size(d), put_epoll_event);
}
