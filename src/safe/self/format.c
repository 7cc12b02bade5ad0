/* SPDX-License-Identifier: MIT */
/*
 * The formatter for handlers, as fathom/self.h describes it. The directives are those of
 * Cosmopolitan's kprintf that make sense in a library. Two differ: %m takes the error number as an
 * argument, and %t adds the offset.
 */
#include <sys/syscall.h>

#include "fathom/stack.h"
#include "safe/base/own_thread.h"
#include "safe/self/output.h"
#include "safe/self/table.h"

/* A va_list in a struct can be passed on by address. */
struct arguments {
	va_list list;
};

/* Greater widths are cut. */
#define MAX_WIDTH 4096

/* Greater counts are cut. */
#define MAX_COUNT 1000000

/* Most digits of a number: 64 binary ones. A greater precision is cut. */
#define MAX_DIGITS 64

/* A number and how to write it. */
struct number {
	uint64_t value;
	bool negative;
	unsigned base;
	const char *prefix;
};

static uint32_t flag_of(char c)
{
	switch (c) {
	case '0':
		return FLAG_ZERO;
	case '-':
		return FLAG_LEFT;
	case '+':
		return FLAG_PLUS;
	case ' ':
		return FLAG_SPACE;
	case '#':
	case '`':
		return FLAG_HASH;
	case '^':
		return FLAG_UPPER;
	case '!':
		return FLAG_TRUST;
	default:
		return 0;
	}
}

static const char *read_flags(const char *p, struct fathom_spec *spec)
{
	for (;; p++) {
		const uint32_t flag = flag_of(*p);

		if (*p == '\'' || *p == ',' || *p == '_')
			spec->group = *p;
		else if (flag)
			spec->flags |= flag;
		else
			return p;
	}
}

/* Reads a number of the directive, or takes the argument that stands for it. */
static const char *read_count(const char *p, struct arguments *a, int64_t *ret)
{
	int64_t n = 0;

	if (*p == '*') {
		*ret = va_arg(a->list, int);
		return p + 1;
	}
	for (; *p >= '0' && *p <= '9'; p++)
		n = n < MAX_COUNT ? n * 10 + (*p - '0') : n;
	*ret = n;
	return p;
}

static const char *read_type(const char *p, struct fathom_spec *spec)
{
	static const enum fathom_unit of_h[] = { UNIT_INT, UNIT_SHORT, UNIT_CHAR, UNIT_BOOL };
	unsigned n_h = 0;

	while (*p == 'h' && n_h < 3) {
		n_h++;
		p++;
	}
	spec->unit = of_h[n_h];
	if (*p == 'l') {
		spec->unit = p[1] == 'l' ? UNIT_LONG_LONG : UNIT_LONG;
		return p + (p[1] == 'l' ? 2 : 1);
	}
	if (*p != 'j' && *p != 'z')
		return p;
	spec->unit = *p == 'j' ? UNIT_MAX : UNIT_SIZE;
	return p + 1;
}

static bool is_letter(char c)
{
	static const char letters[] = "cCsduixXobpnmGtTPH%";

	for (size_t i = 0; letters[i]; i++)
		if (letters[i] == c)
			return true;
	return false;
}

/* Reads the directive after the per cent sign at @p[-1]. Returns what follows it. */
static const char *read_spec(const char *p, struct arguments *a, struct fathom_spec *ret)
{
	int64_t n;

	*ret = (struct fathom_spec){ .precision = NO_PRECISION };
	p = read_flags(p, ret);
	p = read_count(p, a, &n);
	if (n < 0)
		ret->flags |= FLAG_LEFT;
	n = n < 0 ? -n : n;
	ret->width = n < MAX_WIDTH ? (uint32_t)n : MAX_WIDTH;
	if (*p == '.') {
		p = read_count(p + 1, a, &n);
		if (n >= 0)
			ret->precision = (uint32_t)n;
	}
	p = read_type(p, ret);
	if (!is_letter(*p))
		return p;
	ret->letter = *p;
	return p + 1;
}

