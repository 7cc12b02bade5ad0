/* SPDX-License-Identifier: MIT */
#include "trace/syscall_ranges.h"

#include "trace/machine.h"
#include "trace/recorder.h"

#define PAGE UINT64_C(4096)

static uint64_t page_of(uint64_t avma)
{
	return avma & ~(PAGE - 1);
}

static uint64_t padded(uint64_t size)
{
	return (size + 7) & ~UINT64_C(7);
}

/* Returns whether the page of @avma can be read, which may cost a system call. */
static bool is_there(struct fathom_trace_ranges *r, uint64_t avma)
{
	const uint64_t page = page_of(avma);

	if (page == r->known[0] || page == r->known[1])
		return true;
	if (!fathom_trace_is_there(avma))
		return false;
	r->known[1] = page;
	return true;
}

/* Returns how many of @size bytes at @avma can be read, from the first one on. */
static uint64_t readable(struct fathom_trace_ranges *r, uint64_t avma, uint64_t size)
{
	const uint64_t end = avma + size;

	if (end < avma)
		return 0;
	for (uint64_t page = page_of(avma); page < end; page += PAGE)
		if (!is_there(r, page > avma ? page : avma))
			return page > avma ? page - avma : 0;
	return size;
}

/*
 * Returns a word whose lowest bit that is set is the highest one of the first byte of @word that is
 * 0.
 */
static uint64_t zeros_of(uint64_t word)
{
	return (word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080);
}

/* Returns the bytes of the string at @avma with its NUL, @most if it is longer; 0: not readable. */
static uint64_t string_size(struct fathom_trace_ranges *r, uint64_t avma, uint64_t most)
{
	uint64_t fault = 0;
	uint64_t end = 0; /* of the page that was looked at */
	uint64_t n = 0;

	while (n < most) {
		const uint64_t at = avma + n;

		if (at >= end) {
			if (!is_there(r, at))
				return 0;
			end = page_of(at) + PAGE;
		}
		if (end - at >= 8 && most - n >= 8) {
			const uint64_t zeros = zeros_of(fathom_trace_load(at, &fault));

			if (zeros)
				return fault ? 0 : n + (unsigned)__builtin_ctzll(zeros) / 8 + 1;
			n += 8;
		} else {
			if (!fathom_trace_load_byte(at, &fault))
				return fault ? 0 : n + 1;
			n++;
		}
	}
	return most;
}

/* Returns the low @width bytes of @value. */
static uint64_t cut(uint64_t value, uint8_t width)
{
	return width == 8 ? value : value & ((UINT64_C(1) << 8 * width) - 1);
}

/*
 * Returns the field of @width bytes at @at of the element at @outer; it lies in one of its words.
 */
static uint64_t field(uint64_t outer, uint16_t at, uint8_t width)
{
	uint64_t fault = 0;

	return cut(fathom_trace_load(outer + (at & ~7u), &fault) >> 8 * (at & 7), width);
}

/* Returns the number of 4 bytes at @avma, 0 if it cannot be read. */
static uint64_t pointed(struct fathom_trace_ranges *r, uint64_t avma)
{
	uint64_t value = 0;
	uint64_t fault = 0;

	if (readable(r, avma, 4) < 4)
		return 0;
	for (unsigned i = 0; i < 4; i++)
		value |= fathom_trace_load_byte(avma + i, &fault) << 8 * i;
	return value;
}

/* Returns the result of the call as a number of elements or bytes. */
static uint64_t result_of(const struct fathom_trace_ranges *r)
{
	if (r->time != FATHOM_TRACE_TIME_AFTER)
		return UINT64_MAX;
	return (int64_t)r->frame->rax > 0 ? r->frame->rax : 0;
}

