/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Why a thread died, or is about to, as fathom_stacks_capture() finds it in memory beside the
 * stack.
 *
 * Nothing is called in the process, and nothing is guessed: each answer is proven by what is named
 * at its member, else it is absent.
 */
#ifndef FATHOM_DEATH_H
#define FATHOM_DEATH_H

#include <stddef.h>
#include <stdint.h>

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The place of the address of a fault. */
enum fathom_fault_place {
	FATHOM_FAULT_NONE = 0, /**< there was no fault, or what lies there is not known */
	/** nothing; below 64 KiB, where the kernel lets no program map memory */
	FATHOM_FAULT_NULL = 1,
	FATHOM_FAULT_UNMAPPED = 2,
	/** what is below the stack of this thread, which has used all of it */
	FATHOM_FAULT_STACK_OVERFLOW = 3,
	/** the guard below the stack of thread fathom_death.stack_tid */
	FATHOM_FAULT_STACK_GUARD = 4,
	FATHOM_FAULT_NO_ACCESS = 5,      /**< memory that may not be accessed at all */
	FATHOM_FAULT_NOT_WRITABLE = 6,   /**< memory that may be read only: it was a write */
	FATHOM_FAULT_NOT_EXECUTABLE = 7, /**< memory that may not be run: the pc is there */
	/** a page of a mapped file that has no data: the file was cut, or could not be read */
	FATHOM_FAULT_PAST_END = 8,
	/**
	 * not known: of a general protection fault the kernel states no address. Mostly it is not
	 * canonical, as a pointer that was overwritten
	 */
	FATHOM_FAULT_NO_ADDRESS = 9,
	/** no memory at all: fault_address is by the instruction and the registers */
	FATHOM_FAULT_NOT_CANONICAL = 10
};

/** The access of an instruction to memory. */
enum fathom_access {
	FATHOM_ACCESS_UNKNOWN = 0,
	FATHOM_ACCESS_READ = 1,
	FATHOM_ACCESS_WRITE = 2,
	FATHOM_ACCESS_EXECUTE = 3
};

/** The state of an exception of C++. */
enum fathom_exception_state {
	FATHOM_EXCEPTION_NONE = 0,
	/** no handler took it: that is why std::terminate() runs */
	FATHOM_EXCEPTION_UNCAUGHT = 1,
	/** the thread is in a handler of it: std::current_exception() */
	FATHOM_EXCEPTION_CAUGHT = 2,
	/** std::current_exception(); whether a handler took it, the stack does not say */
	FATHOM_EXCEPTION_CURRENT = 3
};

/** Why a thread died, or is about to. Texts may be any bytes but NUL; NULL: absent. */
struct fathom_death {
	/**
	 * The text that glibc wrote before it called abort(): of assert(), malloc's checks,
	 * _FORTIFY_SOURCE, the stack protector. It is that of this thread: the caller of abort() is
	 * glibc, and in no other thread. Without its last newline.
	 */
	const char *abort_message;
	/** The type of the exception, demangled, by the type_info that it was thrown with. */
	const char *exception;
	/**
	 * The text that its what() returns, if that function is std::runtime_error's or
	 * std::logic_error's, of the C++ library itself, by the vtable of the object.
	 */
	const char *what;
	/** Of a fault in a mapping of a file: its path. */
	const char *file;
	uint64_t fault_address;  /**< FATHOM_NO_ADDRESS: there was no fault, or it has none */
	uint64_t file_offset;    /**< of the fault in the file */
	int32_t stack_tid;       /**< of FATHOM_FAULT_STACK_OVERFLOW and _GUARD; else 0 */
	uint8_t exception_state; /**< enum fathom_exception_state */
	uint8_t fault_place;     /**< enum fathom_fault_place */
	uint8_t fault_access;    /**< enum fathom_access */
	uint8_t abort_is_cut;    /**< 1: abort_message is the first part of a longer one */
	uint8_t what_is_cut;     /**< 1: what is the first part of a longer one */
	uint8_t reserved[3];
	/** Why there is no abort message though glibc may have written one, in words. */
	const char *abort_failed;
	/** Why no exception is named though there may be one, in words. */
	const char *exception_failed;
};

/**
 * Returns the word for a place, such as "stack-guard"; "" for FATHOM_FAULT_NONE and unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_fault_place_name(enum fathom_fault_place place);

/**
 * Returns the word for an access, "read", "write" or "execute"; "" for FATHOM_ACCESS_UNKNOWN and
 * unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_access_name(enum fathom_access access);

#ifdef __cplusplus
}
#endif

#endif
