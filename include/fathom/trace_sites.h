/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Places in a program at which function entries and returns can be recorded.
 *
 * A *site* is a place at the entry of a function, or before one of its returns, that the compiler
 * has left for this purpose. Its *slot* is the bytes that may be replaced.
 *
 * Sites that a section of the file records are found in stripped files, too:
 *
 *	-fpatchable-function-entry       __patchable_function_entries
 *	-mrecord-mcount                  __mcount_loc
 *	-mrecord-return                  __return_loc
 *	-fxray-instrument                xray_instr_map
 *
 * A site that no section records counts only at the start of a function, that is, where the symbol
 * of a function or an FDE begins: a call of __fentry__ or a NOP (`-mnop-mcount`) at its first
 * instruction; and a call that all its instructions lead to without a choice: a call of mcount
 * (`-pg`) or of __cyg_profile_func_enter (`-finstrument-functions`). A NOP after a prologue (`-pg
 * -mnop-mcount`) counts only in modules that were linked with `-pg`. After such a call of
 * __cyg_profile_func_enter, each call of __cyg_profile_func_exit in the function, and each jump to
 * it, is a return (x86-64).
 *
 * No record is believed before the code says the same. Records that are not believed are counted,
 * by reason.
 */
#ifndef FATHOM_TRACE_SITES_H
#define FATHOM_TRACE_SITES_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a site is known. */
enum fathom_site_kind {
	FATHOM_SITE_PATCHABLE = 1,  /**< -fpatchable-function-entry */
	FATHOM_SITE_MCOUNT_LOC = 2, /**< -mrecord-mcount: a call or a NOP */
	FATHOM_SITE_RETURN_LOC = 3, /**< -mrecord-return: a call or a NOP */
	FATHOM_SITE_XRAY = 4,       /**< -fxray-instrument */
	FATHOM_SITE_FENTRY = 5,     /**< a call of __fentry__ or mcount at the start */
	FATHOM_SITE_MCOUNT = 6,     /**< a call of mcount after the prologue */
	FATHOM_SITE_NOP = 7,        /**< a NOP of five or six bytes at the start */
	FATHOM_SITE_MCOUNT_NOP = 8, /**< such a NOP after the prologue */
	/** a call of __cyg_profile_func_enter, or of __cyg_profile_func_exit at returns */
	FATHOM_SITE_CYG_PROFILE = 9
};

/** One more than the largest kind, with room for kinds to come. */
#define FATHOM_SITE_KINDS 16

/** Where in its function a site is. */
enum fathom_site_place {
	FATHOM_SITE_ENTRY = 0,
	FATHOM_SITE_RETURN = 1,
	FATHOM_SITE_TAIL_CALL = 2 /**< before a jump to another function */
};

/** Contents of a slot. */
enum fathom_site_content {
	FATHOM_SITE_NOPS = 0, /**< NOPs only */
	FATHOM_SITE_CALL = 1, /**< one call */
	FATHOM_SITE_SLED = 2  /**< a jump over NOPs, or a return before NOPs (XRay) */
};

/** Bits of fathom_site.flags. */
enum fathom_site_flag {
	/** An entry whose slot lies after instructions that change the stack or registers. */
	FATHOM_SITE_BEHIND_PROLOGUE = 1u << 0,
	/** The memory of the process does not hold these bytes: somebody has replaced them. */
	FATHOM_SITE_CHANGED = 1u << 1,
	/** FATHOM_SITE_CYG_PROFILE: what is called there is told nothing (clang). */
	FATHOM_SITE_BARE = 1u << 2
};