static int64_t signed_argument(const struct fathom_spec *spec, struct arguments *a)
{
	switch (spec->unit) {
	case UNIT_CHAR:
		return (int8_t)va_arg(a->list, int);
	case UNIT_SHORT:
		return (int16_t)va_arg(a->list, int);
	case UNIT_LONG:
		return va_arg(a->list, long);
	case UNIT_LONG_LONG:
		return va_arg(a->list, long long);
	case UNIT_MAX:
		return va_arg(a->list, intmax_t);
	case UNIT_SIZE:
		return va_arg(a->list, ptrdiff_t);
	default:
		return va_arg(a->list, int);
	}
}

static uint64_t unsigned_argument(const struct fathom_spec *spec, struct arguments *a)
{
	switch (spec->unit) {
	case UNIT_CHAR:
		return (uint8_t)va_arg(a->list, int);
	case UNIT_SHORT:
		return (uint16_t)va_arg(a->list, int);
	case UNIT_LONG:
		return va_arg(a->list, unsigned long);
	case UNIT_LONG_LONG:
		return va_arg(a->list, unsigned long long);
	case UNIT_MAX:
		return va_arg(a->list, uintmax_t);
	case UNIT_SIZE:
		return va_arg(a->list, size_t);
	default:
		return va_arg(a->list, unsigned);
	}
}

static void put_padding(struct fathom_output *o, char c, uint32_t n)
{
	while (n--)
		fathom_out_byte(o, c);
}

/* Writes the digits of @n, last digit first, with separators every three. Returns their number. */
static uint32_t make_digits(const struct number *n, const struct fathom_spec *spec,
			    char digits[2 * MAX_DIGITS])
{
	const char *set = spec->flags & FLAG_UPPER ? "0123456789ABCDEF" : "0123456789abcdef";
	const uint32_t least = spec->precision == NO_PRECISION ? 1
			       : spec->precision < MAX_DIGITS  ? spec->precision
							       : MAX_DIGITS;
	uint64_t value = n->value;
	uint32_t size = 0;

	for (uint32_t i = 0; value || i < least; i++) {
		if (spec->group && i && i % 3 == 0)
			digits[size++] = spec->group;
		digits[size++] = set[value % n->base];
		value /= n->base;
	}
	return size;
}

static char sign_of(const struct number *n, const struct fathom_spec *spec)
{
	if (n->negative)
		return '-';
	if (spec->flags & FLAG_PLUS)
		return '+';
	return spec->flags & FLAG_SPACE ? ' ' : '\0';
}

static void put_number(struct fathom_output *o, const struct fathom_spec *spec,
		       const struct number *n)
{
	char digits[2 * MAX_DIGITS];
	const char sign = sign_of(n, spec);
	uint32_t size = make_digits(n, spec, digits);
	uint32_t total = size + (sign != '\0');
	uint32_t padding;

	for (const char *p = n->prefix; *p; p++)
		total++;
	padding = spec->width > total ? spec->width - total : 0;
	if (!(spec->flags & FLAG_LEFT) &&
	    (!(spec->flags & FLAG_ZERO) || spec->precision != NO_PRECISION)) {
		put_padding(o, ' ', padding);
		padding = 0;
	}
	if (sign)
		fathom_out_byte(o, sign);
	fathom_out_cstr(o, n->prefix);
	if (!(spec->flags & FLAG_LEFT)) {
		put_padding(o, '0', padding);
		padding = 0;
	}
	while (size)
		fathom_out_byte(o, digits[--size]);
	put_padding(o, ' ', padding);
}

static void put_decimal(struct fathom_output *o, const struct fathom_spec *spec, int64_t value)
{
	const struct number n = { .value = value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
				  .negative = value < 0,
				  .base = 10,
				  .prefix = "" };

	put_number(o, spec, &n);
}

/* A directive that is no number. It is measured first if it is to be padded. */
struct piece {
	const struct fathom_self *self;
	const struct fathom_spec *spec;
	uint64_t value;
	const char *text; /* NULL: made from value, as the letter says */
};

/* Writes `NAME+0xOFF`, then FILE:LINE if @with_line. */
static void put_answer(struct fathom_output *o, const struct fathom_answer *a, bool with_line)
{
	const struct number offset = { .value = a->offset, .base = 16, .prefix = "+0x" };
	const struct fathom_spec plain = { .precision = NO_PRECISION };
	const struct fathom_spec trusted = { .precision = NO_PRECISION,
					     .flags = FLAG_TRUST | FLAG_NAME };

	fathom_out_text(o, &trusted, (uintptr_t)a->symbol);
	if (a->offset)
		put_number(o, &plain, &offset);
	if (!with_line || !a->frame || !a->frame->file)
		return;
	fathom_out_byte(o, ' ');
	fathom_out_text(o, &trusted, (uintptr_t)a->frame->file);
	fathom_out_byte(o, ':');
	put_decimal(o, &plain, a->frame->line);
}