/* Returns the number by which the elements of @p are counted. */
static uint64_t number_of(struct fathom_trace_ranges *r, const struct fathom_capture_range *p,
			  uint64_t outer)
{
	switch (p->count) {
	case FATHOM_TRACE_COUNT_RESULT:
		return result_of(r);
	case FATHOM_TRACE_COUNT_ONE:
		return 1;
	case FATHOM_TRACE_COUNT_FIELD:
		return field(outer, p->count_at, p->width);
	case FATHOM_TRACE_COUNT_POINTED:
		return r->time == FATHOM_TRACE_TIME_TRIED ? UINT64_MAX
							  : pointed(r, r->frame->args[p->count_at]);
	default:
		return cut(r->frame->args[p->count], p->width);
	}
}

/* Returns how many elements @p has. */
static uint64_t count_of(struct fathom_trace_ranges *r, const struct fathom_capture_range *p,
			 uint64_t outer)
{
	uint64_t n = number_of(r, p, outer);

	if (p->shift)
		n = (n >> p->shift) + ((n & ((UINT64_C(1) << p->shift) - 1)) != 0);
	if (p->at_most && n > r->frame->args[p->at_most - 1])
		n = r->frame->args[p->at_most - 1];
	if (p->flags & FATHOM_TRACE_BOUNDED) {
		n = n < r->left ? n : r->left;
		r->left -= n;
	}
	return n;
}

/* Counts the entries of a directory in @size bytes at @avma. */
static uint64_t count_entries(struct fathom_trace_ranges *r, uint64_t avma, uint64_t size)
{
	const uint64_t head = FATHOM_TRACE_ENTRY_LENGTH + 2;
	uint64_t n = 0;

	while (size >= FATHOM_TRACE_ENTRY_MIN && readable(r, avma, head) == head) {
		const uint64_t length = fathom_trace_entry_length(avma);

		if (length < FATHOM_TRACE_ENTRY_MIN || length > size)
			break;
		avma += length;
		size -= length;
		n++;
	}
	return n;
}

/* Adds a range of which @size bytes are recorded; returns false if there is no room for it. */
static bool add(struct fathom_trace_ranges *r, uint64_t avma, uint64_t size, uint32_t bit)
{
	const uint64_t bytes = r->bytes + sizeof(struct fathom_trace_syscall_end) + padded(size);

	if (!size)
		return true;
	if (r->n == FATHOM_TRACE_RANGES || bytes > FATHOM_TRACE_SYSCALL_BYTES)
		return r->leaves_out;
	r->items[r->n++] = (struct fathom_trace_range){ avma, size | bit };
	r->bytes = bytes;
	return true;
}

/* Adds the lengths of the entries of a directory, @size bytes at @avma. */
static bool add_entries(struct fathom_trace_ranges *r, uint64_t avma, uint64_t size)
{
	if (size > FATHOM_TRACE_ENTRIES_MOST)
		return r->leaves_out;
	return add(r, avma,
		   2 * (r->time == FATHOM_TRACE_TIME_AFTER ? count_entries(r, avma, size)
							   : size / FATHOM_TRACE_ENTRY_MIN),
		   FATHOM_TRACE_ENTRIES_BIT);
}

static bool is_wanted(const struct fathom_trace_ranges *r, const struct fathom_capture_range *p)
{
	if (r->time == FATHOM_TRACE_TIME_BEFORE)
		return p->when == FATHOM_TRACE_BEFORE;
	return p->when != FATHOM_TRACE_BEFORE &&
	       !(p->when == FATHOM_TRACE_AFTER_SUCCESS && r->has_failed);
}

/*
 * Adds the elements of @p at @avma; returns false if that is for the tracer. *@ret_n: how many of
 * them there are whose inner ranges are to be added.
 */