/** Why a record is not believed. */
enum fathom_site_refusal {
	FATHOM_REFUSED_NOT_CODE = 1,    /**< it does not point to code */
	FATHOM_REFUSED_OTHER_CODE = 2,  /**< there is other code than what it promises */
	FATHOM_REFUSED_NO_FUNCTION = 3, /**< it belongs to no function that is known */
	FATHOM_REFUSED_NO_SLOT = 4,     /**< all its NOPs are in front of the function */
	FATHOM_REFUSED_OVERLAP = 5,     /**< it points into the slot of another one */
	FATHOM_REFUSED_AMBIGUOUS = 6,   /**< a NOP that may be padding */
	FATHOM_REFUSED_NO_DECODER = 7   /**< the decoder library is not installed */
};

/** One more than the largest refusal, with room for refusals to come. */
#define FATHOM_SITE_REFUSALS 16

/** It is not known how far the stack pointer has moved. */
#define FATHOM_SITE_NO_FRAME UINT16_MAX

/** One site. Addresses are as for fathom_symbolize(). What it points to belongs to the sites. */
struct fathom_site {
	uint64_t address;        /**< of the slot */
	uint64_t function;       /**< of the function's entry */
	uint64_t module_address; /**< of the slot, as in struct fathom_answer */
	/** Names the function; NULL without FATHOM_SITES_NAMES. */
	const struct fathom_answer *answer;
	const uint8_t *bytes;  /**< of the slot, as in the file: size bytes */
	const uint8_t *prefix; /**< NOPs directly in front of the function: prefix_size bytes */
	uint32_t module;       /**< index of its module */
	uint16_t size;         /**< bytes of the slot */
	uint16_t prefix_size;  /**< bytes in front of the function that belong to the site */
	uint8_t kind;          /**< enum fathom_site_kind */
	uint8_t place;         /**< enum fathom_site_place */
	uint8_t content;       /**< enum fathom_site_content */
	uint8_t flags;         /**< FATHOM_SITE_ bits */
	/**
	 * FATHOM_SITE_CYG_PROFILE: bytes from the stack pointer to the function's return address,
	 * or FATHOM_SITE_NO_FRAME.
	 */
	uint16_t frame;
	uint8_t reserved[2];
};

/** Bits of fathom_call_slot.flags. */
enum fathom_slot_flag {
	/** Code calls through it itself (-fno-plt); else the procedure linkage table does. */
	FATHOM_SLOT_DIRECT = 1u << 0,
	/** The function need not be anywhere. */
	FATHOM_SLOT_WEAK = 1u << 1,
	/** Its symbol is said to be a function. */
	FATHOM_SLOT_FUNCTION = 1u << 2,
	/** The function is one by which parts of the C library call each other (GLIBC_PRIVATE). */
	FATHOM_SLOT_PRIVATE = 1u << 3
};

/** Why calls through a slot are not recorded. */
enum fathom_slot_refusal {
	/** Code takes what it holds as data: pointers to functions must stay equal. */
	FATHOM_SLOT_POINTER = 1,
	FATHOM_SLOT_MAY_BE_NOWHERE = 2, /**< the function need not be anywhere, and code may ask */
	FATHOM_SLOT_NOT_CALLED = 3      /**< no code that calls through it was found */
};

/** A slot by which a module calls a function of another one. What it points to is the sites'. */
struct fathom_call_slot {
	uint64_t address;
	uint64_t module_address; /**< as in struct fathom_answer */
	uint64_t relocation;     /**< address of its relocation, by which it is filled */
	/**
	 * Address of the operand of its stub, 4 bytes, by which calls are led elsewhere, as code
	 * may take what the slot holds as data; 0: the slot itself is.
	 */
	uint64_t operand;
	const char *symbol; /**< of the function; as linked without FATHOM_SITES_NAMES */
	const char *linkage_name;
	uint32_t module; /**< index of its module */
	uint8_t flags;   /**< FATHOM_SLOT_ bits */
	uint8_t refusal; /**< enum fathom_slot_refusal; 0: calls through it can be recorded */
	uint8_t reserved[2];
};