static void put_symbol(struct fathom_output *o, const struct piece *p)
{
	const bool with_line = p->spec->unit == UNIT_LONG;
	const bool old = p->spec->flags & FLAG_HASH;
	const struct fathom_spec plain = { .precision = NO_PRECISION };
	const struct number address = { .value = p->value, .base = 16, .prefix = old ? "" : "0x" };
	const struct fathom_pc pc = { .address = p->value };
	const struct fathom_answer *a = NULL;
	char buffer[FATHOM_SELF_BUFFER];

	if (old)
		fathom_out_byte(o, '&');
	if (p->self)
		a = fathom_self_lookup(p->self, pc, with_line ? 0 : FATHOM_NAMES_ONLY, buffer,
				       sizeof buffer);
	if (a && a->symbol)
		put_answer(o, a, with_line);
	else
		put_number(o, &plain, &address);
}

static void put_cstr(struct fathom_output *o, const struct fathom_spec *spec, const char *s)
{
	for (; *s; s++)
		fathom_out_byte(o, spec->flags & FLAG_UPPER && *s >= 'a' && *s <= 'z'
					   ? (char)(*s - ('a' - 'A'))
					   : *s);
}

static void put_piece(struct fathom_output *o, const struct piece *p)
{
	if (p->text)
		put_cstr(o, p->spec, p->text);
	else if (p->spec->letter == 's')
		fathom_out_text(o, p->spec, p->value);
	else if (p->spec->letter == 't')
		put_symbol(o, p);
	else
		fathom_out_char(o, p->spec, (uint32_t)p->value);
}

/* Writes @p, padded to its width. */
static void put_padded(struct fathom_output *o, const struct piece *p)
{
	struct fathom_output measure = { 0 };
	uint32_t padding;

	if (p->spec->width)
		put_piece(&measure, p);
	padding = p->spec->width > measure.chars ? p->spec->width - (uint32_t)measure.chars : 0;
	if (!(p->spec->flags & FLAG_LEFT))
		put_padding(o, ' ', padding);
	put_piece(o, p);
	if (p->spec->flags & FLAG_LEFT)
		put_padding(o, ' ', padding);
}

static void put_text(struct fathom_output *o, const struct fathom_spec *spec, const char *text)
{
	const struct piece p = { .spec = spec, .text = text };

	put_padded(o, &p);
}

/* Writes @name, or @number if it has no name. */
static void put_name(struct fathom_output *o, const struct fathom_spec *spec, const char *name,
		     int number)
{
	if (name)
		put_text(o, spec, name);
	else
		put_decimal(o, spec, number);
}

/* %m: writes nothing for 0. */
static void put_errno(struct fathom_output *o, const struct fathom_spec *spec, int number)
{
	struct fathom_spec plain = *spec;

	plain.flags &= ~(uint32_t)FLAG_SPACE;
	if (!number) {
		put_text(o, &plain, "");
		return;
	}
	if (spec->flags & FLAG_SPACE)
		fathom_out_byte(o, ' ');
	put_name(o, &plain, fathom_errno_name(number), number);
}

static void put_pointer(struct fathom_output *o, const struct fathom_spec *spec, uintptr_t value)
{
	const struct number n = { .value = value, .base = 16, .prefix = "0x" };

	/* 0 and -1, which mean "none" and "failed", are easier to read in decimal. */
	if (!value || value == UINTPTR_MAX)
		put_decimal(o, spec, value ? -1 : 0);
	else
		put_number(o, spec, &n);
}

/* As in printf, the first digit must be a 0. The precision may already give one. */
static const char *octal_prefix(const struct fathom_spec *spec, uint64_t value)
{
	uint32_t digits = 0;

	for (uint64_t left = value; left; left >>= 3)
		digits++;
	if (spec->precision == NO_PRECISION)
		return value ? "0" : "";
	return spec->precision > digits ? "" : "0";
}