static bool add_capture_range(struct fathom_trace_ranges *r, const struct fathom_capture_range *p,
			      uint64_t avma, uint64_t outer, uint64_t *ret_n)
{
	uint64_t size = p->most;
	uint64_t there;
	uint64_t n;

	*ret_n = 0;
	if (p->flags & FATHOM_TRACE_STRING) {
		size = r->time == FATHOM_TRACE_TIME_TRIED ? size : string_size(r, avma, size);
		return add(r, avma, size, 0) && (size || r->leaves_out);
	}
	n = count_of(r, p, outer);
	if (p->flags & FATHOM_TRACE_ENTRIES)
		return add_entries(r, avma, n);
	if (n <= size / p->size)
		size = n * p->size;
	else if (p->flags & FATHOM_TRACE_WHOLE && !r->leaves_out)
		return false;
	/*
	 * Memory that the call is to write is not read before it, unless it points to other memory.
	 */
	if (r->time == FATHOM_TRACE_TIME_TRIED && !p->n_inner)
		return add(r, avma, size, 0);
	there = readable(r, avma, size);
	if (there < size && !r->leaves_out)
		return false;
	*ret_n = there / p->size;
	return add(r, avma, there, 0);
}

/* Ranges are inner to each other in this many levels: messages, their buffers, and their bytes. */
#define LEVELS 3

static bool walk(struct fathom_trace_ranges *r, unsigned first, unsigned end, uint64_t outer,
		 unsigned level)
{
	for (unsigned i = first; i < end; i++) {
		const struct fathom_capture_range *p = &r->plans->ranges[i];
		uint64_t avma = p->from == FATHOM_TRACE_FROM_FIELD     ? field(outer, p->at, 8)
				: p->from == FATHOM_TRACE_FROM_ELEMENT ? outer
								       : r->frame->args[p->from];
		uint64_t n = 0;

		if (is_wanted(r, p) && avma) {
			avma += p->plus;
			if (p->bound)
				r->left = p->bound == FATHOM_TRACE_BOUND_RESULT ? result_of(r)
					  : r->time == FATHOM_TRACE_TIME_AFTER
						  ? field(outer, FATHOM_TRACE_MESSAGE_LENGTH, 4)
						  : UINT64_MAX;
			if (!add_capture_range(r, p, avma, outer, &n))
				return false;
		}
		for (uint64_t k = 0; p->n_inner && k < n && level < LEVELS; k++)
			if (!walk(r, i + 1, i + 1 + p->n_inner, avma + k * p->size, level + 1))
				return false;
		i += p->n_inner;
	}
	return true;
}

void fathom_trace_ranges_init(struct fathom_trace_ranges *r, const struct fathom_trace_plans *plans,
			      const struct fathom_trace_syscall_frame *frame,
			      enum fathom_trace_time time, uint64_t bytes)
{
	r->plans = plans;
	r->frame = frame;
	r->time = time;
	r->has_failed = time == FATHOM_TRACE_TIME_AFTER && (int64_t)frame->rax < 0 &&
			(int64_t)frame->rax >= -4095;
	r->leaves_out =
		time == FATHOM_TRACE_TIME_AFTER || !fathom_trace_syscall_process()->is_followed;
	r->known[0] = r->known[1] = page_of(frame->sp);
	r->left = UINT64_MAX;
	r->bytes = bytes;
	r->n = 0;
}

bool fathom_trace_ranges_find(struct fathom_trace_ranges *r, const struct fathom_trace_run *run)
{
	const unsigned end = run->first + run->n;

	return end <= FATHOM_TRACE_ALL_RANGES && walk(r, run->first, end, 0, 0);
}

const struct fathom_trace_run *fathom_trace_run_of(const struct fathom_trace_plans *plans,
						   const struct fathom_trace_plan *plan,
						   const struct fathom_trace_syscall_frame *frame)
{
	const struct fathom_trace_case *cases = &plans->cases[plan->first_case];
	uint32_t low = 0;
	uint32_t high = plan->n_cases;
	uint32_t value;

	if (!plan->selector)
		return &plan->run;
	value = (uint32_t)frame->args[plan->selector - 1] & plan->mask;
	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (cases[middle].value == value)
			return &cases[middle].run;
		if (cases[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return &plan->run;
}
