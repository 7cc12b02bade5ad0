/* SPDX-License-Identifier: MIT */
#include "host/syscalls/call_plans.h"

#include <elf.h>
#include <sys/syscall.h>

#include "host/syscalls/call_functions.h"
#include "host/syscalls/call_table.h"
#include "host/syscalls/decoder.h"

/* A plan that is being made. */
struct making {
	struct fathom_trace_plan *plan;
	const struct fathom_syscall_options *options;
	unsigned argument;
	uint64_t cases; /* in which it is what it is; 0: always */
	bool names_files;
	bool is_late; /* the argument is read after the call */
};

/*
 * Calls that go on elsewhere, or nowhere, depend on the stack that they are made on, or have the
 * tracer change how it traces.
 */
static bool is_for_tracer(uint32_t number)
{
	static const uint16_t numbers[] = {
		SYS_clone,        SYS_clone3,          SYS_fork,       SYS_vfork,
		SYS_execve,       SYS_execveat,        SYS_exit,       SYS_exit_group,
		SYS_rt_sigreturn, SYS_restart_syscall, SYS_seccomp,    SYS_prctl,
		SYS_arch_prctl,   SYS_ptrace,          SYS_modify_ldt, SYS_iopl,
		SYS_personality,  SYS_set_thread_area, SYS_sigaltstack
	};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

/* Functions that show a number and read nothing, or what is in the struct that they are a part of.
 */
static bool reads_nothing(fathom_decode_fn *fn)
{
	static fathom_decode_fn *const functions[] = {
		fathom_decode_open_flags,
		fathom_decode_dev,
		fathom_decode_position,
		fathom_decode_mmap_flags,
		fathom_decode_pgoff,
		fathom_decode_statx_flags,
		fathom_decode_memfd_flags,
		fathom_decode_mmap_flags_only,
		fathom_decode_socket_type,
		fathom_decode_socket_protocol,
		fathom_decode_socket_flags,
		fathom_decode_futex_op,
		fathom_decode_futex_bitset,
		fathom_decode_open_flags_only,
		fathom_decode_name,
		fathom_decode_rlimit64,
		fathom_decode_statx_time,
		fathom_decode_fd_flags_result,
		fathom_decode_open_flags_result,
		fathom_decode_signal_result,
		fathom_decode_lease_result,
		fathom_decode_seals_result,
	};

	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (functions[i] == fn)
			return true;
	return false;
}

/* What functions read that are not said by types: the size of what their argument points to. */
static const struct {
	fathom_decode_fn *fn;
	uint8_t when;
	uint8_t size;
} structs[] = {
	{ fathom_decode_stat, FATHOM_TRACE_BEFORE, 144 },
	{ fathom_decode_sigset, FATHOM_TRACE_BEFORE, 8 },
	{ fathom_decode_sigaction, FATHOM_TRACE_BEFORE, 32 },
	{ fathom_decode_epoll_event, FATHOM_TRACE_BEFORE, 12 },
	{ fathom_decode_remaining, FATHOM_TRACE_AFTER, 16 },
	{ fathom_decode_wait_status, FATHOM_TRACE_AFTER_SUCCESS, 4 },
	{ fathom_decode_wait_rusage, FATHOM_TRACE_AFTER_SUCCESS, 144 },
};

/* Bytes of struct pollfd, and of struct epoll_event on x86-64; of the longest address of a socket.
 */
enum { POLLFD_SIZE = 8, EPOLL_SIZE = 12, ADDRESS_SIZE = 128 };

static uint16_t strings_most(const struct fathom_syscall_options *o)
{
	return (uint16_t)(o->string_limit < FATHOM_DECODE_PATH - 1 ? o->string_limit + 1
								   : FATHOM_DECODE_PATH);
}

static bool add(struct making *m, enum fathom_trace_when when, struct fathom_trace_piece piece)
{
	if (m->plan->n == FATHOM_TRACE_PIECES || !piece.size || piece.size > piece.most)
		return false;
	piece.argument = (uint8_t)m->argument;
	piece.cases = m->cases;
	piece.when =
		(uint8_t)(m->is_late && when == FATHOM_TRACE_BEFORE ? FATHOM_TRACE_AFTER : when);
	m->plan->pieces[m->plan->n++] = piece;
	return true;
}

static bool add_bytes(struct making *m, enum fathom_trace_when when, uint32_t size)
{
	const struct fathom_trace_piece piece = { .count = FATHOM_TRACE_COUNT_ONE,
						  .size = (uint16_t)size,
						  .most = (uint16_t)size };

	return size <= FATHOM_DECODE_STRUCT && add(m, when, piece);
}

/* Adds up to @most bytes of elements of @size bytes, of which there are @count. */
static bool add_counted(struct making *m, enum fathom_trace_when when, uint8_t count, uint32_t size,
			uint32_t most)
{
	/* Of bytes the first ones are shown; of elements, some of all. */
	const struct fathom_trace_piece piece = {
		.count = count, .is_whole = size > 1, .size = (uint16_t)size, .most = (uint16_t)most
	};

	return most <= FATHOM_TRACE_CALL_BYTES && add(m, when, piece);
}

/* Adds up to as many elements of @size bytes as are shown. */
static bool add_elements(struct making *m, enum fathom_trace_when when, uint8_t count,
			 uint32_t size)
{
	const struct fathom_syscall_options *o = m->options;

	if (o->is_verbose || o->string_limit >= FATHOM_TRACE_CALL_BYTES)
		return false;
	return add_counted(m, when, count, size, size * (o->string_limit + 1));
}

static bool add_string(struct making *m, enum fathom_trace_when when, uint16_t most)
{
	const struct fathom_trace_piece piece = { .is_string = 1, .size = 1, .most = most };

	return add(m, when, piece);
}

/* Returns whether values of type @number refer to no other memory. */
static bool is_plain(const struct making *m, uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];

	if (m->names_files &&
	    (type->kind == FATHOM_KIND_DESCRIPTOR || type->kind == FATHOM_KIND_DIRECTORY))
		return false;
	if (type->kind <= FATHOM_KIND_ENUM || type->kind == FATHOM_KIND_PADDING)
		return true;
	if (type->kind == FATHOM_KIND_FUNCTION)
		return reads_nothing(fathom_decode_functions[type->a]);
	if (type->kind == FATHOM_KIND_ARRAY)
		return type->width == FATHOM_COUNT_FIXED && is_plain(m, type->a);
	if (type->kind != FATHOM_KIND_STRUCT)
		return false;
	for (const struct fathom_type_field *f =
		     &fathom_type_fields[fathom_type_structs[type->a].first];
	     f < &fathom_type_fields[fathom_type_structs[type->a].first] +
			 fathom_type_structs[type->a].n;
	     f++)
		if (!is_plain(m, f->type))
			return false;
	return true;
}

