/* SPDX-License-Identifier: MIT */
/*
 * The code of __cxa_get_globals(), which returns a thread's struct __cxa_eh_globals (Itanium C++
 * ABI: Exception Handling, 2.2.2). That is a thread-local variable without a name in stripped
 * libraries, but the function, which is exported, is little more than its address. So its bytes are
 * compared with the few forms that compilers make of it:
 *
 *	libstdc++, shared    lea GOT-pair(%rip), %rdi; call __tls_get_addr; add $off, %rax; ret
 *	linked statically    mov %fs:0, %rax; add $-off, %rax; ret
 *	libc++abi            pthread_once(), then pthread_getspecific(key)
 *
 * ("ELF Handling For Thread-Local Storage", 4.4.6, with the sequences that linkers relax to). Who
 * asks has to prove what they lead to.
 *
 * Not handled: machines other than x86-64, TLS descriptors.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CXX_GLOBALS_CODE_H
#define FATHOM_CXX_GLOBALS_CODE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the functions that are looked at. */
#define FATHOM_GLOBALS_CODE 64

/* Bytes of struct __cxa_eh_globals: a pointer, a count, padding. */
#define FATHOM_GLOBALS_SIZE 16

/* The variable by __cxa_get_globals(). */
struct fathom_globals_tls {
	/* avma of two words: number of a TLS block, bytes into it; 0: from the thread pointer. */
	uint64_t pair;
	int64_t added;
};

/* Reads @code of __cxa_get_globals(), which is at @avma. Returns false if its form is unknown. */
bool fathom_globals_by_tls(const uint8_t code[FATHOM_GLOBALS_CODE], uint64_t avma,
			   struct fathom_globals_tls *ret);

/*
 * Reads @code of __cxa_get_globals_fast(), which is at @avma: avma of the key, 4 bytes, and of the
 * stub that is to jump to pthread_getspecific(). Returns false if its form is unknown.
 */
bool fathom_globals_by_key(const uint8_t code[FATHOM_GLOBALS_CODE], uint64_t avma,
			   uint64_t *ret_key, uint64_t *ret_stub);

/* Reads the @code of a stub at @avma: avma of the word that it jumps to. False if it is none. */
bool fathom_globals_stub(const uint8_t code[FATHOM_GLOBALS_CODE], uint64_t avma,
			 uint64_t *ret_slot);

#endif
