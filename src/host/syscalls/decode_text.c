/* SPDX-License-Identifier: MIT */
/* Texts, numbers and names, in the dialects of system calls. */
#include "fathom/format.h"
#include "fathom/stack.h"
#include "host/syscalls/decoder.h"
#include "safe/self/output.h"

#define DIGITS 24

static bool is_strace(const struct fathom_decoder *d)
{
	return d->options->dialect == FATHOM_SYSCALL_STRACE;
}

void fathom_put_bytes(struct fathom_decoder *d, const void *bytes, size_t n)
{
	struct fathom_text *t = d->out;

	if (!t)
		return;
	if (t->len + n < t->cap)
		memcpy(t->buf + t->len, bytes, n);
	else
		for (size_t i = 0; t->len + i + 1 < t->cap && i < n; i++)
			t->buf[t->len + i] = ((const char *)bytes)[i];
	t->len += n;
}

void fathom_put_char(struct fathom_decoder *d, char c)
{
	fathom_put_bytes(d, &c, 1);
}

void fathom_put(struct fathom_decoder *d, const char *text)
{
	fathom_put_bytes(d, text, d->out ? strlen(text) : 0);
}

void fathom_put_spaces(struct fathom_decoder *d, size_t to, size_t from)
{
	static const char spaces[] = "                                ";

	while (from < to) {
		const size_t n = to - from < sizeof spaces - 1 ? to - from : sizeof spaces - 1;

		fathom_put_bytes(d, spaces, n);
		from += n;
	}
}

void fathom_put_unsigned(struct fathom_decoder *d, uint64_t value)
{
	char digits[FATHOM_NUMBER_SIZE];

	if (d->out)
		fathom_put_bytes(d, digits, fathom_format_dec(digits, value));
}