static void put_unsigned(struct fathom_output *o, const struct fathom_spec *spec, uint64_t value)
{
	struct fathom_spec own = *spec;
	struct number n = { .value = value, .base = 10, .prefix = "" };
	const bool hash = spec->flags & FLAG_HASH && value;

	own.flags &= ~(uint32_t)(FLAG_PLUS | FLAG_SPACE);
	switch (spec->letter) {
	case 'X':
		own.flags |= FLAG_UPPER;
		n.base = 16;
		n.prefix = hash ? "0X" : "";
		break;
	case 'x':
		n.base = 16;
		n.prefix = hash ? "0x" : "";
		break;
	case 'o':
		n.base = 8;
		n.prefix = spec->flags & FLAG_HASH ? octal_prefix(spec, value) : "";
		break;
	case 'b':
		n.base = 2;
		n.prefix = hash ? "0b" : "";
		break;
	default:
		break;
	}
	put_number(o, &own, &n);
}

static uint64_t nanoseconds(const struct fathom_self *self)
{
	/* struct timespec of this system call: two words of the processor. */
	struct {
		long seconds;
		long nanoseconds;
	} now = { 0, 0 };
	const long monotonic = 1;
	uint64_t ns;

	(void)fathom_sys(SYS_clock_gettime, monotonic, (long)(uintptr_t)&now, 0, 0, 0, 0);
	ns = (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
	return self && ns > self->started_ns ? ns - self->started_ns : 0;
}

/* Writes directives that take no argument. Returns false for others. */
static bool put_own(struct fathom_output *o, const struct fathom_self *self,
		    const struct fathom_spec *spec)
{
	switch (spec->letter) {
	case '%':
		fathom_out_byte(o, '%');
		return true;
	case 'n':
		fathom_out_byte(o, '\n');
		return true;
	case 'P':
		put_decimal(o, spec, fathom_own_pid());
		return true;
	case 'H':
		put_decimal(o, spec, fathom_own_tid());
		return true;
	case 'T':
		put_decimal(o, spec, (int64_t)nanoseconds(self));
		return true;
	default:
		return false;
	}
}

static void put_directive(struct fathom_output *o, const struct fathom_self *self,
			  struct fathom_spec *spec, struct arguments *a)
{
	struct piece p = { .self = self, .spec = spec };
	int number;

	if (put_own(o, self, spec))
		return;
	switch (spec->letter) {
	case 'm':
		put_errno(o, spec, va_arg(a->list, int));
		return;
	case 'G':
		number = va_arg(a->list, int);
		put_name(o, spec, fathom_signal_name(number), number);
		return;
	case 'p':
		put_pointer(o, spec, (uintptr_t)va_arg(a->list, void *));
		return;
	case 's':
	case 't':
		p.value = (uintptr_t)va_arg(a->list, void *);
		put_padded(o, &p);
		return;
	case 'C':
		spec->unit = UNIT_LONG;
		p.value = va_arg(a->list, unsigned);
		put_padded(o, &p);
		return;
	case 'c':
		p.value = va_arg(a->list, unsigned);
		put_padded(o, &p);
		return;
	default:
		break;
	}
	if (spec->unit == UNIT_BOOL)
		put_text(o, spec, va_arg(a->list, int) ? "true" : "false");
	else if (spec->letter == 'd' || spec->letter == 'i')
		put_decimal(o, spec, signed_argument(spec, a));
	else
		put_unsigned(o, spec, unsigned_argument(spec, a));
}

size_t fathom_self_vformat(const struct fathom_self *self, char *buf, size_t cap,
			   const char *format, va_list arguments)
{
	struct fathom_output o = { .buf = buf, .cap = cap };
	struct fathom_spec spec;
	struct arguments a;

	va_copy(a.list, arguments);
	for (const char *p = format; *p;) {
		const char *start = p;

		if (*p++ != '%') {
			fathom_out_byte(&o, *start);
			continue;
		}
		p = read_spec(p, &a, &spec);
		if (!spec.letter) {
			fathom_out_cstr(&o, start);
			break;
		}
		put_directive(&o, self, &spec, &a);
	}
	va_end(a.list);
	fathom_out_end(&o);
	return o.len;
}

size_t fathom_self_format(const struct fathom_self *self, char *buf, size_t cap, const char *format,
			  ...)
{
	va_list arguments;
	size_t size;

	va_start(arguments, format);
	size = fathom_self_vformat(self, buf, cap, format, arguments);
	va_end(arguments);
	return size;
}
