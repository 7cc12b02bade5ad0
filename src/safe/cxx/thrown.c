/* SPDX-License-Identifier: MIT */
/*
 * struct __cxa_exception (Itanium C++ ABI: Exception Handling, 2.2.1; libstdc++'s unwind-cxx.h,
 * libc++abi's cxa_exception.h) ends with struct _Unwind_Exception, whose first 8 bytes are the
 * class of the exception: "GNUCC++" or "CLNGC++", and 0, or 1 for one that was rethrown by
 * std::rethrow_exception() and refers to another. The object follows. Both libraries have their
 * members at the same distance from the object; libc++abi has two more at the start.
 *
 * The text of what() is read only if the vtable of the object has the library's own function there:
 * that of std::runtime_error and std::logic_error returns a pointer that follows the vtable's, to
 * text after a length, a capacity and a count of references (libstdc++'s string of before C++11;
 * libc++'s refstring.h).
 *
 * Not handled: programs of 32 bits; exceptions of other languages, which C++ only passes on.
 */
#include "safe/cxx/thrown.h"

/* Bytes from members to the object, with 64 bits. */
#define TYPE_DISTANCE    112 /* exceptionType; of a dependent exception primaryException */
#define COUNT_DISTANCE   72  /* handlerCount */
#define CLASS_DISTANCE   32
#define GNU_HEADER       112
#define LLVM_HEADER      128
#define LLVM_PRIMARY_OFF 8 /* from the start: primaryException */

/* Classes of exceptions, as numbers of 8 bytes; the last byte is 1 for dependent ones. */
#define GNU_CLASS  UINT64_C(0x474e5543432b2b00) /* "GNUCC++" */
#define LLVM_CLASS UINT64_C(0x434c4e47432b2b00) /* "CLNGC++" */

const char *const fathom_thrown_whats[FATHOM_THROWN_WHATS] = {
	"_ZNKSt13runtime_error4whatEv",          "_ZNKSt11logic_error4whatEv",
	"_ZNKSt12future_error4whatEv",           "_ZNKSt8ios_base7failure4whatEv",
	"_ZNKSt8ios_base7failureB5cxx114whatEv",
};

/*
 * Finds the object whose header is at @at, which has @size bytes if it is of @class. Returns false
 * if it is not.
 */
static bool find_object(const struct fathom_cxx_memory *m, uint64_t at, uint64_t size,
			uint64_t class, uint64_t *ret)
{
	const uint64_t primary = at + (class == LLVM_CLASS ? LLVM_PRIMARY_OFF : 0);
	uint64_t found;
	uint64_t count;

	if (!fathom_reader_uint(m->reader, at + size - CLASS_DISTANCE, 8, m->swap, &found) ||
	    found >> 8 != class >> 8 || (found & 0xff) > 1 ||
	    !fathom_reader_uint(m->reader, at + size - COUNT_DISTANCE, 4, m->swap, &count) ||
	    !count)
		return false;
	*ret = at + size;
	return !(found & 0xff) || (fathom_cxx_word(m, primary, ret) && *ret);
}

bool fathom_thrown_read(const struct fathom_cxx_memory *m, uint64_t at, struct fathom_thrown *ret)
{
	uint64_t type;

	return at % 16 == 0 && at < UINT64_MAX - LLVM_HEADER &&
	       (find_object(m, at, GNU_HEADER, GNU_CLASS, &ret->object) ||
		find_object(m, at, LLVM_HEADER, LLVM_CLASS, &ret->object)) &&
	       ret->object % 16 == 0 && fathom_cxx_word(m, ret->object - TYPE_DISTANCE, &type) &&
	       fathom_rtti_read(m, type, &ret->type);
}

/* Finds the text at @at, after its length, capacity and count; returns false if it is none. */
static bool check_text(const struct fathom_cxx_memory *m, uint64_t at, uint64_t *ret_size)
{
	const uint8_t word = m->word;
	uint64_t capacity;
	uint64_t count;
	char end;

	return at % word == 0 && at > 3u * word && fathom_cxx_word(m, at - 3u * word, ret_size) &&
	       fathom_cxx_word(m, at - 2u * word, &capacity) &&
	       fathom_reader_uint(m->reader, at - word, 4, m->swap, &count) &&
	       (int32_t)count >= -1 && *ret_size <= capacity && capacity < UINT64_MAX / 4 &&
	       *ret_size < UINT64_MAX - at &&
	       fathom_reader_read(m->reader, at + *ret_size, &end, 1) && !end;
}

bool fathom_thrown_text(const struct fathom_cxx_memory *m, const struct fathom_thrown *e,
			uint64_t *ret_avma, uint64_t *ret_size)
{
	const uint8_t word = m->word;
	uint64_t function;
	uint64_t vtable;
	uint64_t off;

	/* The third function, after two destructors. */
	return fathom_rtti_find_error(m, &e->type, &off) &&
	       fathom_cxx_word(m, e->object + off, &vtable) &&
	       fathom_cxx_word(m, vtable + 2u * word, &function) && m->is_what(m, function) &&
	       fathom_cxx_word(m, e->object + off + word, ret_avma) &&
	       check_text(m, *ret_avma, ret_size);
}