/** A module, with or without sites. */
struct fathom_site_module {
	const char *path;
	uint64_t bias;        /**< address - bias is the address as stated in the file */
	size_t first;         /**< index of its first site */
	size_t count;         /**< number of its sites, which follow each other */
	uint32_t machine;     /**< EM_ of elf.h */
	uint32_t n_functions; /**< known starts of functions */
	uint32_t n_kind[FATHOM_SITE_KINDS];       /**< number of sites of each kind */
	uint32_t n_refused[FATHOM_SITE_REFUSALS]; /**< number of records not believed, by reason */
	size_t first_slot;                        /**< index of its first slot */
	size_t slots; /**< number of its slots, which follow each other */
};

/** Bits of fathom_sites_options.flags. */
enum fathom_sites_flag {
	/** Name the functions of the sites. */
	FATHOM_SITES_NAMES = 1u << 0,
	/** With names: no demangling. */
	FATHOM_SITES_NO_DEMANGLE = 1u << 1,
	/** List also the slots by which modules call functions of others (x86-64). */
	FATHOM_SITES_CALLS = 1u << 2
};

/** Options; as struct fathom_options. */
struct fathom_sites_options {
	size_t size;
	uint32_t flags;
	uint32_t reserved1;
	uint64_t reserved[4];
};

/** Sites by module, within it by address. Opaque; independent of the target once made. */
struct fathom_sites;

/**
 * Lists the sites of all modules of @target. @options may be NULL.
 *
 * Modules for other machines than x86-64 and aarch64 have no sites. Neither has code that a process
 * makes itself.
 *
 * Safety: mt-safe
 * Memory: *@ret_sites is the caller's, to be freed with fathom_sites_free()
 * Returns: FATHOM_OK, also when there are no sites; FATHOM_E_ARGUMENT; FATHOM_E_UNSUPPORTED for the
 *	running kernel; FATHOM_E_LIMIT when a module has more than FATHOM_SITES_MAX sites;
 *	FATHOM_E_MEMORY; for a process also what fathom_symbolize() returns
 */
FATHOM_API fathom_err fathom_trace_sites(struct fathom_target *target,
					 const struct fathom_sites_options *options,
					 struct fathom_sites **ret_sites,
					 struct fathom_errinfo *reterr);

/** Maximum number of sites of one module. */
#define FATHOM_SITES_MAX (1u << 24)

/**
 * Safety: neither
 * Memory: frees @sites, which may be NULL, and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_sites_free(struct fathom_sites *sites);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of sites
 */
FATHOM_API size_t fathom_sites_count(const struct fathom_sites *sites);

/**
 * Safety: mt-safe
 * Memory: the site belongs to @sites
 * Returns: site @i, which must be below the count
 */
FATHOM_API const struct fathom_site *fathom_sites_get(const struct fathom_sites *sites, size_t i);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of slots; 0 without FATHOM_SITES_CALLS
 */
FATHOM_API size_t fathom_sites_slot_count(const struct fathom_sites *sites);

/**
 * Safety: mt-safe
 * Memory: the slot belongs to @sites
 * Returns: slot @i, which must be below their count
 */
FATHOM_API const struct fathom_call_slot *fathom_sites_slot_get(const struct fathom_sites *sites,
								size_t i);

/**
 * Returns the word for why a slot is left out, such as "pointer"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_slot_refusal_name(enum fathom_slot_refusal refusal);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of modules
 */
FATHOM_API size_t fathom_sites_module_count(const struct fathom_sites *sites);

/**
 * Safety: mt-safe
 * Memory: the module belongs to @sites
 * Returns: module @i, which must be below their count
 */
FATHOM_API const struct fathom_site_module *fathom_sites_module_get(
	const struct fathom_sites *sites, size_t i);

/**
 * Returns the word for a kind, such as "patchable"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_site_kind_name(enum fathom_site_kind kind);

/**
 * Returns the word for a place, such as "entry"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_site_place_name(enum fathom_site_place place);

/**
 * Returns the word for a refusal, such as "not-code"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_site_refusal_name(enum fathom_site_refusal refusal);

#ifdef __cplusplus
}
#endif

#endif