/* Adds the struct that @fn reads, at @when if that is not said of it. */
static bool add_struct(struct making *m, enum fathom_trace_when when, fathom_decode_fn *fn)
{
	for (size_t i = 0; i < sizeof structs / sizeof *structs; i++)
		if (structs[i].fn == fn)
			return add_bytes(m,
					 structs[i].when == FATHOM_TRACE_BEFORE
						 ? when
						 : (enum fathom_trace_when)structs[i].when,
					 structs[i].size);
	return false;
}

/* Adds what a pointer to type @number points to. */
static bool add_pointed(struct making *m, enum fathom_trace_when when, uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];

	if (type->kind == FATHOM_KIND_FUNCTION)
		return add_struct(m, when, fathom_decode_functions[type->a]);
	if (!is_plain(m, number))
		return false;
	if (type->kind == FATHOM_KIND_ARRAY)
		return add_bytes(m, when, type->n * fathom_type_sizes[type->a][0]);
	return add_bytes(m, when, fathom_type_sizes[number][0]);
}

static bool add_function(struct making *m, const struct fathom_type *type)
{
	fathom_decode_fn *const fn = fathom_decode_functions[type->a];

	const uint32_t strings = strings_most(m->options);

	if (type->kind == FATHOM_KIND_FUNCTION && reads_nothing(fn))
		return true;
	if (fn == fathom_decode_data && type->n < 6)
		return add_counted(m, FATHOM_TRACE_BEFORE, (uint8_t)type->n, 1, strings);
	if (fn == fathom_decode_read_data || fn == fathom_decode_link_text ||
	    fn == fathom_decode_random)
		return add_counted(m, FATHOM_TRACE_AFTER_SUCCESS, FATHOM_TRACE_COUNT_RESULT, 1,
				   strings);
	if (fn == fathom_decode_cwd)
		return add_string(m, FATHOM_TRACE_AFTER_SUCCESS, FATHOM_DECODE_PATH);
	if (fn == fathom_decode_sigset_sized && type->n && type->n < 6)
		return add_counted(m,
				   type->kind == FATHOM_KIND_FUNCTION ? FATHOM_TRACE_BEFORE
								      : FATHOM_TRACE_AFTER_SUCCESS,
				   (uint8_t)type->n, 1, 8);
	if (fn == fathom_decode_sockaddr && type->n < 6)
		return add_counted(m, FATHOM_TRACE_BEFORE, (uint8_t)type->n, 1, ADDRESS_SIZE);
	if (fn == fathom_decode_pollfds)
		return add_elements(m, FATHOM_TRACE_BEFORE, 1, POLLFD_SIZE);
	if (fn == fathom_decode_epoll_events)
		return add_elements(m, FATHOM_TRACE_AFTER_SUCCESS, FATHOM_TRACE_COUNT_RESULT,
				    EPOLL_SIZE);
	/* Without a length, which stands behind it, nothing is said of an address. */
	if (fn == fathom_decode_sockaddr_result)
		return true;
	if (fn == fathom_decode_length_result) {
		m->plan->zero = (uint8_t)(m->argument + 1);
		return true;
	}
	return add_struct(m, FATHOM_TRACE_BEFORE, fn);
}