void fathom_put_signed(struct fathom_decoder *d, int64_t value)
{
	if (value < 0)
		fathom_put_char(d, '-');
	fathom_put_unsigned(d, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void fathom_put_size(struct fathom_decoder *d, uint64_t value)
{
	char digits[FATHOM_GROUPED_SIZE];

	if (is_strace(d))
		fathom_put_unsigned(d, value);
	else if (d->out)
		fathom_put_bytes(d, digits, fathom_format_grouped(digits, value));
}

void fathom_put_hex(struct fathom_decoder *d, uint64_t value)
{
	char digits[FATHOM_NUMBER_SIZE];

	if (!value)
		fathom_put_char(d, '0');
	else if (d->out)
		fathom_put_bytes(d, digits, fathom_format_hex(digits, value));
}

/* Puts the digits of @value in @base, at least @n. */
static void put_digits(struct fathom_decoder *d, uint64_t value, unsigned base, unsigned n)
{
	char digits[DIGITS];
	unsigned at = DIGITS;

	do {
		digits[--at] = "0123456789abcdef"[value % base];
		value /= base;
	} while (at && (value || DIGITS - at < n));
	fathom_put_bytes(d, digits + at, DIGITS - at);
}

void fathom_put_octal(struct fathom_decoder *d, uint64_t value, unsigned digits)
{
	fathom_put_char(d, '0');
	if (value || digits > 1)
		put_digits(d, value, 8, digits > 1 ? digits - 1 : 1);
}

void fathom_put_padded(struct fathom_decoder *d, uint64_t value, unsigned digits)
{
	put_digits(d, value, 10, digits);
}

void fathom_put_address(struct fathom_decoder *d, uint64_t value)
{
	if (value)
		fathom_put_hex(d, value);
	else
		fathom_put(d, "NULL");
}

void fathom_put_code(struct fathom_decoder *d, uint64_t value)
{
	const size_t len = d->out ? d->out->len : 0;

	if (is_strace(d) || !d->out || !value) {
		fathom_put_address(d, value);
		return;
	}
	fathom_put_char(d, '&');
	if (d->options->name_code && d->options->name_code(d->options->data, value, d->out))
		return;
	d->out->len = len + 1;
	put_digits(d, value, 16, 1);
}

#define DELETED " (deleted)"

/* Puts what a descriptor is beside its path. */
static void put_detail(struct fathom_decoder *d, const struct fathom_fd_name *name)
{
	const char *end = memchr(name->detail, '\0', name->detail_size);
	const size_t n = end ? (size_t)(end - name->detail) : name->detail_size;
	size_t left = name->detail_size - n;

	fathom_put_bytes(d, name->detail, n);
	if (!end)
		return;
	end++;
	left--;
	/* Names that are not in a file system begin with a NUL. */
	if (left && !*end) {
		fathom_put_char(d, '@');
		end++;
		left--;
	}
	fathom_put_quoted(d, (const uint8_t *)end, left, false);
	fathom_put_char(d, ']');
}

/* Puts what a descriptor is, between <>; strace has it after them that a file is deleted. */
static void put_fd_name(struct fathom_decoder *d, int32_t fd)
{
	const size_t n = sizeof DELETED - 1;
	struct fathom_fd_name name;
	bool is_deleted = false;

	if (!d->out || !d->options->name_fd ||
	    !d->options->name_fd(d->options->data, fd, d->is_result, &name))
		return;
	if (is_strace(d) && name.path_size > n &&
	    !memcmp(name.path + name.path_size - n, DELETED, n)) {
		name.path_size -= n;
		is_deleted = true;
	}
	fathom_put_char(d, '<');
	fathom_put_in_brackets(d, (const uint8_t *)name.path, name.path_size);
	if (name.path_size && name.detail_size)
		fathom_put_char(d, '<');
	put_detail(d, &name);
	fathom_put(d, name.path_size && name.detail_size ? ">>" : ">");
	if (is_deleted)
		fathom_put(d, "(deleted)");
}

void fathom_put_fd(struct fathom_decoder *d, int32_t fd)
{
	fathom_put_signed(d, fd);
	if (fd >= 0)
		put_fd_name(d, fd);
}

void fathom_put_dirfd(struct fathom_decoder *d, int32_t fd)
{
	const char *name =
		fathom_constant_name(FATHOM_CONSTANTS_AT_FD, d->arch, (uint64_t)(int64_t)fd);

	if (!name) {
		fathom_put_fd(d, fd);
		return;
	}
	if (d->options->constants != FATHOM_SYSCALL_NAMES)
		fathom_put_signed(d, fd);
	if (d->options->constants == FATHOM_SYSCALL_BOTH)
		fathom_put_comment(d, name);
	if (d->options->constants == FATHOM_SYSCALL_NAMES)
		fathom_put(d, name);
	put_fd_name(d, -1);
}

void fathom_put_uid(struct fathom_decoder *d, uint32_t id)
{
	if (id == UINT32_MAX)
		fathom_put(d, "-1");
	else
		fathom_put_unsigned(d, id);
}

/* Prints the name of a signal from @skip on: without SIG, if that is 3. */
static void put_signal_name(struct fathom_decoder *d, int32_t number, size_t skip)
{
	const char *name = fathom_signal_name(number);

	if (name) {
		fathom_put(d, name + skip);
	} else if (number == 32) {
		fathom_put(d, &"SIGRTMIN"[skip]);
	} else {
		fathom_put(d, &"SIGRT_"[skip]);
		fathom_put_unsigned(d, (uint64_t)number - 32);
	}
}

static void put_signal(struct fathom_decoder *d, int32_t number, size_t skip)
{
	/* After SIGSYS come the real-time signals. */
	const bool has_name = number > 0 && number <= 64;

	if (!d->out)
		return;
	if (!has_name || d->options->constants != FATHOM_SYSCALL_NAMES)
		fathom_put_signed(d, number);
	if (!has_name || d->options->constants == FATHOM_SYSCALL_RAW)
		return;
	if (fathom_put_both(d)) {
		put_signal_name(d, number, skip);
		fathom_put(d, " */");
	} else {
		put_signal_name(d, number, skip);
	}
}

void fathom_put_signal(struct fathom_decoder *d, int32_t number)
{
	put_signal(d, number, 0);
}

void fathom_put_short_signal(struct fathom_decoder *d, int32_t number)
{
	put_signal(d, number, 3);
}

void fathom_put_mode(struct fathom_decoder *d, uint32_t mode)
{
	const char *type =
		fathom_constant_name(FATHOM_CONSTANTS_FILE_TYPES, d->arch, mode & 0170000);
	uint64_t bits = type ? mode & 07777 : mode;
	uint32_t from = 0;
	const char *name;

	if (type && d->options->constants == FATHOM_SYSCALL_NAMES) {
		fathom_put(d, type);
		while ((name = fathom_constant_take(FATHOM_CONSTANTS_MODE_BITS, d->arch, &bits,
						    &from))) {
			fathom_put_char(d, '|');
			fathom_put(d, name);
		}
		fathom_put_char(d, '|');
		fathom_put_octal(d, bits, 3);
	} else {
		fathom_put_octal(d, mode, 3);
		if (type && fathom_put_both(d)) {
			fathom_put(d, type);
			fathom_put_more_flags(d, FATHOM_CONSTANTS_MODE_BITS, bits & 07000, false);
			fathom_put_char(d, '|');
			fathom_put_octal(d, bits & 0777, 3);
			fathom_put(d, " */");
		}
	}
}

bool fathom_put_both(struct fathom_decoder *d)
{
	if (d->options->constants != FATHOM_SYSCALL_BOTH)
		return false;
	fathom_put(d, " /* ");
	return true;
}

bool fathom_put_number_of_flags(struct fathom_decoder *d, uint64_t value)
{
	if (d->options->constants == FATHOM_SYSCALL_NAMES)
		return true;
	fathom_put_hex(d, value);
	return fathom_put_both(d);
}

void fathom_put_end_of_flags(struct fathom_decoder *d)
{
	if (d->options->constants == FATHOM_SYSCALL_BOTH)
		fathom_put(d, " */");
}

void fathom_put_dev(struct fathom_decoder *d, uint64_t dev)
{
	/* As glibc's gnu_dev_major() and gnu_dev_minor() take it apart. */
	const uint64_t major = (dev >> 8 & 0xfff) | (dev >> 32 & 0xfffff000);
	const uint64_t minor = (dev & 0xff) | (dev >> 12 & 0xffffff00);

	fathom_put(d, "makedev(");
	fathom_put_hex(d, major);
	fathom_put(d, ", ");
	fathom_put_hex(d, minor);
	fathom_put_char(d, ')');
}

void fathom_put_errno(struct fathom_decoder *d, uint32_t number)
{
	const char *name = number <= INT32_MAX ? fathom_errno_name((int)number) : NULL;

	if (name)
		fathom_put(d, name);
	else
		fathom_put_unsigned(d, number);
}

void fathom_put_comment(struct fathom_decoder *d, const char *text)
{
	if (!is_strace(d))
		return;
	fathom_put(d, " /* ");
	fathom_put(d, text);
	fathom_put(d, " */");
}

/* Days since 1970 to a date of the Gregorian calendar, whose cycle is 146,097 days long. */
static void put_day(struct fathom_decoder *d, int64_t days)
{
	/* Years are counted from March on, so that leap days are their last ones. */
	const int64_t shifted = days + 719468;
	const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
	const uint64_t day = (uint64_t)(shifted - era * 146097);
	const uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	const uint64_t of_year = day - (365 * year + year / 4 - year / 100);
	const uint64_t month = (5 * of_year + 2) / 153;
	const int64_t shown = (int64_t)year + era * 400 + (month >= 10);

	if (shown < 0)
		fathom_put_char(d, '-');
	fathom_put_padded(d, (uint64_t)(shown < 0 ? -shown : shown), 4);
	fathom_put_char(d, '-');
	fathom_put_padded(d, month < 10 ? month + 3 : month - 9, 2);
	fathom_put_char(d, '-');
	fathom_put_padded(d, of_year - (153 * month + 2) / 5 + 1, 2);
}

void fathom_put_date_plain(struct fathom_decoder *d, int64_t seconds, uint64_t nanoseconds)
{
	const int64_t of_day = (seconds % 86400 + 86400) % 86400;

	put_day(d, (seconds - of_day) / 86400);
	fathom_put_char(d, 'T');
	fathom_put_padded(d, (uint64_t)of_day / 3600, 2);
	fathom_put_char(d, ':');
	fathom_put_padded(d, (uint64_t)of_day / 60 % 60, 2);
	fathom_put_char(d, ':');
	fathom_put_padded(d, (uint64_t)of_day % 60, 2);
	if (nanoseconds) {
		fathom_put_char(d, '.');
		fathom_put_padded(d, nanoseconds, 9);
	}
	fathom_put(d, "+0000");
}

/* Years beyond what strace's own tm can have are left out, as it does. */
#define LAST_SECOND INT64_C(67768036191676799)

void fathom_put_date(struct fathom_decoder *d, int64_t seconds, uint64_t nanoseconds)
{
	if (!is_strace(d) || (!seconds && !nanoseconds) || nanoseconds > 999999999 ||
	    seconds > LAST_SECOND || seconds < -LAST_SECOND)
		return;
	fathom_put(d, " /* ");
	fathom_put_date_plain(d, seconds, nanoseconds);
	fathom_put(d, " */");
}

static void put_unknown(struct fathom_decoder *d, enum fathom_constant_table table, uint64_t value)
{
	fathom_put_hex(d, value);
	if (*fathom_constant_unknown(table) && value)
		fathom_put_comment(d, fathom_constant_unknown(table));
}

void fathom_put_enum(struct fathom_decoder *d, enum fathom_constant_table table, uint64_t value)
{
	const char *name = d->out ? fathom_constant_name(table, d->arch, value) : NULL;

	if (!d->out)
		return;
	if (d->options->constants == FATHOM_SYSCALL_RAW) {
		fathom_put_hex(d, value);
	} else if (!name) {
		fathom_put_hex(d, value);
		if (*fathom_constant_unknown(table))
			fathom_put_comment(d, fathom_constant_unknown(table));
	} else if (d->options->constants == FATHOM_SYSCALL_BOTH) {
		fathom_put_hex(d, value);
		fathom_put_comment(d, name);
	} else {
		fathom_put(d, name);
	}
}

bool fathom_put_more_flags(struct fathom_decoder *d, enum fathom_constant_table table,
			   uint64_t value, bool is_first)
{
	bool has_name = false;
	uint32_t from = 0;
	const char *name;

	if (!d->out)
		return false;

	while ((name = fathom_constant_take(table, d->arch, &value, &from))) {
		if (!is_first)
			fathom_put_char(d, '|');
		fathom_put(d, name);
		is_first = false;
		has_name = true;
	}
	if (value && !is_first)
		fathom_put_char(d, '|');
	if (value && has_name)
		fathom_put_hex(d, value);
	else if (value)
		put_unknown(d, table, value);
	return !is_first || value;
}

/* Returns whether some bits of @value have a name. */
static bool has_flags(const struct fathom_decoder *d, enum fathom_constant_table table,
		      uint64_t value)
{
	uint32_t from = 0;

	return fathom_constant_take(table, d->arch, &value, &from) != NULL;
}

void fathom_put_flags(struct fathom_decoder *d, enum fathom_constant_table table, uint64_t value)
{
	const char *name = d->out ? fathom_constant_name(table, d->arch, value) : NULL;

	if (!d->out)
		return;
	if (d->options->constants == FATHOM_SYSCALL_BOTH && !name && !has_flags(d, table, value)) {
		put_unknown(d, table, value);
		return;
	}
	if (d->options->constants != FATHOM_SYSCALL_NAMES)
		fathom_put_hex(d, value);
	if (d->options->constants == FATHOM_SYSCALL_RAW)
		return;
	if (d->options->constants == FATHOM_SYSCALL_BOTH)
		fathom_put(d, " /* ");
	if (name)
		fathom_put(d, name);
	else if (!fathom_put_more_flags(d, table, value, true))
		fathom_put_char(d, '0');
	if (d->options->constants == FATHOM_SYSCALL_BOTH)
		fathom_put(d, " */");
}
