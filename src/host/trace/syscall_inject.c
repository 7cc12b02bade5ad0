/* SPDX-License-Identifier: MIT */
#include "host/trace/syscall_inject.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/stack.h"
#include "host/file/file.h"
#include "safe/self/output.h"

/* Errors have numbers below this (MAX_ERRNO of the kernel). */
#define MOST_ERRNO 4095

static fathom_err fail(const char *what, const char *text, struct fathom_errinfo *reterr)
{
	(void)fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, what);
	fathom_errinfo_set_file(reterr, text);
	return FATHOM_E_ARGUMENT;
}

/* Reads a number up to @most, and sets *@end after it; false if there is none. */
static bool read_number(const char *text, uint64_t most, uint64_t *ret, const char **end)
{
	char *behind;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &behind, 0);
	*end = behind;
	return !errno && *ret <= most;
}

static bool read_error(const char *text, struct fathom_injection *i)
{
	const char *end;
	uint64_t number = 0;

	if (*text >= '0' && *text <= '9') {
		if (!read_number(text, MOST_ERRNO, &number, &end) || *end || !number)
			return false;
	} else {
		for (int k = 1; k <= MOST_ERRNO && !number; k++) {
			const char *name = fathom_errno_name(k);

			if (name && !strcmp(name, text))
				number = (uint64_t)k;
		}
	}
	i->result = -(int64_t)number;
	i->has_result = true;
	return number != 0;
}

static bool read_result(const char *text, struct fathom_injection *i)
{
	const char *end = "";
	uint64_t number = 0;

	i->has_result = read_number(text, INT64_MAX, &number, &end) && !*end;
	i->result = (int64_t)number;
	return i->has_result;
}

static bool read_signal(const char *text, struct fathom_injection *i)
{
	const char *end = "";
	uint64_t number = 0;

	if (read_number(text, NSIG - 1, &number, &end)) {
		i->signal = *end ? 0 : (int32_t)number;
		return i->signal != 0;
	}
	for (int k = 1; k < NSIG && !i->signal; k++) {
		const char *name = fathom_signal_name(k);

		if (name && (!strcmp(name, text) || (strlen(name) > 3 && !strcmp(name + 3, text))))
			i->signal = k;
	}
	return i->signal != 0;
}

static bool read_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{ "", 1000 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { "ns", 1 }
	};
	const char *end;
	uint64_t number;

	if (!read_number(text, UINT32_MAX, &number, &end))
		return false;
	for (size_t k = 0; k < sizeof units / sizeof *units; k++)
		if (!strcmp(end, units[k].unit)) {
			*ret_ns = number * units[k].ns;
			return true;
		}
	return false;
}

static bool read_when(const char *text, struct fathom_injection *i)
{
	const char *end;
	uint64_t number;

	if (!read_number(text, UINT16_MAX, &number, &end) || !number)
		return false;
	i->first = i->last = (uint32_t)number;
	i->step = 1;
	if (!strncmp(end, "..", 2)) {
		if (!read_number(end + 2, UINT16_MAX, &number, &end) || number < i->first)
			return false;
		i->last = (uint32_t)number;
	} else if (*end == '+') {
		i->last = UINT32_MAX;
	}
	if (*end != '+')
		return !*end;
	end++;
	if (!*end)
		return true;
	if (!read_number(end, UINT16_MAX, &number, &end) || !number)
		return false;
	i->step = (uint32_t)number;
	return !*end;
}

/* Reads "NAME=VALUE". */
static bool read_part(const char *part, struct fathom_injection *i)
{
	const char *value = strchr(part, '=');
	const size_t n = value ? (size_t)(value - part) : 0;

	if (!value)
		return false;
	value++;
	if (n == 5 && !strncmp(part, "error", n))
		return read_error(value, i);
	if (n == 6 && !strncmp(part, "retval", n))
		return read_result(value, i);
	if (n == 6 && !strncmp(part, "signal", n))
		return read_signal(value, i);
	if (n == 11 && !strncmp(part, "delay_enter", n))
		return read_time(value, &i->delay_enter_ns);
	if (n == 10 && !strncmp(part, "delay_exit", n))
		return read_time(value, &i->delay_exit_ns);
	return n == 4 && !strncmp(part, "when", n) && read_when(value, i);
}

static fathom_err read_parts(char *rest, struct fathom_injection *i, struct fathom_errinfo *reterr)
{
	const char *part;

	while ((part = strsep(&rest, ":")))
		if (!read_part(part, i))
			return fail("it cannot be injected into system calls", part, reterr);
	if (!i->has_result && !i->signal && !i->delay_enter_ns && !i->delay_exit_ns)
		return fail("nothing is injected: neither error, retval, signal nor a delay", "",
			    reterr);
	return FATHOM_OK;
}

fathom_err fathom_injection_read(const char *text, struct fathom_injection *ret,
				 struct fathom_errinfo *reterr)
{
	char *copy = strdup(text);
	char *rest = copy;
	const char *set;
	fathom_err err;

	*ret = (struct fathom_injection){ .first = 1, .last = UINT32_MAX, .step = 1 };
	if (!copy)
		return fathom_fail_memory(reterr);
	set = strsep(&rest, ":");
	err = fathom_syscall_set_read(set, &ret->set, reterr);
	if (!err)
		err = read_parts(rest, ret, reterr);
	free(copy);
	return err;
}

bool fathom_injection_is_due(const struct fathom_injection *i, uint32_t n)
{
	return n >= i->first && n <= i->last && (n - i->first) % i->step == 0;
}