static bool is_out(uint16_t number)
{
	const uint8_t kind = fathom_types[number].kind;

	return kind == FATHOM_KIND_POINTER_OUT || kind == FATHOM_KIND_POINTER_OUT_ALWAYS ||
	       kind == FATHOM_KIND_FUNCTION_OUT || kind == FATHOM_KIND_FUNCTION_BOTH;
}

static bool add_argument(struct making *m, uint16_t number);

/* Adds arguments of the @n types at @types, from the one that is added on. */
static bool add_types(struct making *m, uint16_t types, uint8_t n)
{
	const unsigned first = m->argument;
	bool is_done = true;

	for (unsigned i = 0; i < n && is_done; i++) {
		const uint16_t type = fathom_type_lists[types + i];

		m->argument = first + i;
		m->is_late |= is_out(type);
		is_done = !type || add_argument(m, type);
	}
	m->argument = first;
	return is_done;
}

/* Returns whether what is shown of a result of type @number is in no memory. */
static bool is_result_plain(uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];

	return type->kind <= FATHOM_KIND_ENUM || (type->kind == FATHOM_KIND_FUNCTION &&
						  reads_nothing(fathom_decode_functions[type->a]));
}

/* Adds the cases that the argument before selects, as far as they can be said. */
static bool add_cases(struct making *m, const struct fathom_case_group *g)
{
	const uint8_t arch = fathom_syscall_arch_bit(EM_X86_64);
	struct fathom_trace_plan *plan = m->plan;

	if (plan->selector || !m->argument)
		return false;
	plan->selector = (uint8_t)m->argument;
	plan->mask = g->mask;
	for (const struct fathom_case *c = &fathom_cases[g->first];
	     c < &fathom_cases[g->first] + g->n; c++) {
		const struct fathom_trace_plan before = *plan;

		if (!(c->arches & arch) || c->value >= 64)
			continue;
		m->cases = UINT64_C(1) << c->value;
		m->is_late = false;
		if (is_result_plain(c->result) && add_types(m, c->types, c->n))
			plan->allowed |= m->cases;
		else
			*plan = before;
	}
	m->cases = 0;
	return plan->allowed != 0;
}

/* Adds what is needed of an argument of type @number. */
static bool add_argument(struct making *m, uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];

	if (m->names_files &&
	    (type->kind == FATHOM_KIND_DESCRIPTOR || type->kind == FATHOM_KIND_DIRECTORY))
		return false;
	if (type->kind <= FATHOM_KIND_ENUM)
		return true;
	switch (type->kind) {
	case FATHOM_KIND_PATH:
		return add_string(m, FATHOM_TRACE_BEFORE, FATHOM_DECODE_PATH);
	case FATHOM_KIND_STRING:
		return add_string(m, FATHOM_TRACE_BEFORE, strings_most(m->options));
	case FATHOM_KIND_POINTER:
		return add_pointed(m, m->is_late ? FATHOM_TRACE_AFTER_SUCCESS : FATHOM_TRACE_BEFORE,
				   type->a);
	case FATHOM_KIND_POINTER_OUT:
		return add_pointed(m, FATHOM_TRACE_AFTER_SUCCESS, type->a);
	case FATHOM_KIND_POINTER_OUT_ALWAYS:
		return add_pointed(m, FATHOM_TRACE_AFTER, type->a);
	case FATHOM_KIND_FUNCTION:
	case FATHOM_KIND_FUNCTION_OUT:
	case FATHOM_KIND_FUNCTION_BOTH:
		return add_function(m, type);
	case FATHOM_KIND_CASES:
		return add_cases(m, &fathom_case_groups[type->a]);
	case FATHOM_KIND_IF:
		return add_argument(m, type->a);
	default:
		return false;
	}
}

/* Adds what is read for the result of type @number. */
static bool add_result(struct making *m, uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];

	m->argument = 0;
	if (type->kind == FATHOM_KIND_FUNCTION &&
	    fathom_decode_functions[type->a] == fathom_decode_polled)
		return add_elements(m, FATHOM_TRACE_AFTER_SUCCESS, 1, POLLFD_SIZE);
	return is_result_plain(number);
}

/* Returns whether all pieces have room in one event. */
static bool has_room(const struct fathom_trace_plan *plan)
{
	size_t size = sizeof(struct fathom_trace_call_begin) +
		      FATHOM_DECODE_ARGUMENTS * sizeof(uint64_t) +
		      FATHOM_TRACE_CALL_WORDS * sizeof(uint32_t);

	for (unsigned i = 0; i < plan->n; i++)
		size += sizeof(struct fathom_syscall_piece) + plan->pieces[i].most + 7u;
	return size <= FATHOM_TRACE_CALL_BYTES;
}

bool fathom_syscall_plan_make(uint32_t number, const struct fathom_syscall_options *options,
			      bool names_files, struct fathom_trace_plan *ret)
{
	const struct fathom_syscall *call = fathom_syscall_find(EM_X86_64, number);
	struct making m = { .plan = ret, .options = options, .names_files = names_files };

	*ret = (struct fathom_trace_plan){ 0 };
	if (!call || is_for_tracer(number) || (names_files && call->result))
		return false;
	if (!add_types(&m, call->types, call->n_types) || !add_result(&m, call->result))
		return false;
	/* What selects has arguments behind it. */
	ret->n_args = ret->selector ? FATHOM_DECODE_ARGUMENTS : call->n_types;
	ret->is_recorded = has_room(ret);
	return ret->is_recorded;
}
